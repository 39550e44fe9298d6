// Selection of edges of columns, of which only lengths and places are known, on
// a GPU: what bind/ fills in, and what sample_frontier.cuh reads. All pointers
// are to the device's memory.
#pragma once

#include "../args.h"
#include "device.h"
#include "report.h"

namespace gsample {

struct SampleColumn;

struct SampleFrontierCuda {
  // The candidates as a CSC of their own, without `indices` and `fanouts`.
  Relation<int64_t, int64_t> columns;
  bool knows_edges;            // else `indptr` says how many they are
  const int64_t* start;        // [n] position of the first candidate
  const int64_t* id;           // [n] node that draws
  const int64_t* root;         // [n] its tree, or null
  const int64_t* column_time;  // [n] with edge times, else null
  int64_t n;
  int64_t k;        // edges a column; -1 takes all
  uint64_t stream;  // key of the draws
  SampleOptions options;

  int64_t* out_indptr;  // [n + 1]
  int64_t* edge;        // [size], which the report tells
  Report* report;
  int64_t* totals;       // [blocks] scratch
  SampleColumn* column;  // [n] scratch
  int64_t* lists;        // [size] scratch, uniform without replacement
  TakenWeight* taken;    // [size] scratch, see needs_taken()
  // See needs_trees().
  int64_t* longest;    // the most candidates of a column that is drawn from
  uint64_t* tree;      // [trees * tree_words] scratch
  int64_t tree_words;  // of a tree
  int64_t trees;

  GSAMPLE_HD bool needs_slots() const {
    return k >= 0 && !options.replace && columns.cum_weight == nullptr;
  }
  // Weighted without replacement: few draws of a column are a thread's, and
  // many are a warp's.
  GSAMPLE_HD bool needs_taken() const {
    return in_turn() && k >= 0 && k <= kTurnFrontierSlots;
  }
  GSAMPLE_HD bool needs_trees() const {
    return in_turn() && k > kTurnFrontierSlots;
  }

 private:
  static constexpr int64_t kTurnFrontierSlots = 32;

  GSAMPLE_HD bool in_turn() const {
    return !options.replace && columns.cum_weight != nullptr;
  }
};

// Words of a SampleColumn.
constexpr int64_t kFrontierWords = 5;

LaunchShape sample_frontier_shape(const SampleFrontierCuda& args);

// Writes `out_indptr`, `column` and the report.
void sample_frontier_indptr(const SampleFrontierCuda& args,
                            LaunchShape shape,
                            StreamHandle stream);

// Then, unless there was a fault, `edge`.
void sample_frontier_edges(const SampleFrontierCuda& args, StreamHandle stream);

}  // namespace gsample
