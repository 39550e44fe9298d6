#include "has_edges.h"

#include <atomic>

#include "entries.h"
#include "prefetch.h"

namespace gsample {

namespace {

constexpr int64_t kGrain = 256;  // fewest columns of a task
constexpr int64_t kAhead = 8;    // columns prefetched

}  // namespace

template <typename indptr_t, typename index_t>
Status has_edges(const HasEdgesArgs<indptr_t, index_t>& args, bool* found) {
  const Matrix<indptr_t, index_t>& matrix = args.matrix;
  if (args.ptr[0] != 0 || args.ptr[args.n] != args.num_queries)
    return Status::kFault;
  const auto column = [&](int64_t i) { return args.cols ? args.cols[i] : i; };
  std::atomic<bool> valid{true};
  Interrupt interrupt;
  parallel_ranges(args.n, kGrain, args.threads, [&](int64_t i, int64_t last) {
    Entries<index_t> entries(args.num_queries);
    for (; i < last && valid && !interrupt.stopped(); ++i) {
      if (i + 2 * kAhead < last)
        prefetch_item(matrix.indptr, column(i + 2 * kAhead));
      if (i + kAhead < last && is_column(matrix, column(i + kAhead)))
        __builtin_prefetch(matrix.indices + matrix.indptr[column(i + kAhead)]);
      const int64_t v = column(i), from = args.ptr[i], to = args.ptr[i + 1];
      if (!is_column(matrix, v) || from < 0 || from > to ||
          to > args.num_queries) {
        valid = false;
        return;
      }
      const index_t* begin = matrix.indices + matrix.indptr[v];
      const index_t* end = matrix.indices + matrix.indptr[v + 1];
      if (args.checks_rows &&
          !(are_rows(begin, end, matrix.num_rows) &&
            are_rows(args.rows + from, args.rows + to, matrix.num_rows))) {
        valid = false;
        return;
      }
      entries.find(begin, end, args.rows + from, to - from, found + from);
      if (i % kGrain == 0)
        interrupt.poll();
    }
  });
  if (interrupt.stopped())
    return Status::kInterrupted;
  return valid ? Status::kDone : Status::kFault;
}

#define GSAMPLE_HAS_EDGES(indptr_t, index_t) \
  template Status has_edges(const HasEdgesArgs<indptr_t, index_t>&, bool*)
GSAMPLE_HAS_EDGES(int32_t, int32_t);
GSAMPLE_HAS_EDGES(int64_t, int32_t);
GSAMPLE_HAS_EDGES(int64_t, int64_t);
#undef GSAMPLE_HAS_EDGES

}  // namespace gsample
