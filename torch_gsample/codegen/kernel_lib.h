// What kernels for the CPU take of the standard library, made of what the
// compiler itself has: to read the library's headers takes most of the time of
// compiling a kernel. On a GPU `lib` is `std`.
#include <stdint.h>

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

namespace lib {

#define GSAMPLE_FUNCTION(name)     \
  inline float name(float x) {     \
    return __builtin_##name##f(x); \
  }                                \
  inline double name(double x) {   \
    return __builtin_##name(x);    \
  }
GSAMPLE_FUNCTION(acos)
GSAMPLE_FUNCTION(asin)
GSAMPLE_FUNCTION(ceil)
GSAMPLE_FUNCTION(cos)
GSAMPLE_FUNCTION(erf)
GSAMPLE_FUNCTION(exp)
GSAMPLE_FUNCTION(expm1)
GSAMPLE_FUNCTION(floor)
GSAMPLE_FUNCTION(log)
GSAMPLE_FUNCTION(log1p)
GSAMPLE_FUNCTION(nearbyint)
GSAMPLE_FUNCTION(sin)
GSAMPLE_FUNCTION(sqrt)
GSAMPLE_FUNCTION(tanh)
#undef GSAMPLE_FUNCTION

inline float abs(float x) {
  return __builtin_fabsf(x);
}
inline double abs(double x) {
  return __builtin_fabs(x);
}
inline int32_t abs(int32_t x) {
  return x < 0 ? -x : x;
}
inline int64_t abs(int64_t x) {
  return x < 0 ? -x : x;
}
inline float atan2(float y, float x) {
  return __builtin_atan2f(y, x);
}
inline double atan2(double y, double x) {
  return __builtin_atan2(y, x);
}
inline float pow(float x, float y) {
  return __builtin_powf(x, y);
}
inline double pow(double x, double y) {
  return __builtin_pow(x, y);
}

template <typename T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
constexpr T max(T a, T b) {
  return a < b ? b : a;
}

template <typename T>
inline void fill_n(T* to, int64_t n, T value) {
  for (int64_t i = 0; i < n; ++i)
    to[i] = value;
}

// The unsigned integer of as many bytes.
template <int bytes>
struct Unsigned {
  typedef uint64_t type;
};
template <>
struct Unsigned<4> {
  typedef uint32_t type;
};

inline void memcpy(void* to, const void* from, uint64_t bytes) {
  __builtin_memcpy(to, from, bytes);
}
inline void memset(void* to, int value, uint64_t bytes) {
  __builtin_memset(to, value, bytes);
}

}  // namespace lib
