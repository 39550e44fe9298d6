// A Bloom filter of pairs (tree, node): most edges of a column lead out of a
// subgraph, and a word in the L1 cache rejects them without a table lookup.
#pragma once

#include <stdint.h>

#include <vector>

#include "draws.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gsample {

// Two bits of a 32-bit word per pair; the words of a tree are adjacent. Only
// the low 32 bits of nodes are compared.
class PairFilter {
 public:
  // Clears it, for `size` pairs of about `trees` trees.
  void clear(int64_t size, int64_t trees) {
    log2_words_ = kMinLog2;
    while (log2_words_ < kMaxLog2 && size >> log2_words_ > 0)
      ++log2_words_;
    log2_tree_ = log2_words_;
    while (log2_tree_ > kMinLog2 && trees >> (log2_words_ - log2_tree_) > 0)
      --log2_tree_;
    words_.assign(size_t{1} << log2_words_, 0);
  }

  void insert(uint64_t tree, uint64_t node) {
    const uint32_t hash = static_cast<uint32_t>(node) * kGolden;
    words_[start(tree) + (hash >> (32 - log2_tree_))] |=
        1u << (hash >> 3 & 31) | 1u << (hash >> 8 & 31);
  }

  // Writes the positions in [begin, end) whose node may belong to a tree, and
  // returns their number; `found` has capacity for all.
  template <typename index_t>
  int scan(uint64_t tree,
           const index_t* nodes,
           int64_t begin,
           int64_t end,
           int64_t* found) const {
    const uint32_t* words = words_.data() + start(tree);
    int count = 0;
#if defined(__x86_64__)
    if constexpr (sizeof(index_t) == 4) {
      if (has_avx2())
        count = scan_avx2(words, 32 - log2_tree_, nodes, &begin, end, found);
    }
#endif
    const int shift = 32 - log2_tree_;
    for (int64_t e = begin; e < end; ++e) {  // branch-free
      const uint32_t hash = static_cast<uint32_t>(nodes[e]) * kGolden;
      const uint32_t word = words[hash >> shift];
      found[count] = e;
      count += word >> (hash >> 3 & 31) & word >> (hash >> 8 & 31) & 1;
    }
    return count;
  }

 private:
  static constexpr int kMinLog2 = 4;                // a cache line
  static constexpr int kMaxLog2 = 20;               // 4 MiB
  static constexpr uint32_t kGolden = 0x9E3779B9u;  // 2^32 / phi

  uint64_t start(uint64_t tree) const {
    return (tree << log2_tree_) & ((uint64_t{1} << log2_words_) - 1);
  }

#if defined(__x86_64__)
  // Scans the full groups of eight, and moves `begin` behind them.
  __attribute__((target("avx2"))) static int scan_avx2(const uint32_t* words,
                                                       int shift,
                                                       const int32_t* nodes,
                                                       int64_t* begin,
                                                       int64_t end,
                                                       int64_t* found) {
    const __m256i golden = _mm256_set1_epi32(static_cast<int>(kGolden));
    const __m256i low = _mm256_set1_epi32(31);
    const __m128i by = _mm_cvtsi32_si128(shift);
    int count = 0;
    int64_t e = *begin;
    for (; e + 8 <= end; e += 8) {
      const __m256i node =
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(nodes + e));
      const __m256i hash = _mm256_mullo_epi32(node, golden);
      const __m256i word = _mm256_i32gather_epi32(
          reinterpret_cast<const int*>(words), _mm256_srl_epi32(hash, by), 4);
      const __m256i first = _mm256_srlv_epi32(
          word, _mm256_and_si256(_mm256_srli_epi32(hash, 3), low));
      const __m256i second = _mm256_srlv_epi32(
          word, _mm256_and_si256(_mm256_srli_epi32(hash, 8), low));
      const __m256i both = _mm256_and_si256(first, second);
      int hits =
          _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_slli_epi32(both, 31)));
      for (; hits != 0; hits &= hits - 1)
        found[count++] = e + __builtin_ctz(hits);
    }
    *begin = e;
    return count;
  }
#endif

  std::vector<uint32_t> words_;
  int log2_words_ = kMinLog2;
  int log2_tree_ = kMinLog2;
};

}  // namespace gsample
