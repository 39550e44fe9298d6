#include "sample_frontier.h"

#include <algorithm>

#include "count_columns.h"
#include "select_columns.h"

namespace gsample {

namespace {

constexpr int64_t kBlock = 1024;  // columns of one task

}  // namespace

FrontierSampler::FrontierSampler(const SampleFrontierArgs& args)
    : args_(args), first_(args.num_columns), length_(args.num_columns) {}

Status FrontierSampler::count(int64_t* indptr) {
  const int64_t n = args_.num_columns;
  std::atomic<bool> valid{true};
  Interrupt interrupt;
  const int64_t blocks = (n + kBlock - 1) / kBlock;
  parallel_items(blocks, blocks < 4 ? 1 : args_.threads, [&](int64_t block) {
    interrupt.poll();
    const int64_t begin = block * kBlock;
    if (!interrupt.stopped() &&
        !count_block(begin, std::min(n, begin + kBlock), indptr + 1))
      valid = false;
  });
  indptr[0] = 0;
  if (interrupt.stopped())
    return Status::kInterrupted;
  if (!valid)
    return Status::kFault;
  for (int64_t i = 0; i < n; ++i)
    indptr[i + 1] += indptr[i];
  return Status::kDone;
}

bool FrontierSampler::count_block(int64_t begin, int64_t end, int64_t* counts) {
  int64_t column[kBlock];
  const int64_t n = end - begin;
  for (int64_t i = 0; i < n; ++i)
    column[i] = begin + i;
  int64_t* first = first_.data() + begin;
  int64_t* length = length_.data() + begin;
  ColumnCounter<int64_t, int64_t> counter(args_.columns, args_.options, 0);
  if (!counter.find(column, n, first, length))
    return false;
  for (int64_t i = 0; args_.column_time != nullptr && i < n; ++i)
    counter.restrict(args_.column_time[begin + i], first + i, length + i);
  counter.count(column, n, first, length, counts + begin);
  return true;
}

Status FrontierSampler::select(const int64_t* indptr, int64_t* edge) const {
  const int64_t n = args_.num_columns;
  Interrupt interrupt;
  const int64_t blocks = (n + kBlock - 1) / kBlock;
  parallel_items(blocks, blocks < 4 ? 1 : args_.threads, [&](int64_t block) {
    interrupt.poll();
    const int64_t begin = block * kBlock;
    if (!interrupt.stopped())
      select_range(begin, std::min(n, begin + kBlock), indptr, edge);
  });
  return interrupt.stopped() ? Status::kInterrupted : Status::kDone;
}

void FrontierSampler::select_range(int64_t begin,
                                   int64_t end,
                                   const int64_t* indptr,
                                   int64_t* edge) const {
  const ColumnCounter<int64_t, int64_t> counter(args_.columns, args_.options,
                                                0);
  ColumnSelector<int64_t, int64_t> selector(nullptr,
                                            args_.columns.cum_weight != nullptr,
                                            args_.options.replace, args_.key);
  const int64_t* limit = edge + indptr[end];
  for (int64_t i = begin; i < end; ++i) {
    const int64_t n = indptr[i + 1] - indptr[i];
    if (n == 0)
      continue;
    const int64_t size = length_[i] < 0 ? ~length_[i] : length_[i];
    const int64_t skipped = first_[i] - args_.columns.indptr[i];
    const Column<int64_t> column{
        args_.start[i] + skipped,
        size,
        n,
        args_.root == nullptr ? 0 : static_cast<uint32_t>(args_.root[i]),
        static_cast<uint64_t>(args_.id[i]),
        counter.weights(i, first_[i], size),
        edge + indptr[i]};
    if (length_[i] < 0)
      take_all(column, limit);
    else
      selector.add(column);
  }
  selector.flush();
}

}  // namespace gsample
