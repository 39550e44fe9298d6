#include "slice_matrix.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "pair_filter.h"
#include "prefetch.h"
#include "tables.h"

namespace gsample {

namespace {

constexpr int64_t kGrain = 2048;        // fewest columns of a task
constexpr int64_t kEdgeGrain = 16384;   // fewest edges of a task
constexpr int64_t kStrip = 8192;        // edges filtered at a time
constexpr int64_t kPrefetch = 16;       // table accesses in flight
constexpr int64_t kColumnsAhead = 16;   // columns whose edges are prefetched
constexpr int64_t kPointersAhead = 48;  // columns whose pointers are prefetched
constexpr int64_t kLinesAhead = 16;     // most cache lines of a column

// Splits columns into parts of about equal numbers of edges: the start of each,
// and the end of the last.
template <typename indptr_t>
std::vector<int64_t> cut_columns(const indptr_t* indptr,
                                 int64_t num_cols,
                                 int threads) {
  const int64_t num_edges = indptr[num_cols];
  const int64_t parts =
      std::max<int64_t>(1, std::min<int64_t>(threads, num_edges / kEdgeGrain));
  std::vector<int64_t> cuts(parts + 1, 0);
  for (int64_t part = 1; part < parts; ++part)
    cuts[part] =
        std::lower_bound(indptr, indptr + num_cols,
                         static_cast<indptr_t>(num_edges / parts * part)) -
        indptr;
  cuts[parts] = num_cols;
  return cuts;
}

}  // namespace

// The positions of each row id in a list of rows, which may repeat it.
class RowPlaces {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  RowPlaces(const int64_t* rows, int64_t n) : next_(n, kNone) {
    table_.begin_call(0);
    table_.reserve(0, n);
    std::vector<uint32_t> last(n);
    for (int64_t i = 0; i < n; ++i) {
      const uint32_t place = static_cast<uint32_t>(i);
      const uint32_t first = table_.find_or_insert(rows[i], place);
      if (first != place)
        next_[last[first]] = place;
      last[first] = place;
    }
  }
  void prefetch(uint64_t row) const { table_.prefetch(row); }
  // The first position of a row, or kNone. Thread-safe.
  uint32_t first(uint64_t row) {
    uint32_t place;
    return table_.find(row, &place) ? place : kNone;
  }
  uint32_t next(uint32_t place) const { return next_[place]; }

