// One hop of one relation for columns whose edges lie anywhere, on disk say:
// only their lengths are known, and where each of them starts.
#pragma once

#include <stdint.h>

#include <vector>

#include "../args.h"
#include "parallel.h"

namespace gsample {

struct SampleFrontierArgs {
  // The candidates as a CSC of their own. Its `indices` are null: what is
  // selected is a position, and `indptr` says only how long columns are.
  Relation<int64_t, int64_t> columns;
  const int64_t* start;        // [num_columns] position of the first candidate
  const int64_t* id;           // [num_columns] node that draws
  const int64_t* root;         // [num_columns] its tree, or null
  const int64_t* column_time;  // [num_columns] with edge times, else null
  int64_t num_columns;
  uint64_t key;  // the stream of this hop and relation
  SampleOptions options;
  int threads;
};

// count() and then select(), into outputs of the caller.
class FrontierSampler {
 public:
  explicit FrontierSampler(const SampleFrontierArgs& args);

  // Writes indptr [num_columns + 1] of the result. kFault: the columns'
  // `indptr` does not ascend from 0 to the number of edges.
  Status count(int64_t* indptr);
  // Writes the position of each selected edge [indptr[num_columns]], in slot
  // order; all edges of a column come in the order of the graph.
  Status select(const int64_t* indptr, int64_t* edge) const;

 private:
  bool count_block(int64_t begin, int64_t end, int64_t* counts);
  void select_range(int64_t begin,
                    int64_t end,
                    const int64_t* indptr,
                    int64_t* edge) const;

  const SampleFrontierArgs& args_;
  std::vector<int64_t> first_;   // [num_columns] first candidate in time
  std::vector<int64_t> length_;  // [num_columns] candidates; ~length: take all
};

}  // namespace gsample
