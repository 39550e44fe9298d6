// Selection of edges of columns on a GPU: what bind/ fills in, and what
// sample_cols.cuh reads. All pointers are to the device's memory.
#pragma once

#include "../core/select.h"
#include "../core/weighted.h"
#include "device.h"
#include "report.h"

namespace gsample {

template <typename indptr_t>
struct SampleColsCuda {
  const indptr_t* indptr;     // [all_cols + 1]
  const int64_t* cols;        // [num_cols] which of them, or null: the first
  const int64_t* id;          // [num_cols] whose draws, or null: the column's
  const int64_t* cum_weight;  // core/weighted.h, or null: uniform
  int64_t num_cols;
  int64_t all_cols;
  int64_t num_edges;  // with weights; else that of `indptr`
  int64_t k;          // edges a column; -1 takes all
  bool replace;
  uint64_t stream;  // key of the draws
  // Or those of each of several batches, and where their columns begin.
  const uint64_t* streams;  // [batches]
  const int64_t* ptr;       // [batches + 1] or null
  int64_t batches;

  indptr_t* out_indptr;  // [num_cols + 1]
  int64_t* edge;         // [size], which the report tells
  int64_t size;
  Report* report;
  int64_t* totals;     // [blocks] scratch
  int64_t* lists;      // [size] scratch, see needs_slots()
  TakenWeight* taken;  // [size] scratch, see needs_taken()
  // See needs_trees().
  int64_t* longest;    // the most edges of a column that is drawn from
  uint64_t* tree;      // [trees * tree_words] scratch
  int64_t tree_words;  // of a tree
  int64_t trees;
};

constexpr int64_t kLaneSlots = 32;  // slots that lanes hold in registers
constexpr int64_t kTurnSlots = 32;  // weighted slots that a thread draws

// Which scratch a selection takes.
template <typename indptr_t>
bool needs_slots(const SampleColsCuda<indptr_t>& args) {
  return args.k > kLaneSlots && !args.replace && args.cum_weight == nullptr;
}
template <typename indptr_t>
bool needs_taken(const SampleColsCuda<indptr_t>& args) {
  return args.k > 0 && args.k <= kTurnSlots && !args.replace &&
         args.cum_weight != nullptr;
}
template <typename indptr_t>
GSAMPLE_HD bool needs_trees(const SampleColsCuda<indptr_t>& args) {
  return args.k > kTurnSlots && !args.replace && args.cum_weight != nullptr;
}

template <typename indptr_t>
LaunchShape sample_cols_shape(const SampleColsCuda<indptr_t>& args);

// Writes `out_indptr` and the report.
template <typename indptr_t>
void sample_cols_indptr(const SampleColsCuda<indptr_t>& args,
                        LaunchShape shape,
                        StreamHandle stream);

// Then, unless there was a fault, `edge`.
template <typename indptr_t>
void sample_cols_edges(const SampleColsCuda<indptr_t>& args,
                       StreamHandle stream);

}  // namespace gsample
