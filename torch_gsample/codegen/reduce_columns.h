// Reductions of the values of columns, each column in order.
//
// A sum in order waits for an addition at every value, and a loop over a column
// ends at a branch that cannot be foreseen. So the columns of a block are dealt
// out to the lanes of a vector, a run of columns to each. A lane goes through
// its values without looking for ends: it writes down what it has at every
// value, and begins anew where a bit marks the first of a column. The result of
// a column stands at its last value.

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace {

template <typename T>
constexpr int kLanes = sizeof(T) <= 4 ? 8 : 4;

// What the lanes have.
template <typename T>
struct Totals {
  T total[kLanes<T>] = {};

  // Takes kLanes values of each lane, as read(lane, to) gives them, and writes
  // what it has after each. Bit i of first[lane] says whether value i is the
  // first of a column.
  template <typename Step, typename Read>
  void take(const Read& read, const uint8_t* first, T start, Step step, T* to) {
    T value[kLanes<T>][kLanes<T>];
    for (int lane = 0; lane < kLanes<T>; ++lane)
      read(lane, value[lane]);
    for (int i = 0; i < kLanes<T>; ++i)
      for (int lane = 0; lane < kLanes<T>; ++lane) {
        const T before = first[lane] >> i & 1 ? start : total[lane];
        total[lane] = step(before, value[lane][i]);
        to[i * kLanes<T> + lane] = total[lane];
      }
  }
};

#if defined(__AVX2__)

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

inline __m256 load(const float* data) {
  return _mm256_loadu_ps(data);
}

inline __m256d load(const double* data) {
  return _mm256_loadu_pd(data);
}

inline void store(float* to, __m256 values) {
  _mm256_storeu_ps(to, values);
}

inline void store(double* to, __m256d values) {
  _mm256_storeu_pd(to, values);
}

// A byte of each lane, as wide as its values.
inline __m256i widened(__m128i bytes, __m256) {
  return _mm256_cvtepu8_epi32(bytes);
}

inline __m256i widened(__m128i bytes, __m256d) {
  return _mm256_cvtepu8_epi64(bytes);
}

inline __m256 starts_or(__m256 total, float start, __m256i bits, int bit) {
  const __m256i sign = _mm256_slli_epi32(bits, 31 - bit);
  return _mm256_blendv_ps(total, _mm256_set1_ps(start),
                          _mm256_castsi256_ps(sign));
}

inline __m256d starts_or(__m256d total, double start, __m256i bits, int bit) {
  const __m256i sign = _mm256_slli_epi64(bits, 63 - bit);
  return _mm256_blendv_pd(total, _mm256_set1_pd(start),
                          _mm256_castsi256_pd(sign));
}

// The same, a lane of a vector each.
template <typename T>
struct VectorTotals {
  using Vector = decltype(load(static_cast<const T*>(nullptr)));
  static constexpr int kWidth = kLanes<T>;

  Vector total = {};

  template <typename Step, typename Read>
  void take(const Read& read, const uint8_t* first, T start, Step step, T* to) {
    Vector row[kWidth];
#pragma GCC unroll 8
    for (int lane = 0; lane < kWidth; ++lane) {
      T value[kWidth];  // stays in a register
      read(lane, value);
      row[lane] = load(value);
    }
    transpose(row);
    int64_t bytes = 0;
    lib::memcpy(&bytes, first, kWidth);
    const __m256i bits = widened(_mm_cvtsi64_si128(bytes), total);
#pragma GCC unroll 8
    for (int i = 0; i < kWidth; ++i) {
      total = step(starts_or(total, start, bits, i), row[i]);
      store(to + i * kWidth, total);
    }
  }
};

template <>
struct Totals<float> : VectorTotals<float> {};

template <>
struct Totals<double> : VectorTotals<double> {};

#endif

// Columns that are reduced together.
template <typename T>
class Block {
 public:
  static constexpr int64_t kWidth = kLanes<T>;
  // Values of a lane, to which its last column may add as many: the cache holds
  // what all have. So far ahead are those of the next block.
  static constexpr int64_t kShare = 1024;
  static constexpr int64_t kAhead = kWidth * kShare;

  // Takes columns from `ptr` on, at least one, and `cols` at most. Returns how
  // many, or 0 if their pointers descend or leave [0, edges].
  template <typename index_t>
  int64_t take(const index_t* ptr, int64_t cols, int64_t edges) {
    // Pointers may be anything.
    using Place = typename lib::Unsigned<sizeof(index_t)>::type;
    const int64_t base = ptr[0], most = lib::min(cols, kColumns);
    if (base < 0 || base > edges)
      return 0;
    Place end = static_cast<Place>(base);
    int64_t col = 0;
    longest_ = 0;
    for (int64_t lane = 0; lane < kWidth; ++lane) {
      const Place from = end;
      begin_[lane] = static_cast<int64_t>(from) - base;
      Place at = 0;
      for (; col < most && at < kShare; ++col) {
        const Place next = static_cast<Place>(ptr[col + 1]) - from;
        if (static_cast<Place>(next - at) > kShare)
          break;
        mark(lane, at);
        last_[col] = next == at ? 0 : next * kWidth + lane;
        at = next;
      }
      end = from + at;
      longest_ = lib::max<int64_t>(longest_, at);
    }
    if (static_cast<int64_t>(end) > edges)
      return 0;
    fits_ = col > 0;
    if (fits_)
      return col;
    return ptr[1] < ptr[0] || ptr[1] > edges ? 0 : 1;
  }

  // Whether columns are short enough: one that is longer than kShare is taken
  // alone, and not reduced here.
  bool fits() const { return fits_; }

  // How many values from the first one on are read: some behind the last.
  int64_t reach() const { return begin_[kWidth - 1] + longest_ + kWidth; }

  // Room for as many values.
  T* values() { return values_; }

  // A column without values gets `fill`. read(i, to) gives values i, i + 1 and
  // so on, kWidth of them. To be called once after `take`.
  template <typename Step, typename Read>
  void reduce(T start,
              T fill,
              Step step,
              int64_t cols,
              const Read& read,
              T* out) {
    lib::fill_n(totals_, kWidth, fill);
    Totals<T> lanes;
    for (int64_t i = 0; i < longest_; i += kWidth)
      lanes.take([&](int lane, T* to) { read(begin_[lane] + i, to); },
                 first_ + i, start, step, totals_ + (i + 1) * kWidth);
    lib::memset(first_, 0, longest_ / kWidth * kWidth + kWidth);
    for (int64_t col = 0; col < cols; ++col)
      out[col] = totals_[last_[col]];
  }

  // The same, of values().
  template <typename Step>
  void reduce(T start, T fill, Step step, int64_t cols, T* out) {
    const auto read = [&](int64_t i, T* to) {
      lib::memcpy(to, values_ + i, kWidth * sizeof(T));
    };
    reduce(start, fill, step, cols, read, out);
  }

 private:
  static constexpr int64_t kRoom = 2 * kShare;
  static constexpr int64_t kColumns = kRoom * kWidth;

  // A column begins at value `at` of a lane. Where it has none, the next one
  // that has begins there, or the lane ends.
  void mark(int64_t lane, int64_t at) {
    const int64_t bit = at & (kWidth - 1);
    first_[at - bit + lane] |= static_cast<uint8_t>(1 << bit);
  }

  // Values of lane l begin at begin_[l]. A lane reads on behind its end.
  T values_[(kWidth + 1) * kRoom];
  int64_t begin_[kWidth], longest_ = 0;
  bool fits_ = false;
  // Row i has the lanes' bits for their values i * kWidth, i * kWidth + 1, ...
  uint8_t first_[kRoom + kWidth] = {};
  // Row i + 1 is what the lanes have after value i of each, row 0 is `fill`.
  T totals_[(kRoom + kWidth) * kWidth];
  int32_t last_[kColumns];  // where in totals_ the result of a column stands
};

}  // namespace
