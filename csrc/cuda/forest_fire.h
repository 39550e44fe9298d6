// Fire on a GPU: what bind/ fills in, and what forest_fire.cu reads. All
// pointers are to the device's memory.
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

  int64_t* burnt;  // [num_cols] ascending; the report tells how many
  Report* report;
  int64_t* totals;    // [blocks] scratch
  int64_t* tail;      // [1] scratch: how many there are so far
  uint64_t* caught;   // [words()] scratch: a bit for each node that caught fire
  uint64_t* burning;  // [words()] scratch: before the level that spreads ended

  GSAMPLE_HD int64_t words() const { return graph.num_cols / 64 + 1; }
};

template <typename indptr_t, typename index_t>
LaunchShape forest_fire_shape(const ForestFireCuda<indptr_t, index_t>& args);

template <typename indptr_t, typename index_t>
void forest_fire(const ForestFireCuda<indptr_t, index_t>& args,
                 LaunchShape shape,
                 StreamHandle stream);

}  // namespace gsample
