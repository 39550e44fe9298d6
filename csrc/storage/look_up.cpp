// Looks up the draws of a batch's columns in the samples of an epoch, see
// torch_gsample/storage/epoch_results.py. All reads are announced to the
// processor some columns before: a batch touches memory at random.
#include <stdint.h>

#include <algorithm>

#include "../cpu/prefetch.h"

namespace gsample {

namespace {

constexpr int64_t kNear = 16;  // columns between a prefetch and its use
constexpr int64_t kFar = 2 * kNear;

// Ascending distinct keys. Run r has those of `key >> shift` = r; its first
// one is at begin[r].
struct SortedKeys {
  const int64_t* key;
  int64_t size;
  const int64_t* begin;  // [num_runs + 1]
  int64_t num_runs;
  int64_t shift;

  int64_t run(int64_t wanted) const {
    return std::min(std::max<int64_t>(wanted, 0) >> shift, num_runs - 1);
  }
  void prefetch_run(int64_t wanted) const { prefetch_item(begin, run(wanted)); }
  void prefetch_keys(int64_t wanted) const {
    const int64_t first = begin[run(wanted)];
    prefetch_item(key, first);
    prefetch_item(key, first + 8);
  }
  // The number of keys below `wanted`. No branch depends on them.
  int64_t find(int64_t wanted) const {
    const int64_t r = run(wanted);
    const int64_t* first = key + begin[r];
    int64_t left = begin[r + 1] - begin[r];
    while (left > 0) {
      const int64_t half = left / 2;
      const bool below = first[half] < wanted;
      first = below ? first + half + 1 : first;
      left = below ? left - half - 1 : half;
    }
    return first - key;
  }
};

// The keys [64 i, 64 i + 64): one bit each, and how many are below them.
struct KeyBits {
  uint64_t bits;
  int64_t below;

  int64_t find(int64_t wanted) const {
    const uint64_t lower = bits & ((uint64_t{1} << wanted % 64) - 1);
    return below + __builtin_popcountll(lower);
  }
  bool has(int64_t wanted) const { return bits >> wanted % 64 & 1; }
};

struct Columns {
  const int64_t* indptr;
  const int64_t* place;  // [n] which columns
  int64_t n;

  void prefetch(int64_t i) const {
    if (i < n)
      prefetch_item(indptr, place[i]);
  }
  int64_t start(int64_t i) const { return indptr[place[i]]; }
};

// Copies items from data[from] on. Up to kAtOnce are written behind them: short
// columns differ in length, which a processor cannot predict.
template <typename item_t>
void copy_items(const item_t* data,
                int64_t from,
                int64_t length,
                int64_t num_items,
                int64_t* out) {
  constexpr int64_t kAtOnce = 8;
  if (from + length > num_items - kAtOnce) {
    std::copy(data + from, data + from + length, out);
    return;
  }
  for (int64_t i = 0; i < length; i += kAtOnce)
    for (int64_t k = 0; k < kAtOnce; ++k)
      out[i + k] = data[from + i + k];
}

template <typename row_t, typename edge_t>
int64_t copy_columns(const Columns& columns,
                     int64_t num_items,
                     const row_t* row,
                     const edge_t* edge,
                     const int64_t* offset,
                     int64_t* row_out,
                     int64_t* edge_out) {
  for (int64_t i = 0; i < columns.n; ++i) {
    columns.prefetch(i + kFar);
    if (i + kNear < columns.n) {
      const int64_t next = columns.start(i + kNear);
      prefetch_item(row, next);
      prefetch_item(edge, next);
      prefetch_item(edge, next + 8);
    }
    const int64_t from = columns.start(i), to = offset[i];
    const int64_t length = offset[i + 1] - to;
    if (from < 0 || from > num_items - length)
      return i;
    copy_items(row, from, length, num_items, row_out + to);
    copy_items(edge, from, length, num_items, edge_out + to);
  }
  return -1;
}

}  // namespace

}  // namespace gsample

#define GSAMPLE_EXPORT extern "C" __attribute__((visibility("default")))

