// First-order random walks: a step depends only on the current node.
#pragma once

#include "walk_graph.h"

namespace gsample {

template <typename indptr_t, typename index_t>
struct RandomWalkArgs {
  const WalkGraph<indptr_t, index_t>* graphs;
  const int64_t* path;   // [length] graph of each step; null: the first
  const int64_t* seeds;  // [num_seeds]
  int64_t num_seeds;
  int64_t length;
  uint64_t stream;   // key of the draws
  uint64_t restart;  // see restart_threshold
  int threads;
};

// Writes the nodes [num_seeds, length + 1] and the edges [num_seeds, length] of
// a walk from each seed. Without a path, a walk stays at a node without
// neighbours, and a restart returns it to its seed; with a path, either ends
// the walk, and its remaining entries are -1. Seeds must be columns of the
// first graph.
template <typename indptr_t, typename index_t>
Status random_walk(const RandomWalkArgs<indptr_t, index_t>& args,
                   int64_t* nodes,
                   int64_t* edges,
                   WalkFault* fault);

}  // namespace gsample
