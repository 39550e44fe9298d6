// Random selection of edges in columns of one relation.
#pragma once

#include "../args.h"
#include "buffer.h"
#include "parallel.h"

namespace gsample {

// count() and then select(), into outputs of the caller.
template <typename indptr_t>
class ColumnsSampler {
 public:
  explicit ColumnsSampler(const SampleColumnsArgs<indptr_t>& args);

  // Writes indptr [n + 1] of the result. kFault: a column is outside
  // [0, all_cols) or no range of edges, or `indptr` cannot count the result.
  Status count(indptr_t* indptr);
  // Writes the position of each selected edge [indptr[n]], in slot order; all
  // edges of a column come in the order of the relation.
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
  indptr_t* first_;   // [n] first candidate in time
  indptr_t* length_;  // [n] candidates; ~length: take all
};

}  // namespace gsample
