// Numbers of features that are stored in fewer bits, as float32. Each format
// has the type of a stored number and its value, which is exact but for int8:
// its product with the scale of the row is rounded once.
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
  // The exponent moves from bias 15 to 127, and infinity to 255. Subnormal
  // numbers get an exponent of 2^-14 and its leading 1, which is subtracted:
  // no branch, so that loops become vectors.
  static GSAMPLE_HD float widen(uint16_t x, float) {
    constexpr uint32_t kExponent = 0x1Fu << 23;
    const uint32_t rest = (x & 0x7FFFu) << 13;
    const uint32_t exponent = rest & kExponent;
    const uint32_t normal = rest + ((127u - 15u) << 23);
    const uint32_t least =
        float_bits(float_from_bits(normal + (1u << 23)) - 0x1p-14f);
    uint32_t bits = exponent == kExponent ? normal + (112u << 23) : normal;
    bits = exponent == 0 ? least : bits;
    return float_from_bits(bits | (x & 0x8000u) << 16);
  }
};

struct Int8 {
  using stored_t = int8_t;
  static GSAMPLE_HD float widen(int8_t x, float scale) {
    return static_cast<float>(x) * scale;
  }
};

}  // namespace gsample
