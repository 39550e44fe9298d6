// Compiler requirements of the sampling core. Everything in core/ compiles with
// g++ and with nvcc, includes neither torch nor the STL, and returns the same
// bits on both sides.
#pragma once

#include <stdint.h>

#if defined(__CUDACC__)
#define GSAMPLE_HD __host__ __device__ __forceinline__
#else
#define GSAMPLE_HD inline __attribute__((always_inline))
#endif

namespace gsample {

// The high 32 bits of a 32 x 32 bit product.
GSAMPLE_HD uint32_t mulhi32(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>((static_cast<uint64_t>(a) * b) >> 32);
}

// The high 64 bits of a 64 x 64 bit product.
GSAMPLE_HD uint64_t mulhi64(uint64_t a, uint64_t b) {
#if defined(__CUDA_ARCH__)
  return __umul64hi(a, b);
#else
  return static_cast<uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
#endif
}

// The bits of a double as an integer.
GSAMPLE_HD uint64_t double_bits(double x) {
  union {
    double value;
    uint64_t bits;
  } u;
  u.value = x;
  return u.bits;
}

GSAMPLE_HD double double_from_bits(uint64_t bits) {
  union {
    double value;
    uint64_t bits;
  } u;
  u.bits = bits;
  return u.value;
}

}  // namespace gsample
