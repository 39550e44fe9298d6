// First-order walks on a GPU: bind/ fills this in, random_walk.cuh reads it.
// All pointers are to device memory.
#pragma once

#include "../args.h"
#include "device.h"
#include "report.h"

namespace gsample {

template <typename indptr_t, typename index_t>
struct RandomWalkCuda {
  WalkGraph<indptr_t, index_t> graph;          // without a path
  const WalkGraph<indptr_t, index_t>* graphs;  // with a path
  const int64_t* path;                         // [length] or null
  int64_t num_cols;                            // of the first step's graph
  const int64_t* seeds;                        // [num_seeds]
  int64_t num_seeds;
  int64_t length;
  uint64_t stream;   // key of the draws
  uint64_t restart;  // see restart_threshold

  int64_t* nodes;  // [num_seeds, length + 1]
  int64_t* edges;  // [num_seeds, length]
  Report* report;
};

// Launches the walks of cpu/random_walk.h.
template <typename indptr_t, typename index_t>
void random_walk(const RandomWalkCuda<indptr_t, index_t>& args,
                 StreamHandle stream);

}  // namespace gsample
