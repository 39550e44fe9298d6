#include "draws.h"

#include "../core/philox.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gsample {

namespace {

void draw_lanes_scalar(uint64_t key,
                       const uint64_t* root,
                       const uint64_t* id,
                       int lanes,
                       int slots,
                       int stride,
                       uint64_t* out) {
  for (int lane = 0; lane < lanes; ++lane) {
    const Stream stream{key, static_cast<uint32_t>(root[lane]), id[lane]};
    for (int slot = 0; slot < slots; slot += 2) {
      const Block block = stream.block(static_cast<uint32_t>(slot) / 2);
      out[slot * stride + lane] = block.half(0);
      out[(slot + 1) * stride + lane] = block.half(1);
    }
  }
}

void draw_blocks_scalar(uint64_t key,
                        const uint64_t* index,
                        const uint64_t* root,
                        const uint64_t* id,
                        int lanes,
                        uint64_t* first,
                        uint64_t* second) {
  for (int lane = 0; lane < lanes; ++lane) {
    const Stream stream{key, static_cast<uint32_t>(root[lane]), id[lane]};
    const Block block = stream.block(static_cast<uint32_t>(index[lane]));
    first[lane] = block.half(0);
    second[lane] = block.half(1);
  }
}

#if defined(__x86_64__)

__attribute__((target("avx2"))) inline __m256i load(const uint64_t* data) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data));
}

__attribute__((target("avx2"))) inline void store(uint64_t* data, __m256i x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(data), x);
}

// Each 64-bit lane has one 32-bit word of Philox's state in its low half. The
// high half is arbitrary: the multiplication does not read it.
__attribute__((target("avx2"), always_inline)) inline void
block_avx2(uint64_t key, __m256i c0, __m256i c1, __m256i c2, __m256i half[2]) {
  const __m256i m0 = _mm256_set1_epi64x(kPhiloxM0);
  const __m256i m1 = _mm256_set1_epi64x(kPhiloxM1);
  const __m256i low = _mm256_set1_epi64x(0xFFFFFFFF);
  __m256i c3 = _mm256_srli_epi64(c2, 32);
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const __m256i p0 = _mm256_mul_epu32(c0, m0);
    const __m256i p1 = _mm256_mul_epu32(c2, m1);
    c0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), c1),
                          _mm256_set1_epi64x(k0));
    c2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), c3),
                          _mm256_set1_epi64x(k1));
    c1 = p1;
    c3 = p0;
    k0 += kPhiloxW0;
    k1 += kPhiloxW1;
  }
  half[0] =
      _mm256_or_si256(_mm256_and_si256(c0, low), _mm256_slli_epi64(c1, 32));
  half[1] =
      _mm256_or_si256(_mm256_and_si256(c2, low), _mm256_slli_epi64(c3, 32));
}

__attribute__((target("avx2"))) void draw_lanes_avx2(uint64_t key,
                                                     const uint64_t* root,
                                                     const uint64_t* id,
                                                     int lanes,
                                                     int slots,
                                                     int stride,
                                                     uint64_t* out) {
  for (int slot = 0; slot < slots; slot += 2) {
    for (int lane = 0; lane < lanes; lane += kLaneGroup) {
      __m256i half[2];
      block_avx2(key, _mm256_set1_epi64x(slot / 2), load(root + lane),
                 load(id + lane), half);
      uint64_t* row = out + slot * stride + lane;
      store(row, half[0]);
      store(row + stride, half[1]);
    }
  }
}

__attribute__((target("avx2"))) void draw_blocks_avx2(uint64_t key,
                                                      const uint64_t* index,
                                                      const uint64_t* root,
                                                      const uint64_t* id,
                                                      int lanes,
                                                      uint64_t* first,
                                                      uint64_t* second) {
  for (int lane = 0; lane < lanes; lane += kLaneGroup) {
    __m256i half[2];
    block_avx2(key, load(index + lane), load(root + lane), load(id + lane),
               half);
    store(first + lane, half[0]);
    store(second + lane, half[1]);
  }
}

#endif

}  // namespace

bool has_avx2() {
#if defined(__x86_64__)
  static const bool found = __builtin_cpu_supports("avx2");
  return found;
#else
  return false;
#endif
}

void draw_lanes(uint64_t key,
                const uint64_t* root,
                const uint64_t* id,
                int lanes,
                int slots,
                int stride,
                uint64_t* out) {
#if defined(__x86_64__)
  if (has_avx2())
    return draw_lanes_avx2(key, root, id, lanes, slots, stride, out);
#endif
  draw_lanes_scalar(key, root, id, lanes, slots, stride, out);
}

void draw_blocks(uint64_t key,
                 const uint64_t* index,
                 const uint64_t* root,
                 const uint64_t* id,
                 int lanes,
                 uint64_t* first,
                 uint64_t* second) {
#if defined(__x86_64__)
  if (has_avx2())
    return draw_blocks_avx2(key, index, root, id, lanes, first, second);
#endif
  draw_blocks_scalar(key, index, root, id, lanes, first, second);
}

}  // namespace gsample
