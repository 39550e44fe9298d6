// Memory for the trees of selected weights: see taken_tree.cuh.
#pragma once

#include "../core/hd.h"

namespace gsample {

// Words for n positions, an upper bound of TakenTree's layout: one word of bits
// and one of sums for every 32 positions, one sum for every 32^2, and so on.
// The terms n / 15 of parts sum to at most that of the whole, so every further
// part takes at most 16 words more.
GSAMPLE_HD int64_t taken_tree_words(int64_t n) {
  return n / 15 + 16;
}

// The number of trees of `words` words each, for `most` columns that need one.
inline int64_t count_trees(int64_t most, int64_t words) {
  constexpr int64_t kWords = int64_t{1} << 23;  // 64 MB
  constexpr int64_t kMost = int64_t{1} << 14;   // warps that run at a time
  int64_t trees = kWords / words;
  trees = trees < kMost ? trees : kMost;
  trees = trees < most ? trees : most;
  return trees > 1 ? trees : 1;
}

}  // namespace gsample
