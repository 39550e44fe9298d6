// Conversion of features stored in fewer bits to float32. Each format has the
// type of a stored number and its value, which is exact except for int8: its
// product with the row's scale is rounded once.
#pragma once

#include "hd.h"

namespace gsample {

enum class RowFormat : int32_t { kBytes, kBfloat16, kHalf, kInt8 };

GSAMPLE_HD float float_from_bits(uint32_t bits) {
  union {
    uint32_t bits;
    float value;
  } u;
  u.bits = bits;
  return u.value;
}

GSAMPLE_HD uint32_t float_bits(float x) {
  union {
    float value;
    uint32_t bits;
  } u;
  u.value = x;
  return u.bits;
}

struct Bfloat16 {
  using stored_t = uint16_t;
  static GSAMPLE_HD float widen(uint16_t x, float) {
    return float_from_bits(static_cast<uint32_t>(x) << 16);
  }
};

struct Half {
  using stored_t = uint16_t;
  // The sum of a normal number, whose exponent moves from bias 15 to 127 (of
  // infinity to 255), and a subnormal one, in units of 2^-24; one of them is 0.
  // Masks are built from sign bits: for comparisons, g++ emits branches and
  // does not vectorise loops.
  static GSAMPLE_HD float widen(uint16_t x, float) {
    constexpr uint32_t kNormal = 0x0400, kInfinity = 0x7C00;
    constexpr uint32_t kBias = (127u - 15u) << 23;
    const uint32_t rest = x & 0x7FFFu;
    const uint32_t is_normal = 0u - ((kNormal - 1 - rest) >> 31);
    const uint32_t is_top = 0u - ((kInfinity - 1 - rest) >> 31);
    const uint32_t bits = (rest << 13) + kBias + (kBias & is_top);
    const float normal = float_from_bits(bits & is_normal);
    const int32_t units = static_cast<int32_t>(rest & ~is_normal);
    const float sum = normal + static_cast<float>(units) * 0x1p-24f;
    return float_from_bits(float_bits(sum) | (x & 0x8000u) << 16);
  }
};

struct Int8 {
  using stored_t = int8_t;
  static GSAMPLE_HD float widen(int8_t x, float scale) {
    return static_cast<float>(x) * scale;
  }
};

}  // namespace gsample
