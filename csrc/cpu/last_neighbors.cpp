#include "last_neighbors.h"

#include <algorithm>
#include <atomic>

#include "../core/search.h"
#include "prefetch.h"

namespace gsample {

namespace {

constexpr int64_t kGrain = 256;  // fewest columns of a task
constexpr int64_t kBlock = 32;   // columns whose reads overlap
constexpr int64_t kLine = 64;    // bytes that one prefetch reads

// The columns of a block, in steps that prefetch the reads of the next step.
template <typename indptr_t, typename index_t>
class Block {
 public:
  using Args = LastNeighborsArgs<indptr_t, index_t>;

  Block(const Args& args, int64_t first)
      : a_(args), first_(first), size_(std::min(kBlock, args.n - first)) {}

  void prefetch_pointers() const {
    for (int64_t i = 0; i < size_; ++i)
      prefetch_item(a_.indptr, a_.cols[first_ + i]);
  }

  // Looks up the columns. False: one is out of range, or its pointers descend
  // or leave the edges.
  bool find() {
    for (int64_t i = 0; i < size_; ++i) {
      const int64_t v = a_.cols[first_ + i];
      begin_[i] = end_[i] = 0;
      if (v == -1)
        continue;
      if (v < 0 || v >= a_.num_cols)
        return false;
      begin_[i] = a_.indptr[v];
      end_[i] = a_.indptr[v + 1];
      if (begin_[i] < 0 || begin_[i] > end_[i] || end_[i] > a_.num_edges)
        return false;
      prefetch_times(i);
    }
    return true;
  }

  // Narrows columns to the edges that fill slots.
  void search() {
    for (int64_t i = 0; i < size_; ++i) {
      const int64_t until = a_.until[first_ + i];
      end_[i] = bound(i, until, a_.closed_end);
      if (a_.has_window && until >= INT64_MIN + a_.window)
        begin_[i] = bound(i, until - a_.window, !a_.closed_start);
      begin_[i] = end_[i] - std::min(end_[i] - begin_[i], a_.k);
      for (int64_t e = begin_[i]; e < end_[i]; e += kLine / sizeof(index_t))
        prefetch_item(a_.indices, e);
    }
  }

  void write(index_t* neighbor, int64_t* edge, int64_t* time) const {
    for (int64_t i = 0; i < size_; ++i) {
      const int64_t at = (first_ + i) * a_.k;
      fill(i, neighbor + at, index_t{-1},
           [&](int64_t e) { return a_.indices[e]; });
      fill(i, time + at, int64_t{0},
           [&](int64_t e) { return a_.edge_time[e]; });
      if (edge != nullptr)
        fill(i, edge + at, int64_t{-1}, [&](int64_t e) { return a_.id(e); });
    }
  }

 private:
  // Prefetches all times of a short column, else the start of the search.
  void prefetch_times(int64_t i) const {
    constexpr int64_t kStep = kLine / sizeof(int64_t), kShort = 8 * kStep;
    const int64_t size = end_[i] - begin_[i];
    if (size > kShort)
      return prefetch_item(a_.edge_time, begin_[i] + size / 2);
    for (int64_t e = 0; e < size + kStep; e += kStep)
      prefetch_item(a_.edge_time, begin_[i] + std::min(e, size));
  }

  // The first edge of column i after a time, or, unless `after`, not before it.
  int64_t bound(int64_t i, int64_t time, bool after) const {
    return after ? first_above(a_.edge_time, begin_[i], end_[i], time)
                 : first_not_below(a_.edge_time, begin_[i], end_[i], time);
  }

  template <typename item_t, typename read_t>
  void fill(int64_t i, item_t* row, item_t empty, const read_t& read) const {
    const int64_t first = begin_[i], last = end_[i], count = last - first;
    if (a_.ascending) {
      item_t* to = std::fill_n(row, a_.k - count, empty);
      for (int64_t e = first; e < last; ++e)
        *to++ = read(e);
    } else {
      for (int64_t j = 0; j < count; ++j)
        row[j] = read(last - 1 - j);
      std::fill_n(row + count, a_.k - count, empty);
    }
  }

  const Args& a_;
  const int64_t first_, size_;
  int64_t begin_[kBlock], end_[kBlock];
};

}  // namespace

template <typename indptr_t, typename index_t>
Status last_neighbors(const LastNeighborsArgs<indptr_t, index_t>& args,
                      index_t* neighbor,
                      int64_t* edge,
                      int64_t* time) {
  std::atomic<bool> valid{true};
  Interrupt interrupt;
  const int64_t blocks = (args.n + kBlock - 1) / kBlock;
  parallel_ranges(blocks, kGrain / kBlock, args.threads,
                  [&](int64_t b, int64_t last) {
                    for (; b < last && valid && !interrupt.stopped(); ++b) {
                      Block<indptr_t, index_t> block(args, b * kBlock);
                      block.prefetch_pointers();
                      if (!block.find()) {
                        valid = false;
                        return;
                      }
                      block.search();
                      block.write(neighbor, edge, time);
                      interrupt.poll();
                    }
                  });
  if (interrupt.stopped())
    return Status::kInterrupted;
  return valid ? Status::kDone : Status::kFault;
}

#define GSAMPLE_LAST_NEIGHBORS(indptr_t, index_t)                             \
  template Status last_neighbors(const LastNeighborsArgs<indptr_t, index_t>&, \
                                 index_t*, int64_t*, int64_t*)
GSAMPLE_LAST_NEIGHBORS(int32_t, int32_t);
GSAMPLE_LAST_NEIGHBORS(int64_t, int32_t);
GSAMPLE_LAST_NEIGHBORS(int64_t, int64_t);
#undef GSAMPLE_LAST_NEIGHBORS

}  // namespace gsample
