// Rows of edges, added up and multiplied while they are in the cache: what
// kernels of relations are made of.
#define GSAMPLE_INLINE inline

namespace {

using lib::memcpy;

#if defined(__AVX512F__)
constexpr int kBytes = 64, kRows = 6, kVectors = 4;
#elif defined(__AVX__)
constexpr int kBytes = 32, kRows = 6, kVectors = 2;
#else
constexpr int kBytes = 16, kRows = 4, kVectors = 2;
#endif
constexpr int kAhead = 12;  // rows of how many edges are prefetched

// What is in memory, as kernels compute with it.
inline float wide(float x) {
  return x;
}
inline double wide(double x) {
  return x;
}

template <typename T>
struct Vector {
  typedef T type
      __attribute__((vector_size(kBytes), aligned(sizeof(T)), may_alias));
};

// Asks for a row of n numbers.
template <int n, typename T>
inline void ask(const T* row) {
  constexpr int kLine = 64 / sizeof(T);
  for (int i = 0; i < lib::min(n, 8 * kLine); i += kLine)
    __builtin_prefetch(row + i);
}

// c[r][:] += sum_k a(r, k) b[k][:] for R rows, and N vectors of columns.
template <int R, int N, typename T>
inline void multiply_block(const T* a,
                           int64_t row,
                           int64_t step,
                           int depth,
                           const T* b,
                           int64_t width,
                           T* const* c,
                           int at) {
  using V = typename Vector<T>::type;
  constexpr int kLanes = kBytes / sizeof(T);
  V sum[R][N];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n)
      sum[r][n] = *reinterpret_cast<const V*>(c[r] + at + n * kLanes);
  for (int k = 0; k < depth; ++k) {
    V part[N];
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n)
      part[n] = *reinterpret_cast<const V*>(b + k * width + at + n * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const T x = a[r * row + k * step];
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n)
        sum[r][n] += x * part[n];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n)
      *reinterpret_cast<V*>(c[r] + at + n * kLanes) = sum[r][n];
}

// All rows, of N vectors of columns.
template <int N, typename T>
inline void multiply_columns(const T* a,
                             int64_t row,
                             int64_t step,
                             int rows,
                             int depth,
                             const T* b,
                             int64_t width,
                             T* const* c,
                             int at) {
  int r = 0;
  for (; r + kRows <= rows; r += kRows)
    multiply_block<kRows, N>(a + r * row, row, step, depth, b, width, c + r,
                             at);
  for (; r + 2 <= rows; r += 2)
    multiply_block<2, N>(a + r * row, row, step, depth, b, width, c + r, at);
  for (; r < rows; ++r)
    multiply_block<1, N>(a + r * row, row, step, depth, b, width, c + r, at);
}

// c[r][:] += sum_k a(r, k) b[k][:], where a(r, k) = a[r * row + k * step].
template <int width, typename T>
inline void multiply(const T* a,
                     int64_t row,
                     int64_t step,
                     int rows,
                     int depth,
                     const T* b,
                     T* const* c) {
  constexpr int kLanes = kBytes / sizeof(T);
  constexpr int kWide = width / (kVectors * kLanes) * kVectors * kLanes;
  constexpr int kWhole = width / kLanes * kLanes;
  int at = 0;
  for (; at < kWide; at += kVectors * kLanes)
    multiply_columns<kVectors>(a, row, step, rows, depth, b, width, c, at);
  for (; at < kWhole; at += kLanes)
    multiply_columns<1>(a, row, step, rows, depth, b, width, c, at);
  if (kWhole == width)
    return;
  for (int r = 0; r < rows; ++r)
    for (int k = 0; k < depth; ++k) {
      const T x = a[r * row + k * step];
      for (int j = kWhole; j < width; ++j)
        c[r][j] += x * b[k * width + j];
    }
}

// The edges [k, last) that have the code of the first of them: adds up their
// rows. Returns where they end.
template <int width, typename S, typename T, typename I>
inline int64_t add_rows(const S* x,
                        const I* indices,
                        const I* code,
                        const T* scale,
                        int64_t k,
                        int64_t last,
                        T* out) {
  const I own = code[k];
  lib::fill_n(out, width, T(0));
  for (; k < last && code[k] == own; ++k) {
    if (k + kAhead < last)
      ask<width>(x + int64_t(indices[k + kAhead]) * width);
    const S* const from = x + int64_t(indices[k]) * width;
    const T factor = scale == nullptr ? T(1) : scale[k];
#pragma omp simd
    for (int i = 0; i < width; ++i)
      out[i] += factor * wide(from[i]);
  }
  return k;
}

}  // namespace
