// Selection of edges in columns on a GPU: bind/ fills this in,
// sample_columns.cu reads it. All pointers are to memory that the device can
// read.
#pragma once

#include "../args.h"
#include "device.h"
#include "report.h"

namespace gsample {

template <typename indptr_t>
struct SampleColumnsCuda : SampleColumnsArgs<indptr_t> {
  uint64_t stream;  // key of the draws of one batch; `streams` of several

  indptr_t* out_indptr;  // [n + 1]
  int64_t* edge;         // [size], from the report
  Report* report;
  int64_t* totals;     // [blocks] scratch
  int64_t* lists;      // [size] scratch, see needs_slots()
  TakenWeight* taken;  // [size] scratch, see needs_taken()
  // See needs_trees().
  int64_t* longest;    // most candidates of a column with draws
  uint64_t* tree;      // [trees * tree_words] scratch
  int64_t tree_words;  // per tree
  int64_t trees;

  // Uniform without replacement: lanes hold their draws in registers if there
  // is a lane per draw.
  GSAMPLE_HD bool needs_slots() const {
    return !this->options.replace && !weighted() && this->k > kLaneSlots;
  }
  // Weighted without replacement: a thread makes few draws of a column, a warp
  // many.
  GSAMPLE_HD bool needs_taken() const {
    return in_turn() && this->k > 0 && this->k <= kTurnSlots;
  }
  GSAMPLE_HD bool needs_trees() const {
    return in_turn() && this->k > kTurnSlots;
  }

 private:
  static constexpr int64_t kLaneSlots = 32;
  static constexpr int64_t kTurnSlots = 32;

  GSAMPLE_HD bool weighted() const { return this->edges.cum_weight != nullptr; }
  GSAMPLE_HD bool in_turn() const {
    return !this->options.replace && weighted();
  }
};

template <typename indptr_t>
LaunchShape sample_columns_shape(const SampleColumnsCuda<indptr_t>& args);

// Writes `out_indptr` and the report.
template <typename indptr_t>
void sample_columns_indptr(const SampleColumnsCuda<indptr_t>& args,
                           LaunchShape shape,
                           StreamHandle stream);

// Then, unless there was a fault, writes `edge`.
template <typename indptr_t>
void sample_columns_edges(const SampleColumnsCuda<indptr_t>& args,
                          StreamHandle stream);

}  // namespace gsample
