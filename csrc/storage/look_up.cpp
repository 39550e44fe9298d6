// Looks up the draws of a batch's columns in the samples of an epoch, see
// torch_gsample/storage/epoch_results.py. All reads are prefetched some columns
// ahead: a batch accesses memory at random.
#include <stdint.h>

#include <algorithm>
#include <atomic>

#include "../cpu/parallel.h"
#include "../cpu/prefetch.h"

namespace gsample {

namespace {

constexpr int64_t kNear = 16;  // columns between a prefetch and its use
constexpr int64_t kFar = 2 * kNear;
constexpr int64_t kGrain = 4096;  // fewest keys of a thread

// Ascending distinct keys. Run r has the keys with `key >> shift` = r and
// starts at begin[r].
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
  // The number of keys below `wanted`. Branch-free.
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

// The keys [64 i, 64 i + 64): one bit each, and the number of keys below them.
struct KeyBits {
  uint64_t bits;
  int64_t below;

  int64_t find(int64_t wanted) const {
    const uint64_t lower = bits & ((uint64_t{1} << wanted % 64) - 1);
    return below + __builtin_popcountll(lower);
  }
  bool has(int64_t wanted) const { return bits >> wanted % 64 & 1; }
};

// The first of `n` keys that find(i) does not find, or -1.
template <typename find_t>
int64_t find_all(int64_t n, int threads, const find_t& find) {
  std::atomic<int64_t> missing{n};
  parallel_ranges(n, kGrain, threads, [&](int64_t begin, int64_t end) {
    int64_t first = n;
    for (int64_t i = end - 1; i >= begin; --i)
      first = find(i, begin) ? first : i;
    int64_t known = missing.load();
    while (first < known && !missing.compare_exchange_weak(known, first)) {
    }
  });
  return missing < n ? missing.load() : -1;
}

}  // namespace

}  // namespace gsample

#define GSAMPLE_EXPORT extern "C" __attribute__((visibility("default")))

// Writes the position of each key; returns the first missing key, or -1.
GSAMPLE_EXPORT int64_t gsample_find_keys(const int64_t* keys,
                                         int64_t num_keys,
                                         const int64_t* begin,
                                         int64_t num_runs,
                                         int64_t shift,
                                         const int64_t* wanted,
                                         int64_t n,
                                         int64_t threads,
                                         int64_t* place) {
  using gsample::kFar;
  using gsample::kNear;
  const gsample::SortedKeys sorted{keys, num_keys, begin, num_runs, shift};
  return gsample::find_all(
      n, static_cast<int>(threads), [&](int64_t i, int64_t first) {
        if (i >= first + kFar)
          sorted.prefetch_run(wanted[i - kFar]);
        if (i >= first + kNear)
          sorted.prefetch_keys(wanted[i - kNear]);
        place[i] = sorted.find(wanted[i]);
        return place[i] < num_keys && keys[place[i]] == wanted[i];
      });
}

// Fills the zeroed table of ascending keys.
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

// Like gsample_find_keys, by the table of the keys.
GSAMPLE_EXPORT int64_t gsample_find_indexed(const gsample::KeyBits* table,
                                            int64_t size,
                                            const int64_t* wanted,
                                            int64_t n,
                                            int64_t threads,
                                            int64_t* place) {
  using gsample::kNear;
  const int64_t last = 64 * size - 1;
  return gsample::find_all(
      n, static_cast<int>(threads), [&](int64_t i, int64_t first) {
        if (i >= first + kNear)
          gsample::prefetch_item(table, wanted[i - kNear] / 64);
        const int64_t key = std::min(std::max<int64_t>(wanted[i], 0), last);
        const gsample::KeyBits& word = table[key / 64];
        place[i] = word.find(key);
        return key == wanted[i] && word.has(key);
      });
}

// Writes start[i], ..., start[i] + length[i] - 1 for each i.
GSAMPLE_EXPORT void gsample_concat_ranges(const int64_t* start,
                                          const int64_t* length,
                                          int64_t n,
                                          int64_t* out) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t first = start[i], size = length[i];  // `out` may alias them
    for (int64_t k = 0; k < size; ++k)
      out[k] = first + k;
    out += size;
  }
}

// Writes the first edge and the number of edges of columns, and the running
// total of the numbers; returns the first column that does not exist, or -1.
GSAMPLE_EXPORT int64_t gsample_slice_pointers(const int64_t* pointers,
                                              int64_t num_cols,
                                              const int64_t* cols,  // [n]
                                              int64_t n,
                                              int64_t* start,     // [n]
                                              int64_t* length,    // [n]
                                              int64_t* indptr) {  // [n + 1]
  using gsample::kNear;
  indptr[0] = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (i + kNear < n)
      gsample::prefetch_item(pointers, cols[i + kNear]);
    const int64_t v = cols[i];
    if (v < 0 || v >= num_cols)
      return i;
    start[i] = pointers[v];
    length[i] = pointers[v + 1] - pointers[v];
    indptr[i + 1] = indptr[i] + length[i];
  }
  return -1;
}
