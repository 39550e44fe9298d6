// Forest fire on a GPU: bind/ fills this in, forest_fire.cu reads it. All
// pointers are to device memory.
#pragma once

#include "../args.h"
#include "device.h"
#include "report.h"

namespace gsample {

template <typename indptr_t, typename index_t>
struct ForestFireCuda {
  WalkGraph<indptr_t, index_t> graph;
  const int64_t* seeds;  // [num_seeds]
  int64_t num_seeds;
  double p;
  uint64_t stream;  // key of the draws

  int64_t* burnt;  // [num_cols] ascending; the report has the count
  Report* report;
  int64_t* totals;    // [blocks] scratch
  int64_t* tail;      // [1] scratch: the current number of nodes
  uint64_t* caught;   // [words()] scratch: one bit per node that caught fire
  uint64_t* burning;  // [words()] scratch: the same at the end of the last
                      // level

  GSAMPLE_HD int64_t words() const { return graph.num_cols / 64 + 1; }
};

template <typename indptr_t, typename index_t>
LaunchShape forest_fire_shape(const ForestFireCuda<indptr_t, index_t>& args);

template <typename indptr_t, typename index_t>
void forest_fire(const ForestFireCuda<indptr_t, index_t>& args,
                 LaunchShape shape,
                 StreamHandle stream);

}  // namespace gsample
