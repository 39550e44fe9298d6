// The edges of columns whose rows are in a list. The list is sorted; each
// thread searches it for the row of one edge, whatever the edge's column, so
// that hubs spread over many threads. Two cooperative launches: the first
// counts, the second writes.
#include "match_rows.h"

#include "columns.cuh"
#include "launch.cuh"

namespace gsample {

constexpr int kMatchThreads = 256;  // per block

struct MatchShared {
  BlockSums sums;
};

__device__ inline int64_t row_key(int64_t batch,
                                  int64_t num_rows,
                                  int64_t row) {
  return static_cast<int64_t>(static_cast<uint64_t>(batch) *
                                  static_cast<uint64_t>(num_rows) +
                              static_cast<uint64_t>(row));
}

// The batch of item i of a list.
template <typename args_t>
__device__ int64_t batch_of(const args_t& args, int64_t i) {
  if (args.ptr != nullptr)
    return column_of(args.ptr, args.batches, i);
  return args.batch == nullptr ? 0 : args.batch[i];
}

inline __global__ void __launch_bounds__(kMatchThreads)
    row_keys_kernel(RowKeysCuda args) {
  if (args.ptr != nullptr)
    check_ptr(args.ptr, args.batches, args.n, args.report);
  for (int64_t i = global_rank(); i < args.n; i += grid_threads()) {
    const int64_t row = args.rows[i];
    if (row < 0 || row >= args.num_rows)
      note_fault(args.report, Report::kRow, i, row);
    args.key[i] = row_key(batch_of(args, i), args.num_rows, row);
  }
}

template <typename indptr_t, typename index_t, typename row_t>
class RowMatcher {
 public:
  using Args = MatchRowsCuda<indptr_t, index_t, row_t>;

  __device__ explicit RowMatcher(const Args& args) : a_(args) {}

  // The number of candidates of column i.
  __device__ int64_t candidates(int64_t i) const {
    return read_bounds(a_.indptr, a_.all_cols, a_.num_edges, column(i), i,
                       a_.report)
        .length;
  }

  // Positions of the row of candidate p.
  struct Match {
    int64_t col;
    int64_t edge;
    int64_t first;  // in `place`
    int64_t count;
  };

  __device__ Match find(int64_t p) const {
    const int64_t i = column_of(a_.begin, a_.num_cols, p);
    const int64_t edge = a_.indptr[column(i)] + (p - a_.begin[i]);
    const int64_t row = a_.indices[edge];
    if (row < 0 || row >= a_.num_rows)
      return {i, edge, 0, 0};
    const int64_t key = row_key(batch_of(a_, i), a_.num_rows, row);
    const int64_t first = search(key, 0);
    if (first == a_.num_keys || a_.key[first] != key)
      return {i, edge, first, 0};
    const bool last = first + 1 == a_.num_keys || a_.key[first + 1] != key;
    if (!a_.repeats || last)
      return {i, edge, first, 1};
    const int64_t after =
        key == INT64_MAX ? a_.num_keys : search(key + 1, first);
    return {i, edge, first, after - first};
  }

  __device__ void emit(int64_t p, int64_t to) const {
    const Match match = find(p);
    if (a_.out_indptr != nullptr && p == a_.begin[match.col])
      a_.out_indptr[match.col] = static_cast<indptr_t>(to);
    for (int64_t j = 0; j < match.count; ++j) {
      a_.row[to + j] = static_cast<row_t>(a_.place[match.first + j]);
      a_.edge[to + j] = match.edge;
      if (a_.col != nullptr)
        a_.col[to + j] = match.col;
    }
  }

  // A column without candidates starts where the next one does.
  __device__ void begin_empty(int64_t i, int64_t size) const {
    const int64_t p = a_.begin[i], all = a_.begin[a_.num_cols];
    if (i < a_.num_cols && p < a_.begin[i + 1])
      return;
    a_.out_indptr[i] = p < all
                           ? a_.out_indptr[column_of(a_.begin, a_.num_cols, p)]
                           : static_cast<indptr_t>(size);
  }

 private:
  __device__ int64_t column(int64_t i) const {
    return a_.cols == nullptr ? i % a_.all_cols : a_.cols[i];
  }

  // The first position from `low` on whose key is not less than `key`.
  __device__ int64_t search(int64_t key, int64_t low) const {
    int64_t high = a_.num_keys;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      const bool less = a_.key[middle] < key;
      low = less ? middle + 1 : low;
      high = less ? high : middle;
    }
    return low;
  }

  const Args& a_;
};

