// Numbers of half precision, as kernels have them in memory: they compute in
// float. The bits are those of PyTorch, on the CPU and on a GPU. There is no
// branch, and no type that a compiler may lack, so that loops are vectorised.

struct bf16_t {
  uint16_t bits;
};
struct half_t {
  uint16_t bits;
};

GSAMPLE_INLINE uint32_t bits_of(float x) {
  uint32_t out;
  memcpy(&out, &x, sizeof out);
  return out;
}

GSAMPLE_INLINE float float_of(uint32_t bits) {
  float out;
  memcpy(&out, &bits, sizeof out);
  return out;
}

// The upper half of a float.
GSAMPLE_INLINE float wide(bf16_t x) {
  return float_of(uint32_t(x.bits) << 16);
}

// The exponent has 8 bits for 5: 2^112 is what differs, for numbers that are
// not normal, too. Infinity and NaN keep an exponent of ones.
GSAMPLE_INLINE float wide(half_t x) {
  const uint32_t rest = x.bits & 0x7fffu, sign = (x.bits & 0x8000u) << 16;
  const uint32_t number = bits_of(float_of(rest << 13) * 5.192296858534828e33f);
  const uint32_t most = rest << 13 | 0x7f800000u;
  return float_of((rest < 0x7c00u ? number : most) | sign);
}

template <typename T>
GSAMPLE_INLINE T narrow(float x);

// To nearest, ties to even; NaN is quiet.
template <>
GSAMPLE_INLINE bf16_t narrow<bf16_t>(float x) {
  const uint32_t bits = bits_of(x);
  const uint32_t near = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return {uint16_t(x == x ? near : bits >> 16 | 0x40u)};
}

template <>
GSAMPLE_INLINE half_t narrow<half_t>(float x) {
  const uint32_t bits = bits_of(x), rest = bits & 0x7fffffffu;
  // Below 2^-14, an addition of 0.5 rounds to multiples of 2^-24.
  const uint32_t small = bits_of(float_of(rest) + 0.5f) - 0x3f000000u;
  const uint32_t near = (rest - 0x38000000u + 0xfffu + (rest >> 13 & 1u)) >> 13;
  const uint32_t most = rest > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const uint32_t out = rest < 0x38800000u   ? small
                       : rest < 0x47800000u ? near
                                            : most;
  return {uint16_t(out | bits >> 16 & 0x8000u)};
}
