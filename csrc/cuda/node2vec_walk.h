// Second-order walks on a GPU: bind/ fills this in, node2vec_walk.cu reads it.
// All pointers are to device memory.
#pragma once

#include "../args.h"
#include "../core/walk.h"
#include "device.h"
#include "report.h"

namespace gsample {

template <typename indptr_t, typename index_t>
struct Node2vecCuda {
  WalkGraph<indptr_t, index_t> graph;
  // [num_edges] the entries of each column, ascending; or null
  const index_t* ascending;
  const int64_t* seeds;  // [num_seeds]
  int64_t num_seeds;
  int64_t length;
  uint64_t stream;  // key of the draws
  SecondOrder law;

  int64_t* nodes;  // [num_seeds, length + 1]
  int64_t* edges;  // [num_seeds, length]
  Report* report;
};

// Launches the walks of cpu/node2vec_walk.h.
template <typename indptr_t, typename index_t>
void node2vec_walk(const Node2vecCuda<indptr_t, index_t>& args,
                   StreamHandle stream);

}  // namespace gsample
