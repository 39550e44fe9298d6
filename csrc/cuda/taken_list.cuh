// Weighted selection without replacement by a warp, with memory for the slots
// only: the numbers of select_weighted_without_replacement() in
// core/weighted.h. If the lengths of columns are unknown before a launch, there
// is no memory for a tree over their positions (taken_tree.cuh).
#pragma once

#include "../core/weighted.h"
#include "portable.h"

namespace gsample {

// The selected intervals of weight, within the concatenated weights. An
// interval's gap is the weight remaining before it, start - (weight selected
// before): a draw r in the remaining weight passes the intervals with gap <= r,
// and gaps ascend with starts. The last intervals, up to 32, are held by the
// lanes, in the order of their slots; the others are sorted in memory, each
// with the selected weight before it in memory.
//
// A draw that passes weight P of the lanes' intervals passes the intervals in
// memory whose gap, without the lanes', is at most r + P: if one is passed, so
// are the lanes' intervals before it; if it is not, no later one is.
class TakenList {
 public:
  __device__ explicit TakenList(TakenWeight* memory)
      : list_(reinterpret_cast<Interval*>(memory)) {}

  // Selects the position of unit r in the remaining weight. Called by all lanes
  // of a warp. If `cum` is not a running sum, the position is arbitrary.
  __device__ uint64_t take(uint64_t r,
                           const CumulativeWeights& w,
                           const EvenGuess& guess,
                           uint64_t* weight) {
    const bool passes = lane() < held_ && r >= gap_;
    const uint64_t held_before = sum_lanes(passes ? weight_ : 0);
    r += held_before;
    const uint32_t rank = count_passed(r);
    const uint64_t before = rank < size_ ? list_[rank].before : sum_;
    r += before;
    const uint64_t i = w.find(r, guess(0, r));
    const uint64_t start = w.start(i);
    *weight = w.through(i) - start;
    if (lane() == held_) {
      start_ = start;
      weight_ = *weight;
      gap_ = start - before - held_before;
      rank_ = rank;
      before_ = before;
    } else if (!passes) {
      gap_ -= *weight;
    }
    if (++held_ == 32)
      merge();
    return i;
  }

 private:
  static constexpr uint32_t kWarp = 0xFFFFFFFF;

  struct Interval {
    uint64_t start;
    uint64_t before;  // selected weight in memory before it
  };
  static_assert(sizeof(Interval) == sizeof(TakenWeight), "the same memory");

  __device__ static uint32_t lane() { return threadIdx.x % 32; }

  __device__ static uint64_t sum_lanes(uint64_t value) {
    for (int step = 16; step > 0; step /= 2)
      value += __shfl_xor_sync(kWarp, value, step);
    return value;
  }

  __device__ bool passed(uint64_t r, uint32_t j, uint32_t end) const {
    return j < end && r >= list_[j].start - list_[j].before;
  }

  // The number of intervals in memory that a draw passes: a search by all
  // lanes.
  __device__ uint32_t count_passed(uint64_t r) const {
    uint32_t low = 0, high = size_;
    while (high - low > 32) {
      const uint32_t step = (high - low + 31) / 32;
      const uint32_t probe = low + (lane() + 1) * step - 1;
      low += step * __popc(__ballot_sync(kWarp, passed(r, probe, high)));
      high = low + step - 1 < high ? low + step - 1 : high;
    }
    return low + __popc(__ballot_sync(kWarp, passed(r, low + lane(), high)));
  }

  // Merges the 32 intervals of the lanes into memory, which has room for all
  // drawn slots.
  __device__ void merge() {
    uint32_t order = 0;  // rank of the lane's interval among the lanes'
    uint64_t before = 0;
    for (int l = 0; l < 32; ++l) {
      const uint64_t start = __shfl_sync(kWarp, start_, l);
      const uint64_t weight = __shfl_sync(kWarp, weight_, l);
      const bool earlier =
          start < start_ ||
          (start == start_ && static_cast<uint32_t>(l) < lane());
      order += earlier;
      before += earlier ? weight : 0;
    }
    const uint64_t all = sum_lanes(weight_);
    list_[size_ + order] = {start_, before};
    __syncwarp();
    const Interval sorted = list_[size_ + lane()];
    __syncwarp();  // read before other lanes overwrite it
    for (uint32_t end = (size_ + 31) / 32 * 32; end > 0; end -= 32)
      move(end - 32, sorted, all);
    list_[rank_ + order] = {start_, before_ + before};
    __syncwarp();
    size_ += 32;
    sum_ += all;
    held_ = 0;
  }

  // Shifts 32 intervals in memory to make room; later ones are shifted already.
  __device__ void move(uint32_t first, const Interval& sorted, uint64_t all) {
    const uint32_t j = first + lane();
    const Interval mine = j < size_ ? list_[j] : Interval{0, 0};
    int earlier = 0;  // of `sorted`
    for (int step = 32; step > 0; step /= 2) {
      const int probe = earlier + step - 1;
      const uint64_t start = __shfl_sync(kWarp, sorted.start, probe & 31);
      earlier += probe < 32 && start < mine.start ? step : 0;
    }
    const uint64_t before = __shfl_sync(kWarp, sorted.before, earlier & 31);
    __syncwarp();  // all lanes have read the words to be overwritten
    if (j < size_)
      list_[j + static_cast<uint32_t>(earlier)] = {
          mine.start, mine.before + (earlier < 32 ? before : all)};
    __syncwarp();
  }

  Interval* const list_;
  uint32_t size_ = 0;  // in memory
  uint64_t sum_ = 0;   // of weights there
  uint32_t held_ = 0;  // by the lanes
  // This lane's interval.
  uint64_t start_ = 0;
  uint64_t weight_ = 0;
  uint64_t gap_ = 0;
  uint32_t rank_ = 0;    // intervals in memory before it
  uint64_t before_ = 0;  // and their weight
};

// Writes the selection of each slot to `choice`. Returns the number of slots
// with a selection: less than `count` if fewer weights are positive. `taken`
// has room for all slots.
__device__ inline uint32_t select_weighted_by_list(const Stream& draw,
                                                   const CumulativeWeights& w,
                                                   uint32_t count,
                                                   int64_t* choice,
                                                   TakenWeight* taken) {
  const uint32_t lane = threadIdx.x % 32;
  const EvenGuess guess(w);
  TakenList list(taken);
  uint64_t left = w.total(), drawn = 0;
  uint32_t slot = 0;
  for (; slot < count && left > 0; ++slot) {
    if (slot % 32 == 0)
      drawn = draw(slot + lane);
    const uint64_t word =
        __shfl_sync(0xFFFFFFFF, drawn, static_cast<int>(slot % 32));
    uint64_t weight;
    const uint64_t i = list.take(bounded(word, left), w, guess, &weight);
    if (lane == slot % 32)
      choice[slot] = static_cast<int64_t>(i);
    left -= weight;
  }
  return slot;
}

}  // namespace gsample
