#include "search_sums.h"

#include <algorithm>

#include "draws.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gsample {

namespace {

// low[lane] = the first position whose sum exceeds r[lane], or the last one.
void search_scalar(const CumulativeWeights& w,
                   const uint64_t* r,
                   int size,
                   int64_t* low) {
  std::fill(low, low + size, 0);
  // The answer is in [low, low + length).
  for (uint64_t length = w.n; length > 1;) {
    const uint64_t half = length / 2;
    length -= half;
    for (int lane = 0; lane < size; ++lane) {
      low[lane] += w.through(low[lane] + half - 1) <= r[lane]
                       ? static_cast<int64_t>(half)
                       : 0;
      __builtin_prefetch(w.cum + low[lane] + length / 2);
    }
  }
}

#if defined(__x86_64__)

// The same for kSearches searches. Sums have 63 bits: signed comparisons hold.
__attribute__((target("avx2"))) void search_avx2(const CumulativeWeights& w,
                                                 const uint64_t* r,
                                                 int64_t* low) {
  constexpr int kVectors = kSearches / kLaneGroup;
  const auto* cum = reinterpret_cast<const long long*>(w.cum);
  const __m256i before = _mm256_set1_epi64x(static_cast<int64_t>(w.before));
  __m256i position[kVectors], target[kVectors];
  for (int i = 0; i < kVectors; ++i) {
    position[i] = _mm256_setzero_si256();
    target[i] = _mm256_add_epi64(
        before, _mm256_loadu_si256(
                    reinterpret_cast<const __m256i*>(r + i * kLaneGroup)));
  }
  for (uint64_t length = w.n; length > 1;) {
    const uint64_t half = length / 2;
    length -= half;
    const __m256i step = _mm256_set1_epi64x(static_cast<int64_t>(half));
    for (int i = 0; i < kVectors; ++i) {
      const __m256i sum =
          _mm256_i64gather_epi64(cum + half - 1, position[i], 8);
      const __m256i above = _mm256_cmpgt_epi64(sum, target[i]);
      position[i] =
          _mm256_add_epi64(position[i], _mm256_andnot_si256(above, step));
    }
  }
  for (int i = 0; i < kVectors; ++i)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(low + i * kLaneGroup),
                        position[i]);
}

#endif

void search(const CumulativeWeights& w,
            const uint64_t* r,
            int size,
            int64_t* low) {
#if defined(__x86_64__)
  if (size == kSearches && has_avx2())
    return search_avx2(w, r, low);
#endif
  search_scalar(w, r, size, low);
}

}  // namespace

void search_sums(const Stream& draw,
                 const CumulativeWeights& w,
                 int64_t begin,
                 int size,
                 int64_t* position) {
  constexpr int kBlocks = kSearches / 2;  // two draws per block
  uint64_t index[kBlocks], root[kBlocks], id[kBlocks];
  uint64_t first[kBlocks], second[kBlocks], r[kSearches];
  for (int i = 0; i < kBlocks; ++i) {
    index[i] = static_cast<uint64_t>(begin / 2 + i);
    root[i] = draw.root;
    id[i] = draw.id;
  }
  draw_blocks(draw.key, index, root, id, kBlocks, first, second);
  for (int i = 0; i < kBlocks; ++i) {
    r[2 * i] = bounded(first[i], w.total());
    r[2 * i + 1] = bounded(second[i], w.total());
  }
  search(w, r, size, position);
}

}  // namespace gsample
