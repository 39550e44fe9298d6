#include "formats.h"

#include <string.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <vector>

#include "buffer.h"
#include "fix_weights.h"
#include "parallel.h"

namespace gsample {

namespace {

constexpr int64_t kGrain = 1 << 15;
constexpr int64_t kPrefetch = 24;  // edges prefetched

// Calls find(begin, end) on ranges of [0, size); find returns a position or -1.
// Returns the lowest position.
template <typename find_t>
int64_t find_first(int64_t size, const find_t& find) {
  std::atomic<int64_t> first{INT64_MAX};
  parallel_ranges(size, kGrain, max_threads(), [&](int64_t a, int64_t b) {
    const int64_t found = find(a, b);
    int64_t known = first.load();
    while (found >= 0 && found < known &&
           !first.compare_exchange_weak(known, found)) {
    }
  });
  return first.load() == INT64_MAX ? -1 : first.load();
}

}  // namespace

// Every thread counts and then places a contiguous part of the edges; parts are
// consecutive within a column, which keeps the sort stable.
template <typename input_t, typename indptr_t, typename index_t>
int64_t coo_to_csc(const input_t* row,
                   const input_t* col,
                   int64_t n,
                   int64_t num_cols,
                   indptr_t* indptr,
                   index_t* indices,
                   int64_t* perm) {
  const int64_t bad = find_first(n, [&](int64_t a, int64_t b) {
    for (int64_t i = a; i < b; ++i)
      if (col[i] < 0 || col[i] >= num_cols)
        return i;
    return int64_t{-1};
  });
  if (bad >= 0)
    return bad;
  // A part needs a counter per column: more parts would not pay for them.
  const int parts = static_cast<int>(std::max<int64_t>(
      1, std::min<int64_t>({max_threads(), n / kGrain,
                            2 * n / std::max<int64_t>(num_cols, 1)})));
  std::vector<Buffer<indptr_t>> next(parts);
  const auto edge_range = [&](int part) {
    return std::make_pair(n * part / parts, n * (part + 1) / parts);
  };
  run_tasks(parts, [&](int part) {
    next[part].reserve(num_cols);
    std::fill(next[part].data(), next[part].data() + num_cols, 0);
    const auto [begin, end] = edge_range(part);
    for (int64_t i = begin; i < end; ++i)
      ++next[part][col[i]];
  });
  indptr_t sum = 0;
  for (int64_t v = 0; v < num_cols; ++v) {
    indptr[v] = sum;
    for (int part = 0; part < parts; ++part) {
      const indptr_t count = next[part][v];
      next[part][v] = sum;
      sum += count;
    }
  }
  indptr[num_cols] = sum;
  run_tasks(parts, [&](int part) {
    const auto [begin, end] = edge_range(part);
    indptr_t* place = next[part].data();
    for (int64_t i = begin; i < end; ++i) {
      if (i + 2 * kPrefetch < end)
        __builtin_prefetch(place + col[i + 2 * kPrefetch], 1);
      if (i + kPrefetch < end) {  // approximately where it goes
        const indptr_t to = place[col[i + kPrefetch]];
        __builtin_prefetch(indices + to, 1);
        __builtin_prefetch(perm + to, 1);
      }
      const indptr_t to = place[col[i]]++;
      indices[to] = static_cast<index_t>(row[i]);
      perm[to] = i;
    }
  });
  return -1;
}

template <typename indptr_t>
CscFault check_indptr(const indptr_t* indptr,
                      int64_t num_cols,
                      int64_t num_edges) {
  if (indptr[0] != 0)
    return {CscFault::kFirst, 0, indptr[0]};
  const int64_t descends = find_first(num_cols, [&](int64_t a, int64_t b) {
    for (int64_t v = a; v < b; ++v)
      if (indptr[v + 1] < indptr[v])
        return v + 1;
    return int64_t{-1};
  });
  if (descends >= 0)
    return {CscFault::kDescends, descends, indptr[descends]};
  if (indptr[num_cols] != num_edges)
    return {CscFault::kLast, num_cols, indptr[num_cols]};
  return {CscFault::kNone, 0, 0};
}

template <typename indptr_t, typename index_t>
CscFault check_csc(const indptr_t* indptr,
                   const index_t* indices,
                   int64_t num_cols,
                   int64_t num_edges,
                   int64_t num_rows) {
  const CscFault fault = check_indptr(indptr, num_cols, num_edges);
  if (fault.rule != CscFault::kNone)
    return fault;
  const uint64_t rows = static_cast<uint64_t>(num_rows);
  const int64_t outside = find_first(num_edges, [&](int64_t a, int64_t b) {
    for (int64_t i = a; i < b; ++i)
      if (static_cast<uint64_t>(indices[i]) >= rows)
        return i;
    return int64_t{-1};
  });
  if (outside >= 0)
    return {CscFault::kIndices, outside, indices[outside]};
  return {CscFault::kNone, 0, 0};
}

template <typename indptr_t, typename weight_t>
bool cumulate_weights(const indptr_t* indptr,
                      const weight_t* weight,
                      int64_t num_cols,
                      int64_t* cum_weight) {
  std::atomic<bool> valid{true};
  // Returns whether a weight of the column is zero.
  const auto column = [&](indptr_t begin, indptr_t end) {
    bool zero;
    if (!cumulate_column(weight + begin, end - begin, cum_weight + begin,
                         &zero))
      valid = false;
    return zero;
  };
  int64_t* zeros = cum_weight + indptr[num_cols];
  const int64_t words = cum_weight_size(0, num_cols);
  parallel_ranges(words, 16, max_threads(), [&](int64_t a, int64_t b) {
    for (int64_t word = a; word < b; ++word) {
      const int64_t first = word * kColumnsPerWord;
      const int64_t last = std::min(first + kColumnsPerWord, num_cols);
      uint64_t bits = 0;
      for (int64_t v = first; v < last; ++v)
        bits |= uint64_t{column(indptr[v], indptr[v + 1])} << (v - first);
      zeros[word] = static_cast<int64_t>(bits);
    }
  });
  return valid;
}

namespace {

// The number of positive weights.
template <typename weight_t>
int64_t count_positive(const weight_t* weight, int64_t n) {
  typename Bits<weight_t>::type count = 0;
  for (int64_t i = 0; i < n; ++i)
    count += bits_of(weight[i]) > 0;
  return count;
}

}  // namespace

template <typename weight_t>
WeightSummary summarize_weights(const weight_t* weight, int64_t n) {
  using bits_t = typename Bits<weight_t>::type;
  constexpr bits_t kNegativeZero = std::numeric_limits<bits_t>::min();
  int64_t count = 0;
  bits_t max_bits = 0, invalid = 0;
  for (int64_t begin = 0; begin < n; begin += kWeightBlock) {
    const int64_t end = std::min(begin + kWeightBlock, n);
    count += count_positive(weight + begin, end - begin);
    for (int64_t i = begin; i < end; ++i) {
      const bits_t bits = bits_of(weight[i]);
      invalid |= (bits < 0) & (bits != kNegativeZero);
      max_bits = std::max(max_bits, bits);
    }
  }
  if (invalid || max_bits >= Bits<weight_t>::kInfinity)
    return {-1, 0};
  weight_t max_weight;
  memcpy(&max_weight, &max_bits, sizeof(max_weight));
  return {count, static_cast<double>(max_weight)};
}

template <typename weight_t>
void positive_weights(const weight_t* weight,
                      int64_t n,
                      const WeightSummary& summary,
                      int64_t* index,
                      int64_t* cum_weight) {
  const int shift = fixed_point_shift(summary.max_weight, summary.count);
  uint64_t fixed[kWeightBlock], sum = 0;
  int64_t size = 0;
  for (int64_t begin = 0; size < summary.count; begin += kWeightBlock) {
    const int64_t block = std::min(kWeightBlock, n - begin);
    fix_weights(weight + begin, block, shift, fixed);
    // Zeros are written, too; the next weight overwrites them.
    for (int64_t i = 0; i < block && size < summary.count; ++i) {
      sum += fixed[i];
      index[size] = begin + i;
      cum_weight[size] = static_cast<int64_t>(sum);
      size += fixed[i] != 0;
    }
  }
  cum_weight[size] = 0;  // the column has no zero weight
}

#define GSAMPLE_INSTANTIATE(indptr_t, index_t)                          \
  template int64_t coo_to_csc(const int32_t*, const int32_t*, int64_t,  \
                              int64_t, indptr_t*, index_t*, int64_t*);  \
  template int64_t coo_to_csc(const int64_t*, const int64_t*, int64_t,  \
                              int64_t, indptr_t*, index_t*, int64_t*);  \
  template CscFault check_csc(const indptr_t*, const index_t*, int64_t, \
                              int64_t, int64_t);
GSAMPLE_INSTANTIATE(int32_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int64_t)
#undef GSAMPLE_INSTANTIATE

#define GSAMPLE_INSTANTIATE(indptr_t)                                     \
  template CscFault check_indptr(const indptr_t*, int64_t, int64_t);      \
  template bool cumulate_weights(const indptr_t*, const float*, int64_t,  \
                                 int64_t*);                               \
  template bool cumulate_weights(const indptr_t*, const double*, int64_t, \
                                 int64_t*);
GSAMPLE_INSTANTIATE(int32_t)
GSAMPLE_INSTANTIATE(int64_t)
#undef GSAMPLE_INSTANTIATE

#define GSAMPLE_INSTANTIATE(weight_t)                                 \
  template WeightSummary summarize_weights(const weight_t*, int64_t); \
  template void positive_weights(const weight_t*, int64_t,            \
                                 const WeightSummary&, int64_t*, int64_t*);
GSAMPLE_INSTANTIATE(float)
GSAMPLE_INSTANTIATE(double)
#undef GSAMPLE_INSTANTIATE

}  // namespace gsample
