#include "has_edges.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "among.h"

namespace gsample {

namespace {

constexpr int64_t kGrain = 256;       // columns of one task, at least
constexpr int64_t kAhead = 8;         // columns whose edges are announced
constexpr int64_t kFew = 8;           // rows that are compared with all others
constexpr int64_t kLinear = 64;       // entries that are searched end to end
constexpr int64_t kLeastBits = 4096;  // of a filter
constexpr int64_t kMostBits = 1 << 20;

// The entries of one column at a time, in any order. A filter has a bit of each
// entry, by the low bits of its row: where all rows have no others it is exact,
// else what it lets pass is searched.
template <typename index_t>
class Entries {
 public:
  explicit Entries(int64_t num_queries) {
    int64_t bits = kLeastBits;
    while (bits < kMostBits && bits < 16 * num_queries)
      bits *= 2;
    mask_ = static_cast<uint64_t>(bits) - 1;
    filter_.resize(bits / 64);
  }

  // Writes for each of some rows whether it is an entry.
  void find(const index_t* begin,
            const index_t* end,
            const index_t* rows,
            int64_t n,
            bool* found) {
    is_sorted_ = false;
    uint64_t all = 0;
    for (const index_t* e = begin; e < end; ++e) {
      all |= static_cast<uint64_t>(*e);
      filter_[word(*e)] |= bit(*e);
    }
    for (int64_t i = 0; i < n; ++i) {
      all |= static_cast<uint64_t>(rows[i]);
      found[i] = (filter_[word(rows[i])] & bit(rows[i])) != 0;
    }
    for (const index_t* e = begin; e < end; ++e)
      filter_[word(*e)] = 0;
    for (int64_t i = 0; all > mask_ && i < n; ++i)
      found[i] = found[i] && search(&begin, &end, rows[i]);
  }

 private:
  uint64_t word(index_t row) const {
    return (static_cast<uint64_t>(row) & mask_) / 64;
  }
  uint64_t bit(index_t row) const {
    return uint64_t{1} << static_cast<uint64_t>(row) % 64;
  }

  // Sorts the entries before the first search by halves.
  bool search(const index_t** begin, const index_t** end, index_t row) {
    if (*end - *begin <= kLinear)
      return is_among(*begin, *end, row);
    if (!is_sorted_ && !std::is_sorted(*begin, *end)) {
      sorted_.assign(*begin, *end);
      std::sort(sorted_.begin(), sorted_.end());
      *begin = sorted_.data();
      *end = *begin + sorted_.size();
    }
    is_sorted_ = true;
    return std::binary_search(*begin, *end, row);
  }

  bool is_sorted_;
  uint64_t mask_;
  std::vector<uint64_t> filter_;
  std::vector<index_t> sorted_;
};

// Whether all of some rows are in [0, num_rows).
template <typename index_t>
bool are_rows(const index_t* begin, const index_t* end, int64_t num_rows) {
  bool all = true;
  for (; begin < end; ++begin)
    all &= static_cast<uint64_t>(*begin) < static_cast<uint64_t>(num_rows);
  return all;
}

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
      if (i + 2 * kAhead < last)  // whatever it is: nothing is read there
        __builtin_prefetch(matrix.indptr + column(i + 2 * kAhead));
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
      if (std::min<int64_t>(to - from, end - begin) <= kFew) {
        for (int64_t e = from; e < to; ++e)
          found[e] = is_among(begin, end, args.rows[e]);
      } else {
        entries.find(begin, end, args.rows + from, to - from, found + from);
      }
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
