// Dependent walkers, one of which moves at a time (Ribeiro & Towsley,
// "Estimating and sampling graphs with multidimensional random walks", IMC
// 2010). Step i draws slot i of stream_key(key, call, kWalk), with id = 0 and
// its own root, among all edges that leave a walker: the walker of that edge
// moves along it.
#pragma once

#include "walk_graph.h"

namespace gsample {

constexpr uint32_t kFrontierRoot = 0x10000;
static_assert(kFrontierRoot > kTryRoot + kWalkTries, "other walks' roots");

template <typename indptr_t, typename index_t>
struct FrontierWalkArgs {
  WalkGraph<indptr_t, index_t> graph;
  const int64_t* seeds;  // [num_seeds] columns of the graph
  int64_t num_seeds;
  int64_t length;
  uint64_t stream;  // key of the draws
};

// Writes the source node and the edge of each step, [length] each; -1 if no
// walker has an edge.
template <typename indptr_t, typename index_t>
Status frontier_walk(const FrontierWalkArgs<indptr_t, index_t>& args,
                     int64_t* nodes,
                     int64_t* edges,
                     WalkFault* fault);

}  // namespace gsample
