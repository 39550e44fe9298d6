// Random selection of edges in columns of one relation.
#pragma once

#include "../args.h"
#include "buffer.h"
#include "parallel.h"

namespace gsample {

// Call count() and then select(); the caller owns the outputs.
template <typename indptr_t>
class ColumnsSampler {
 public:
  explicit ColumnsSampler(const SampleColumnsArgs<indptr_t>& args);

  // Writes indptr [n + 1] of the result. kFault: a column is outside [0,
  // all_cols), its edges are out of range, or the result overflows `indptr`.
  Status count(indptr_t* indptr);
  // Writes the position of each selected edge [indptr[n]], in slot order; if
  // all edges of a column are selected, in the order of the relation.
  Status select(const indptr_t* indptr, int64_t* edge) const;

 private:
  template <typename body_t>
  Status for_blocks(const body_t& body) const;
  bool count_block(int64_t begin, int64_t end, indptr_t* counts);
  void select_block(int64_t begin,
                    int64_t end,
                    const indptr_t* indptr,
                    int64_t* edge) const;

  const SampleColumnsArgs<indptr_t>& a_;
  Buffer<indptr_t> memory_;
  indptr_t* first_;   // [n] first candidate within the time window
  indptr_t* length_;  // [n] candidates; ~length: select all
};

}  // namespace gsample
