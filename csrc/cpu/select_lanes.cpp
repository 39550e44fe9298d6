#include "select_lanes.h"

#include "../core/philox.h"
#include "draws.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gsample {

namespace {

// Floyd's algorithm, see core/select.h. With replacement, every slot's bound is
// the length, and no position counts as taken.
void select_scalar(const uint64_t* length,
                   const uint64_t* count,
                   bool replace,
                   int lanes,
                   int slots,
                   int stride,
                   uint64_t* draws) {
  for (int lane = 0; lane < lanes; ++lane) {
    uint64_t bound = replace ? length[lane] : length[lane] - count[lane] + 1;
    for (int slot = 0; slot < slots; ++slot) {
      uint64_t* place = draws + slot * stride + lane;
      const uint64_t t = bounded(*place, bound);
      bool taken = false;
      for (int i = 0; !replace && i < slot; ++i)
        taken |= draws[i * stride + lane] == t;
      *place = taken ? bound - 1 : t;
      bound += !replace;
    }
  }
}

#if defined(__x86_64__)

__attribute__((target("avx2"))) void select_avx2(const uint64_t* length,
                                                 const uint64_t* count,
                                                 bool replace,
                                                 int lanes,
                                                 int slots,
                                                 int stride,
                                                 uint64_t* draws) {
  const auto at = [](const uint64_t* data) {
    return reinterpret_cast<const __m256i*>(data);
  };
  const __m256i one = _mm256_set1_epi64x(1);
  for (int lane = 0; lane < lanes; lane += kLaneGroup) {
    uint64_t* first = draws + lane;
    __m256i bound = _mm256_loadu_si256(at(length + lane));
    if (!replace)
      bound = _mm256_add_epi64(
          _mm256_sub_epi64(bound, _mm256_loadu_si256(at(count + lane))), one);
    for (int slot = 0; slot < slots; ++slot) {
      uint64_t* place = first + slot * stride;
      const __m256i draw = _mm256_loadu_si256(at(place));
      // bounded(): the bound has 32 bits, so two products make up the high
      // half.
      const __m256i low = _mm256_srli_epi64(_mm256_mul_epu32(draw, bound), 32);
      const __m256i high = _mm256_mul_epu32(_mm256_srli_epi64(draw, 32), bound);
      __m256i t = _mm256_srli_epi64(_mm256_add_epi64(high, low), 32);
      if (!replace) {
        __m256i taken = _mm256_setzero_si256();
        for (const uint64_t* other = first; other != place; other += stride)
          taken = _mm256_or_si256(
              taken, _mm256_cmpeq_epi64(_mm256_loadu_si256(at(other)), t));
        t = _mm256_blendv_epi8(t, _mm256_sub_epi64(bound, one), taken);
        bound = _mm256_add_epi64(bound, one);
      }
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(place), t);
    }
  }
}

#endif

}  // namespace

void select_lanes(const uint64_t* length,
                  const uint64_t* count,
                  bool replace,
                  int lanes,
                  int slots,
                  int stride,
                  uint64_t* draws) {
#if defined(__x86_64__)
  if (has_avx2())
    return select_avx2(length, count, replace, lanes, slots, stride, draws);
#endif
  select_scalar(length, count, replace, lanes, slots, stride, draws);
}

}  // namespace gsample
