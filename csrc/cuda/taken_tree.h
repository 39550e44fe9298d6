// How much memory the weights that were taken need: see taken_tree.cuh.
#pragma once

#include "../core/hd.h"

namespace gsample {

// Words for n positions, at least as many as TakenTree lays out: a word of bits
// and one of sums for every 32 positions, a sum for every 32^2, and so on. The
// words of parts of some positions, each rounded down, and 16 more of each,
// are no more than those of all of them.
GSAMPLE_HD int64_t taken_tree_words(int64_t n) {
  return n / 15 + 16;
}

// How many trees of so many words are made, for `most` that want one.
inline int64_t count_trees(int64_t most, int64_t words) {
  constexpr int64_t kWords = int64_t{1} << 23;  // 64 MB
  constexpr int64_t kMost = int64_t{1} << 14;   // warps that run at a time
  int64_t trees = kWords / words;
  trees = trees < kMost ? trees : kMost;
  trees = trees < most ? trees : most;
  return trees > 1 ? trees : 1;
}

}  // namespace gsample