// Writes the position of each key; returns the first that is not among the
// keys, or -1.
GSAMPLE_EXPORT int64_t gsample_find_keys(const int64_t* keys,
                                         int64_t num_keys,
                                         const int64_t* begin,
                                         int64_t num_runs,
                                         int64_t shift,
                                         const int64_t* wanted,
                                         int64_t n,
                                         int64_t* place) {
  using gsample::kFar;
  using gsample::kNear;
  const gsample::SortedKeys sorted{keys, num_keys, begin, num_runs, shift};
  int64_t missing = -1;
  for (int64_t i = n - 1; i >= 0; --i) {
    if (i >= kFar)
      sorted.prefetch_run(wanted[i - kFar]);
    if (i >= kNear)
      sorted.prefetch_keys(wanted[i - kNear]);
    place[i] = sorted.find(wanted[i]);
    if (place[i] == num_keys || keys[place[i]] != wanted[i])
      missing = i;
  }
  return missing;
}

// Makes the table of ascending keys, which is zero before.
GSAMPLE_EXPORT void gsample_index_keys(const int64_t* keys,
                                       int64_t num_keys,
                                       gsample::KeyBits* table,
                                       int64_t size) {
  for (int64_t i = 0; i < num_keys; ++i)
    table[keys[i] / 64].bits |= uint64_t{1} << keys[i] % 64;
  int64_t below = 0;
  for (int64_t i = 0; i < size; ++i) {
    table[i].below = below;
    below += __builtin_popcountll(table[i].bits);
  }
}

// As gsample_find_keys, by the table of the keys.
GSAMPLE_EXPORT int64_t gsample_find_indexed(const gsample::KeyBits* table,
                                            int64_t size,
                                            const int64_t* wanted,
                                            int64_t n,
                                            int64_t* place) {
  const int64_t end = 64 * size;
  int64_t missing = -1;
  for (int64_t i = n - 1; i >= 0; --i) {
    if (i >= gsample::kNear)
      gsample::prefetch_item(table, wanted[i - gsample::kNear] / 64);
    const int64_t key = std::min(std::max<int64_t>(wanted[i], 0), end - 1);
    const gsample::KeyBits& word = table[key / 64];
    place[i] = word.find(key);
    if (key != wanted[i] || !word.has(key))
      missing = i;
  }
  return missing;
}

// Writes where the items of each column end, behind `total` ones, to
// offset[1 .. n]; returns the column whose bounds are malformed, or -1.
GSAMPLE_EXPORT int64_t gsample_column_offsets(const int64_t* indptr,
                                              const int64_t* place,
                                              int64_t n,
                                              int64_t num_items,
                                              int64_t total,
                                              int64_t* offset) {
  const gsample::Columns columns{indptr, place, n};
  for (int64_t i = 0; i < n; ++i) {
    columns.prefetch(i + gsample::kNear);
    const int64_t begin = columns.start(i), end = indptr[place[i] + 1];
    if (begin < 0 || begin > end || end > num_items)
      return i;
    total += end - begin;
    offset[i + 1] = total;
  }
  return -1;
}

// Copies the rows and ids of the edges of columns to where `offset` says;
// returns the column whose bounds are malformed, or -1. Outputs have room for
// eight items more.
GSAMPLE_EXPORT int64_t gsample_copy_columns(const int64_t* indptr,
                                            const int64_t* place,
                                            int64_t n,
                                            int64_t num_items,
                                            const void* row,
                                            int64_t row_bytes,  // 4 or 8
                                            const void* edge,
                                            int64_t edge_bytes,
                                            const int64_t* offset,  // [n + 1]
                                            int64_t* row_out,
                                            int64_t* edge_out) {
  const gsample::Columns columns{indptr, place, n};
  const auto copy = [&](auto* rows, auto* edges) {
    return gsample::copy_columns(columns, num_items, rows, edges, offset,
                                 row_out, edge_out);
  };
  const auto* row32 = static_cast<const int32_t*>(row);
  const auto* row64 = static_cast<const int64_t*>(row);
  const auto* edge32 = static_cast<const int32_t*>(edge);
  const auto* edge64 = static_cast<const int64_t*>(edge);
  if (row_bytes == 4)
    return edge_bytes == 4 ? copy(row32, edge32) : copy(row32, edge64);
  return edge_bytes == 4 ? copy(row64, edge32) : copy(row64, edge64);
}

// Writes start[i], ..., start[i] + length[i] - 1 for each i.
GSAMPLE_EXPORT void gsample_concat_ranges(const int64_t* start,
                                          const int64_t* length,
                                          int64_t n,
                                          int64_t* out) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < length[i]; ++k)
      *out++ = start[i] + k;
}