template <typename indptr_t, typename index_t, typename row_t>
__global__ void __launch_bounds__(kMatchThreads)
    match_rows_count_kernel(MatchRowsCuda<indptr_t, index_t, row_t> args) {
  GSAMPLE_SHARED(MatchShared, shared);
  const RowMatcher<indptr_t, index_t, row_t> matcher(args);
  if (args.ptr != nullptr)
    check_ptr(args.ptr, args.batches, args.num_cols, args.report);
  for (int64_t b = global_rank(); args.whole && b <= args.batches;
       b += grid_threads())
    if (args.ptr[b] != b * args.all_cols)
      note_fault(args.report, Report::kPtr, b, args.num_cols);
  write_offsets([&](int64_t i) { return matcher.candidates(i); }, args.num_cols,
                args.begin, args.totals, shared.sums, args.report);
  grid_barrier();
  count_items([&](int64_t p) { return matcher.find(p).count; },
              args.begin[args.num_cols], args.totals, shared.sums);
  grid_barrier();
  int64_t size;
  sum_blocks_before(args.totals, shared.sums, &size);
  if (global_rank() != 0)
    return;
  args.report->size = size;
  if (args.out_indptr != nullptr && sizeof(indptr_t) == 4 && size > INT32_MAX)
    note_fault(args.report, Report::kOverflow, args.num_cols, size);
}

template <typename indptr_t, typename index_t, typename row_t>
__global__ void __launch_bounds__(kMatchThreads)
    match_rows_write_kernel(MatchRowsCuda<indptr_t, index_t, row_t> args) {
  GSAMPLE_SHARED(MatchShared, shared);
  const RowMatcher<indptr_t, index_t, row_t> matcher(args);
  const int64_t size =
      emit_items([&](int64_t p) { return matcher.find(p).count; },
                 [&](int64_t p, int64_t to) { matcher.emit(p, to); },
                 args.begin[args.num_cols], args.totals, shared.sums);
  if (args.out_indptr == nullptr)
    return;
  grid_barrier();
  for (int64_t i = global_rank(); i <= args.num_cols; i += grid_threads())
    matcher.begin_empty(i, size);
}

void row_keys(const RowKeysCuda& args, StreamHandle stream) {
  launch("row_keys", row_keys_kernel, shape_for(kMatchThreads, args.n), stream,
         args);
}

template <typename indptr_t, typename index_t, typename row_t>
LaunchShape match_rows_shape(
    const MatchRowsCuda<indptr_t, index_t, row_t>& args) {
  // Assumes 16 edges per column: the number is unknown here. All blocks of
  // either launch must run at a time.
  const int64_t work = 16 * args.num_cols;
  const LaunchShape count = cooperative_shape(
      match_rows_count_kernel<indptr_t, index_t, row_t>, kMatchThreads, work);
  const LaunchShape write = cooperative_shape(
      match_rows_write_kernel<indptr_t, index_t, row_t>, kMatchThreads, work);
  return count.blocks < write.blocks ? count : write;
}

template <typename indptr_t, typename index_t, typename row_t>
void match_rows_count(const MatchRowsCuda<indptr_t, index_t, row_t>& args,
                      LaunchShape shape,
                      StreamHandle stream) {
  launch_cooperative("match_rows_count",
                     match_rows_count_kernel<indptr_t, index_t, row_t>, shape,
                     stream, args);
}

template <typename indptr_t, typename index_t, typename row_t>
void match_rows_write(const MatchRowsCuda<indptr_t, index_t, row_t>& args,
                      LaunchShape shape,
                      StreamHandle stream) {
  launch_cooperative("match_rows_write",
                     match_rows_write_kernel<indptr_t, index_t, row_t>, shape,
                     stream, args);
}

#define GSAMPLE_INSTANTIATE(indptr_t, index_t, row_t)              \
  template LaunchShape match_rows_shape(                           \
      const MatchRowsCuda<indptr_t, index_t, row_t>&);             \
  template void match_rows_count(                                  \
      const MatchRowsCuda<indptr_t, index_t, row_t>&, LaunchShape, \
      StreamHandle);                                               \
  template void match_rows_write(                                  \
      const MatchRowsCuda<indptr_t, index_t, row_t>&, LaunchShape, \
      StreamHandle);
GSAMPLE_INSTANTIATE(int32_t, int32_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int32_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int64_t, int64_t)
// Rows of an induced subgraph are always int64.
GSAMPLE_INSTANTIATE(int32_t, int32_t, int64_t)
GSAMPLE_INSTANTIATE(int64_t, int32_t, int64_t)

}  // namespace gsample
