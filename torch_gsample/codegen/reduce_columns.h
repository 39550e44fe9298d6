// Reductions of the values of columns, each column in order.
//
// A sum in order waits for an addition at every edge. So several columns are
// reduced side by side, one in each lane of two vectors: a square of values,
// some edges of some columns, is loaded and transposed at a time. Lanes that
// are past the end of their column take `start`, which changes nothing.

// value[ptr[c] - ptr[0]] is the first value of column c. `value` can be read,
// but means nothing, as far behind its end as the longest column is long, and
// kReadAhead more.
constexpr int64_t kReadAhead = 8;

template <typename T, typename index_t, typename Step>
void reduce_columns(const T* value,
                    const index_t* ptr,
                    int64_t cols,
                    T start,
                    T fill,
                    Step step,
                    T* out) {
  for (int64_t col = 0; col < cols; ++col) {
    T total = start;
    for (int64_t e = ptr[col] - ptr[0]; e < ptr[col + 1] - ptr[0]; ++e)
      total = step(total, value[e]);
    out[col] = ptr[col] < ptr[col + 1] ? total : fill;
  }
}

#if defined(__AVX2__)

#include <immintrin.h>

namespace lanes {

inline __m256 load(const float* data) {
  return _mm256_loadu_ps(data);
}

inline __m256d load(const double* data) {
  return _mm256_loadu_pd(data);
}

inline __m256 all(float value) {
  return _mm256_set1_ps(value);
}

inline __m256d all(double value) {
  return _mm256_set1_pd(value);
}

inline void transpose(__m256 (&row)[8]) {
  __m256 pair[8], four[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    pair[i] = _mm256_unpacklo_ps(row[i], row[i + 1]);
    pair[i + 1] = _mm256_unpackhi_ps(row[i], row[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    four[i] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0x44);
    four[i + 1] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0xee);
    four[i + 2] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0x44);
    four[i + 3] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    row[i] = _mm256_permute2f128_ps(four[i], four[i + 4], 0x20);
    row[i + 4] = _mm256_permute2f128_ps(four[i], four[i + 4], 0x31);
  }
}

inline void transpose(__m256d (&row)[4]) {
  __m256d pair[4];
#pragma GCC unroll 2
  for (int i = 0; i < 4; i += 2) {
    pair[i] = _mm256_unpacklo_pd(row[i], row[i + 1]);
    pair[i + 1] = _mm256_unpackhi_pd(row[i], row[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    row[i] = _mm256_permute2f128_pd(pair[i], pair[i + 2], 0x20);
    row[i + 2] = _mm256_permute2f128_pd(pair[i], pair[i + 2], 0x31);
  }
}

// Columns in lanes: `left` is how many values each still has.
template <typename T>
struct Columns {
  using Vector = decltype(all(T()));
  static constexpr int kLanes = sizeof(Vector) / sizeof(T);

  Vector total, left;
  const T* first[kLanes];

  // Takes values i, i + 1, ... of each.
  template <typename Step>
  void take(int64_t i, Vector start, Step step) {
    Vector row[kLanes];
#pragma GCC unroll 8
    for (int lane = 0; lane < kLanes; ++lane)
      row[lane] = load(first[lane] + i);
    transpose(row);
#pragma GCC unroll 8
    for (int r = 0; r < kLanes; ++r)
      total = step(total, left > all(T(r)) ? row[r] : start);
    left = left - all(T(kLanes));
  }
};

template <typename T, typename index_t, typename Step>
void reduce(const T* value,
            const index_t* ptr,
            int64_t cols,
            T start,
            T fill,
            Step step,
            T* out) {
  constexpr int kLanes = Columns<T>::kLanes, kSets = 2;
  for (int64_t base = 0; base < cols; base += kSets * kLanes) {
    Columns<T> set[kSets];
    T size[kSets][kLanes], result[kSets * kLanes];
    int64_t longest = 0;
    for (int i = 0; i < kSets * kLanes; ++i) {
      const int64_t col = std::min(base + i, cols - 1);
      const int64_t length = ptr[col + 1] - ptr[col];
      set[i / kLanes].first[i % kLanes] = value + (ptr[col] - ptr[0]);
      size[i / kLanes][i % kLanes] = static_cast<T>(length);
      longest = std::max(longest, length);
    }
#pragma GCC unroll 2
    for (int s = 0; s < kSets; ++s) {
      set[s].total = all(start);
      set[s].left = load(size[s]);
    }
    for (int64_t i = 0; i < longest; i += kLanes) {
#pragma GCC unroll 2
      for (int s = 0; s < kSets; ++s)
        set[s].take(i, all(start), step);
    }
#pragma GCC unroll 2
    for (int s = 0; s < kSets; ++s) {
      const auto filled = load(size[s]) > all(T(0)) ? set[s].total : all(fill);
      std::memcpy(result + s * kLanes, &filled, sizeof(filled));
    }
    const int64_t count = std::min<int64_t>(kSets * kLanes, cols - base);
    std::copy(result, result + count, out + base);
  }
}

}  // namespace lanes

template <typename... Rest>
void reduce_columns(const float* value, Rest... rest) {
  lanes::reduce(value, rest...);
}

template <typename... Rest>
void reduce_columns(const double* value, Rest... rest) {
  lanes::reduce(value, rest...);
}

#endif
