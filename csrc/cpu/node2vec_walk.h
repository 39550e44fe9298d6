// Second-order random walks.
#pragma once

#include "walk_graph.h"

namespace gsample {

template <typename indptr_t, typename index_t>
struct Node2vecArgs {
  WalkGraph<indptr_t, index_t> graph;
  // [num_edges] the entries of each column, ascending; or null
  const index_t* ascending;
  const int64_t* seeds;  // [num_seeds]
  int64_t num_seeds;
  int64_t length;
  uint64_t stream;  // key of the draws
  SecondOrder law;
  int threads;
};

// Writes the nodes [num_seeds, length + 1] and the edges [num_seeds, length] of
// a walk from each seed. The first step is first-order. A walk stays at a node
// without neighbours. Seeds must be columns.
template <typename indptr_t, typename index_t>
Status node2vec_walk(const Node2vecArgs<indptr_t, index_t>& args,
                     int64_t* nodes,
                     int64_t* edges,
                     WalkFault* fault);

}  // namespace gsample
