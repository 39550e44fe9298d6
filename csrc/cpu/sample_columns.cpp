#include "sample_columns.h"

#include <algorithm>

#include "count_columns.h"
#include "select_columns.h"

namespace gsample {

namespace {

constexpr int64_t kBlock = 1024;             // columns of one task
constexpr int64_t kKept = int64_t{1} << 16;  // columns whose memory is reused

}  // namespace

template <typename indptr_t>
ColumnsSampler<indptr_t>::ColumnsSampler(
    const SampleColumnsArgs<indptr_t>& args)
    : a_(args) {
  static thread_local Buffer<indptr_t> kept;
  Buffer<indptr_t>& memory = args.n <= kKept ? kept : memory_;
  memory.reserve(2 * args.n);
  first_ = memory.data();
  length_ = first_ + args.n;
}

// Calls body(begin, end) on blocks of columns, until one call returns false.
template <typename indptr_t>
template <typename body_t>
Status ColumnsSampler<indptr_t>::for_blocks(const body_t& body) const {
  if (a_.n <= kBlock)
    return body(0, a_.n) ? Status::kDone : Status::kFault;
  std::atomic<bool> valid{true};
  Interrupt interrupt;
  const int64_t threads = a_.options.num_threads;
  parallel_items((a_.n + kBlock - 1) / kBlock,
                 static_cast<int>(std::min(threads, a_.n / kBlock)),
                 [&](int64_t block) {
                   interrupt.poll();
                   const int64_t begin = block * kBlock;
                   if (!interrupt.stopped() && valid &&
                       !body(begin, std::min(a_.n, begin + kBlock)))
                     valid = false;
                 });
  return interrupt.stopped() ? Status::kInterrupted
         : valid             ? Status::kDone
                             : Status::kFault;
}

template <typename indptr_t>
Status ColumnsSampler<indptr_t>::count(indptr_t* indptr) {
  const Status status = for_blocks([&](int64_t begin, int64_t end) {
    return count_block(begin, end, indptr + 1 + begin);
  });
  if (status != Status::kDone)
    return status;
  // With repeated columns the number of edges may overflow.
  bool fits = true;
  indptr_t total = indptr[0] = 0;
  for (int64_t i = 1; i <= a_.n; ++i) {
    fits &= !__builtin_add_overflow(total, indptr[i], &total);
    indptr[i] = total;
  }
  return fits ? Status::kDone : Status::kFault;
}

template <typename indptr_t>
bool ColumnsSampler<indptr_t>::count_block(int64_t begin,
                                           int64_t end,
                                           indptr_t* counts) {
  int64_t all[kBlock], count[kBlock];
  const int64_t n = end - begin;
  const int64_t* column = a_.cols == nullptr ? all : a_.cols + begin;
  bool bad = false;
  for (int64_t i = 0; a_.cols == nullptr && i < n; ++i)
    all[i] = begin + i;
  for (int64_t i = 0; a_.cols != nullptr && i < n; ++i)
    bad |= column[i] < 0 || column[i] >= a_.all_cols;
  indptr_t *first = first_ + begin, *length = length_ + begin;
  ColumnCounter<indptr_t, int64_t> counter(a_.edges, a_.options, 0);
  if (bad || !counter.find(column, n, first, length))
    return false;
  for (int64_t i = 0; a_.column_time != nullptr && i < n; ++i)
    counter.restrict(a_.column_time[begin + i], first + i, length + i);
  counter.count(column, n, first, length, count);
  for (int64_t i = 0; i < n; ++i)
    counts[i] = static_cast<indptr_t>(count[i]);
  return true;
}

template <typename indptr_t>
Status ColumnsSampler<indptr_t>::select(const indptr_t* indptr,
                                        int64_t* edge) const {
  return for_blocks([&](int64_t begin, int64_t end) {
    select_block(begin, end, indptr, edge);
    return true;
  });
}

template <typename indptr_t>
void ColumnsSampler<indptr_t>::select_block(int64_t begin,
                                            int64_t end,
                                            const indptr_t* indptr,
                                            int64_t* edge) const {
  if (begin == end)
    return;
  const ColumnCounter<indptr_t, int64_t> counter(a_.edges, a_.options, 0);
  ColumnSelector<int64_t, int64_t> selector(nullptr,
                                            a_.edges.cum_weight != nullptr,
                                            a_.options.replace, a_.streams[0]);
  const int64_t* limit = edge + indptr[end];
  int64_t batch = 0;
  for (int64_t i = begin; i < end; ++i) {
    if (a_.ptr != nullptr && (i == begin || i == a_.ptr[batch + 1])) {
      while (i >= a_.ptr[batch + 1])
        ++batch;
      selector.use_key(a_.streams[batch]);
    }
    const int64_t n = indptr[i + 1] - indptr[i];
    if (n == 0)
      continue;
    const int64_t v = a_.column(i);
    const indptr_t first = first_[i], length = length_[i];
    const int64_t size = length < 0 ? ~length : length;
    const Column<int64_t> column{a_.position(i, v, first),
                                 size,
                                 n,
                                 a_.tree_of(i),
                                 a_.node_of(i, v),
                                 counter.weights(i, v, first, size),
                                 edge + indptr[i]};
    if (length < 0)
      take_all(column, limit);
    else
      selector.add(column);
  }
  selector.flush();
}

template class ColumnsSampler<int32_t>;
template class ColumnsSampler<int64_t>;

}  // namespace gsample
