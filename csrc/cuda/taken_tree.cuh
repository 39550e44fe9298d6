// Weighted selection without replacement in many slots, by a warp: the numbers
// of select_weighted_without_replacement() in core/weighted.h. A slot draws in
// the remaining weight, which depends on all earlier slots; the lanes of a warp
// share the search of one slot.
#pragma once

#include "../core/weighted.h"
#include "portable.h"
#include "taken_tree.h"

namespace gsample {

// The selected weights of a column, as a tree whose nodes have 32 children: sum
// g of level l is that of positions [g 32^l, (g + 1) 32^l), and each position
// has one bit. The initial weight of a child is a difference of `cum`, so in a
// tree of zeros nothing is selected.
class TakenTree {
 public:
  struct Choice {
    uint64_t position;
    uint64_t weight;
  };

  __device__ TakenTree(uint64_t* words, const CumulativeWeights& weights)
      : w_(weights), bits_(words), top_(words), depth_(1) {
    uint64_t size = groups(kBits);
    for (int shift = kBits; w_.n > uint64_t{1} << shift; shift += kBits) {
      top_ = words + size;
      size += groups(shift);
      ++depth_;
    }
    size_ = size;
  }

  // Called by all lanes of a warp, like all functions below.
  __device__ void clear() const {
    for (uint64_t i = lane(); i < size_; i += 32)
      bits_[i] = 0;
    __syncwarp();
  }

  // Selects the position of unit r in the concatenated remaining weights. If
  // `cum` is not a running sum, the position is arbitrary.
  __device__ Choice take(uint64_t r) const {
    uint64_t first = 0, before = 0;  // the first position of a node, its start
    uint64_t* sums = top_;
    uint64_t* mine = nullptr;  // lane l: the sum of level l to increase
    for (int level = depth_ - 1; level > 0; --level) {
      const int shift = level * kBits;
      const uint64_t group = (first >> shift) + lane();
      const bool exists = group < groups(shift);
      const uint64_t next = (group + 1) << shift;
      const uint64_t through =
          exists ? w_.through((next < w_.n ? next : w_.n) - 1) : before;
      const uint64_t taken = up_to(exists ? sums[group] : 0);
      const int child = descend(exists, through - before - taken, &r);
      if (lane() == static_cast<uint32_t>(level))
        mine = sums + (first >> shift) + child;
      before = behind(through, child, before);
      first += static_cast<uint64_t>(child) << shift;
      sums -= level > 1 ? groups(shift - kBits) : 0;
    }
    const uint64_t i = first + lane();
    const uint64_t bits = bits_[first / 32];
    const bool exists = i < w_.n;
    const uint64_t through = exists ? w_.through(i) : before;
    const uint64_t start = __shfl_up_sync(kWarp, through, 1);
    const uint64_t weight = through - (lane() == 0 ? before : start);
    const bool taken = !exists || (bits >> lane() & 1) != 0;
    const int child = descend(exists, up_to(taken ? 0 : weight), &r);
    const Choice choice{first + static_cast<uint64_t>(child),
                        __shfl_sync(kWarp, weight, child)};
    __syncwarp();  // all lanes have read the words to be overwritten
    if (lane() == 0)
      bits_[first / 32] = bits | uint64_t{1} << child;
    if (mine != nullptr)
      *mine += choice.weight;
    __syncwarp();
    return choice;
  }

 private:
  static constexpr int kBits = 5;
  static constexpr uint32_t kWarp = 0xFFFFFFFF;

  __device__ static uint32_t lane() { return threadIdx.x % 32; }

  // The number of nodes of 2^shift positions.
  __device__ uint64_t groups(int shift) const {
    return (w_.n + (uint64_t{1} << shift) - 1) >> shift;
  }

  // The sum over the lanes up to and including this one.
  __device__ static uint64_t up_to(uint64_t value) {
    for (int step = 1; step < 32; step *= 2) {
      const uint64_t earlier = __shfl_up_sync(kWarp, value, step);
      value += lane() >= static_cast<uint32_t>(step) ? earlier : 0;
    }
    return value;
  }

  // The value of the lane before `child`, or `else_` if there is none.
  __device__ static uint64_t behind(uint64_t value, int child, uint64_t else_) {
    const uint64_t found = __shfl_sync(kWarp, value, child > 0 ? child - 1 : 0);
    return child > 0 ? found : else_;
  }

  // The first child with left > *r, where `left` is the cumulative remaining
  // weight; *r becomes the offset within the child.
  __device__ static int descend(bool exists, uint64_t left, uint64_t* r) {
    const uint32_t above = __ballot_sync(kWarp, exists && left > *r);
    const uint32_t all = __ballot_sync(kWarp, exists);
    const int child =
        (above != 0 ? __ffs(static_cast<int>(above)) : __popc(all)) - 1;
    *r -= behind(left, child, 0);
    return child;
  }

  const CumulativeWeights w_;
  uint64_t* const bits_;
  uint64_t* top_;  // the sums of the root's children
  int depth_;
  uint64_t size_;  // in words
};

// Calls take(slot, position) once for each slot with a selection, and returns
// their number: less than `count` if fewer weights are positive. If `clean`,
// `words` are zeros.
template <typename take_t>
__device__ int64_t select_weighted_by_tree(const Stream& draw,
                                           const CumulativeWeights& w,
                                           int64_t count,
                                           uint64_t* words,
                                           bool clean,
                                           const take_t& take) {
  const uint32_t lane = threadIdx.x % 32;
  const TakenTree tree(words, w);
  if (!clean)
    tree.clear();
  uint64_t left = w.total(), drawn = 0;
  int64_t slot = 0;
  for (; slot < count && left > 0; ++slot) {
    if (slot % 32 == 0)
      drawn = draw(static_cast<uint32_t>(slot) + lane);
    const uint64_t word =
        __shfl_sync(0xFFFFFFFF, drawn, static_cast<int>(slot % 32));
    const TakenTree::Choice choice = tree.take(bounded(word, left));
    if (lane == 0)
      take(slot, choice.position);
    left -= choice.weight;
  }
  __syncwarp();
  return slot;
}

// The same in a column whose tree may be dirty. Only weights that are not
// cumulative sums leave slots without a draw: these get the first position.
template <typename take_t>
__device__ void select_column_by_tree(const Stream& draw,
                                      const CumulativeWeights& w,
                                      int64_t count,
                                      uint64_t* words,
                                      const take_t& take) {
  const int64_t selected =
      select_weighted_by_tree(draw, w, count, words, false, take);
  for (int64_t slot = selected + threadIdx.x % 32; slot < count; slot += 32)
    take(slot, uint64_t{0});
}

}  // namespace gsample