 private:
  HashTable<uint64_t> table_;
  std::vector<uint32_t> next_;
};

namespace {

// Prefetches the next `n` columns: first their pointers, then their edges. The
// hardware prefetcher would only detect the sequence after some lines.
template <typename indptr_t, typename index_t>
void prefetch_columns(const Matrix<indptr_t, index_t>& matrix,
                      const int64_t* cols,
                      int64_t n) {
  constexpr int64_t kPerLine = 64 / sizeof(index_t);
  if (n > kPointersAhead)
    __builtin_prefetch(matrix.indptr + cols[kPointersAhead]);
  if (n <= kColumnsAhead)
    return;
  const int64_t begin = matrix.indptr[cols[kColumnsAhead]];
  const int64_t end = std::min<int64_t>(matrix.indptr[cols[kColumnsAhead] + 1],
                                        begin + kLinesAhead * kPerLine);
  for (int64_t e = begin; e < end; e += kPerLine) {
    __builtin_prefetch(matrix.indices + e);
    asm volatile("");  // GCC 12 removes a loop of prefetches as dead
  }
}

}  // namespace

template <typename indptr_t, typename index_t>
Status slice_cols_indptr(const Matrix<indptr_t, index_t>& matrix,
                         const int64_t* cols,
                         int64_t n,
                         indptr_t* indptr,
                         int threads) {
  std::atomic<bool> valid{true};
  indptr[0] = 0;
  parallel_ranges(n, kGrain, threads, [&](int64_t begin, int64_t end) {
    bool all = true;
    for (int64_t i = begin; i < end; ++i) {
      if (i + kPrefetch < end)
        prefetch_item(matrix.indptr, cols[i + kPrefetch]);
      const bool ok = is_column(matrix, cols[i]);
      indptr[i + 1] =
          ok ? matrix.indptr[cols[i] + 1] - matrix.indptr[cols[i]] : 0;
      all &= ok;
    }
    if (!all)
      valid = false;
  });
  int64_t total = 0;
  for (int64_t i = 0; i < n; ++i) {
    total += indptr[i + 1];
    indptr[i + 1] = static_cast<indptr_t>(total);
  }
  // With repeated columns the number of edges may overflow int32.
  if (total > static_cast<int64_t>(std::numeric_limits<indptr_t>::max()))
    return Status::kFault;
  return valid ? Status::kDone : Status::kFault;
}

template <typename indptr_t, typename index_t>
void slice_cols_edges(const Matrix<indptr_t, index_t>& matrix,
                      const int64_t* cols,
                      int64_t n,
                      const indptr_t* indptr,
                      index_t* indices,
                      int64_t* edge,
                      int threads) {
  const std::vector<int64_t> cuts = cut_columns(indptr, n, threads);
  run_tasks(static_cast<int>(cuts.size()) - 1, [&](int part) {
    const int64_t end = cuts[part + 1];
    for (int64_t i = cuts[part]; i < end; ++i) {
      prefetch_columns(matrix, cols + i, end - i);
      const int64_t first = matrix.indptr[cols[i]];
      const int64_t to = indptr[i], length = indptr[i + 1] - indptr[i];
      for (int64_t j = 0; j < length; ++j) {
        indices[to + j] = matrix.indices[first + j];
        edge[to + j] = first + j;
      }
    }
  });
}

// Finds the edges of a part. The edges of all columns are consecutive: they are
// filtered in strips, and belong to the column whose range has their position.
template <typename indptr_t, typename index_t>
void RowSlice<indptr_t, index_t>::collect(Part& part,
                                          const PairFilter& filter,
                                          RowPlaces& places,
                                          Interrupt& interrupt) {
  const index_t* indices = matrix_.indices;
  const indptr_t* indptr = matrix_.indptr;
  Buffer<int64_t> passed;  // edges of a strip that pass the filter
  const auto scan = [&](int64_t first, int64_t last) {
    passed.reserve(last - first);
    return filter.scan(0, indices, first, last, passed.data());
  };
  // Adds edge passed[i], of `size`, to column v.
  const auto add = [&](int64_t i, int64_t size, int64_t v) {
    if (i + kPrefetch < size)
      places.prefetch(indices[passed[i + kPrefetch]]);
    const int64_t e = passed[i];
    for (uint32_t r = places.first(indices[e]); r != RowPlaces::kNone;
         r = places.next(r)) {
      part.add(e, r);
      ++counts_[v];
    }
  };
  int64_t v = part.begin;
  if (cols_ != nullptr) {
    for (; v < part.end && !interrupt.stopped(); ++v) {
      prefetch_columns(matrix_, cols_ + v, part.end - v);
      const int64_t size = scan(indptr[cols_[v]], indptr[cols_[v] + 1]);
      for (int64_t i = 0; i < size; ++i)
        add(i, size, v);
      if (v % kGrain == 0)
        interrupt.poll();
    }
    return;
  }
  const int64_t end = indptr[part.end];
  for (int64_t e = indptr[v]; e < end && !interrupt.stopped(); e += kStrip) {
    const int64_t size = scan(e, std::min(e + kStrip, end));
    for (int64_t i = 0; i < size; ++i) {
      while (indptr[v + 1] <= passed[i])
        ++v;
      add(i, size, v);
    }
    interrupt.poll();
  }
}

template <typename indptr_t, typename index_t>
Status RowSlice<indptr_t, index_t>::find(indptr_t* indptr) {
  // The start of each column if all its edges remain: this divides the work.
  const indptr_t* begin = matrix_.indptr;
  if (cols_ != nullptr) {
    if (slice_cols_indptr(matrix_, cols_, num_cols_, indptr, threads_) !=
        Status::kDone)
      return Status::kFault;
    begin = indptr;
  } else {
    for (int64_t v = 0; v < num_cols_; ++v)
      if (!is_column(matrix_, v))
        return Status::kFault;
  }
  PairFilter filter;
  filter.clear(n_, 1);
  for (int64_t i = 0; i < n_; ++i)
    filter.insert(0, rows_[i]);
  RowPlaces places(rows_, n_);
  counts_.assign(num_cols_, 0);
  const std::vector<int64_t> cuts = cut_columns(begin, num_cols_, threads_);
  parts_.resize(cuts.size() - 1);
  Interrupt interrupt;
  run_tasks(static_cast<int>(parts_.size()), [&](int p) {
    parts_[p].begin = cuts[p];
    parts_[p].end = cuts[p + 1];
    parts_[p].size = 0;
    collect(parts_[p], filter, places, interrupt);
  });
  if (interrupt.stopped())
    return Status::kInterrupted;
  int64_t total = 0;
  indptr[0] = 0;
  for (int64_t v = 0; v < num_cols_; ++v) {
    total += counts_[v];
    indptr[v + 1] = static_cast<indptr_t>(total);
  }
  // With repeated rows the number of edges may overflow int32.
  if (total > static_cast<int64_t>(std::numeric_limits<indptr_t>::max()))
    return Status::kFault;
  return Status::kDone;
}

template <typename indptr_t, typename index_t>
void RowSlice<indptr_t, index_t>::write(const indptr_t* indptr,
                                        index_t* indices,
                                        int64_t* edge) {
  run_tasks(static_cast<int>(parts_.size()), [&](int p) {
    const Part& part = parts_[p];
    const int64_t to = indptr[part.begin];
    std::copy(part.edge.data(), part.edge.data() + part.size, edge + to);
    std::copy(part.row.data(), part.row.data() + part.size, indices + to);
  });
}

#define GSAMPLE_INSTANTIATE(indptr_t, index_t)                                \
  template Status slice_cols_indptr(const Matrix<indptr_t, index_t>&,         \
                                    const int64_t*, int64_t, indptr_t*, int); \
  template void slice_cols_edges(const Matrix<indptr_t, index_t>&,            \
                                 const int64_t*, int64_t, const indptr_t*,    \
                                 index_t*, int64_t*, int);                    \
  template class RowSlice<indptr_t, index_t>;
GSAMPLE_INSTANTIATE(int32_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int64_t)
#undef GSAMPLE_INSTANTIATE

}  // namespace gsample
