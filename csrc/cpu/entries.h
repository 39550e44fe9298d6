// Searches for rows among the entries of one column at a time.
#pragma once

#include <stdint.h>

#include <algorithm>
#include <vector>

#include "among.h"
#include "draws.h"

namespace gsample {

// Entries may have any order. A filter has one bit per value of a row's low
// bits: it is exact if no row has more bits, otherwise the rows that pass are
// searched. A few pairs of rows and entries are all compared.
template <typename index_t>
class Entries {
 public:
  explicit Entries(int64_t num_queries) {
    int64_t bits = kLeastBits;
    while (bits < kMostBits && bits < 16 * num_queries)
      bits *= 2;
    mask_ = static_cast<uint64_t>(bits) - 1;
  }

  // Writes for each row whether it is an entry.
  void find(const index_t* begin,
            const index_t* end,
            const index_t* rows,
            int64_t n,
            bool* found) {
    if ((end - begin) * n <= kPairs)
      return compare(begin, end, rows, n, found);
    if (std::min<int64_t>(n, end - begin) <= kFew) {
      for (int64_t i = 0; i < n; ++i)
        found[i] = is_among(begin, end, rows[i]);
      return;
    }
    is_sorted_ = false;
    uint64_t* const filter = zeros();
    uint64_t all = 0;
    for (const index_t* e = begin; e < end; ++e) {
      all |= static_cast<uint64_t>(*e);
      filter[word(*e)] |= bit(*e);
    }
    for (int64_t i = 0; i < n; ++i) {
      all |= static_cast<uint64_t>(rows[i]);
      found[i] = (filter[word(rows[i])] & bit(rows[i])) != 0;
    }
    for (const index_t* e = begin; e < end; ++e)
      filter[word(*e)] = 0;
    for (int64_t i = 0; all > mask_ && i < n; ++i)
      found[i] = found[i] && search(&begin, &end, rows[i]);
  }

 private:
  static constexpr int64_t kFew = 8;  // rows that are compared with all entries
  static constexpr int64_t kPairs = 1024;      // of rows and entries
  static constexpr int64_t kLinear = 64;       // entries that are searched
                                               // linearly
  static constexpr int64_t kLeastBits = 4096;  // of a filter
  static constexpr int64_t kMostBits = 1 << 20;

  // Compares all pairs, one entry with several rows at a time.
  static inline __attribute__((always_inline)) void compare_all(
      const index_t* begin,
      const index_t* end,
      const index_t* rows,
      int64_t n,
      bool* found) {
    constexpr int64_t kWidth = 16;
    for (int64_t first = 0; first < n; first += kWidth) {
      const int64_t count = std::min(kWidth, n - first);
      index_t row[kWidth] = {}, equal[kWidth] = {};
      for (int64_t i = 0; i < count; ++i)
        row[i] = rows[first + i];
      for (const index_t* e = begin; e < end; ++e)
        for (int64_t i = 0; i < kWidth; ++i)
          equal[i] |= -static_cast<index_t>(row[i] == *e);
      for (int64_t i = 0; i < count; ++i)
        found[first + i] = equal[i] != 0;
    }
  }

#if defined(__x86_64__)
  __attribute__((target("avx2"))) static void compare_avx2(const index_t* begin,
                                                           const index_t* end,
                                                           const index_t* rows,
                                                           int64_t n,
                                                           bool* found) {
    compare_all(begin, end, rows, n, found);
  }
#endif

  static void compare(const index_t* begin,
                      const index_t* end,
                      const index_t* rows,
                      int64_t n,
                      bool* found) {
#if defined(__x86_64__)
    if (has_avx2())
      return compare_avx2(begin, end, rows, n, found);
#endif
    compare_all(begin, end, rows, n, found);
  }

  // Thread-local memory that is zero between calls.
  uint64_t* zeros() const {
    static thread_local std::vector<uint64_t> filter;
    if (filter.size() <= mask_ / 64)
      filter.resize((mask_ + 1) / 64);
    return filter.data();
  }

  uint64_t word(index_t row) const {
    return (static_cast<uint64_t>(row) & mask_) / 64;
  }
  uint64_t bit(index_t row) const {
    return uint64_t{1} << static_cast<uint64_t>(row) % 64;
  }

  // Sorts the entries before the first binary search.
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

  bool is_sorted_ = false;
  uint64_t mask_;
  std::vector<index_t> sorted_;
};

// Whether all rows are in [0, num_rows).
template <typename index_t>
bool are_rows(const index_t* begin, const index_t* end, int64_t num_rows) {
  bool all = true;
  for (; begin < end; ++begin)
    all &= static_cast<uint64_t>(*begin) < static_cast<uint64_t>(num_rows);
  return all;
}

}  // namespace gsample
