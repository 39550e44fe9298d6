// Groups of threads that select in one column together, and their uniform
// selection: the numbers of core/select.h, in parallel.
#pragma once

#include "../core/hash.h"
#include "../core/select.h"
#include "portable.h"

namespace gsample {

// A power of two of adjacent lanes of a warp.
struct LaneGroup {
  uint32_t size;
  uint32_t rank;   // of this lane
  uint32_t shift;  // first lane
  uint32_t mask;   // the lanes, in their warp

  __device__ explicit LaneGroup(uint32_t lanes)
      : size(lanes),
        rank(threadIdx.x & (lanes - 1)),
        shift(threadIdx.x % 32 - rank),
        mask((lanes == 32 ? ~0u : (1u << lanes) - 1) << shift) {}
  __device__ void sync() const { __syncwarp(mask); }
};

// One lane per slot of a column, up to a warp; at least `lanes`.
__device__ inline uint32_t lanes_for(int64_t fanout, uint32_t lanes = 4) {
  while (lanes < 32 && (fanout < 0 || lanes < fanout))
    lanes *= 2;
  return lanes;
}

struct BlockGroup {
  uint32_t size = blockDim.x;
  uint32_t rank = threadIdx.x;

  __device__ void sync() const { __syncthreads(); }
};

// Floyd's algorithm processes the slots in order: slot j draws t_j, and gives
// way to its last resort n - k + j if t_j is taken. A slot i < j took it if t_i
// = t_j (whatever i selected, t_j was taken then), or if t_j is the last resort
// of i and i gave way:
//
//   gave_way(j) = t_i = t_j for some i < j, or
//                 t_j = n - k + i for an i < j with gave_way(i)
//
// This needs no order: equal draws are found first, and then chains of last
// resorts are followed to a slot that gave way, or to their end.
struct FloydChain {
  uint64_t first;  // n - k

  // The slot whose last resort slot j drew, or j if there is none.
  __device__ uint32_t next(uint64_t t, uint32_t j) const {
    return t >= first && t - first < j ? static_cast<uint32_t>(t - first) : j;
  }
};

// The selection of slot group.rank among k <= group.size of n. Every lane of
// the group must call it, those beyond k, too.
__device__ inline uint64_t select_floyd_lanes(const Stream& draw,
                                              uint64_t n,
                                              uint32_t k,
                                              const LaneGroup& group) {
  const FloydChain chain{n - k};
  const uint32_t j = group.rank;
  // Lanes beyond k hold numbers that equal no draw.
  const uint64_t t = j < k ? bounded(draw(j), chain.first + j + 1) : n + j;
  const uint32_t equal = __match_any_sync(group.mask, t) >> group.shift;
  const bool repeats = (equal & ((1u << j) - 1)) != 0;
  const uint32_t repeating = __ballot_sync(group.mask, repeats) >> group.shift;
  const uint32_t link = j < k ? chain.next(t, j) : j;
  bool gave_way = repeats, follows = !repeats && link != j;
  uint32_t at = link;
  while (__any_sync(group.mask, follows)) {
    const uint32_t next = __shfl_sync(group.mask, link, at, group.size);
    gave_way |= follows && (repeating >> at & 1);
    follows &= !gave_way && next != at;
    at = next;
  }
  return gave_way ? chain.first + j : t;
}

// Finds the slots that gave way, and those with equal draws, for any number of
// slots: one list per hash of a draw, k lists with links in the slots.
class FloydLists {
 public:
  __device__ FloydLists(int64_t* words, uint32_t k)
      : k_(k), head_(reinterpret_cast<uint32_t*>(words)), link_(head_ + k) {}

  __device__ void clear(uint32_t j) const { head_[j] = kEnd; }

  // All lists must be empty.
  __device__ void insert(uint32_t j, int64_t t) const {
    const uint32_t hash =
        static_cast<uint32_t>(mix64(static_cast<uint64_t>(t)));
    link_[j] = Atomic<uint32_t>(head_[mulhi32(hash, k_)]).exchange(j, kRelaxed);
  }

  // Whether an earlier slot drew the same as j, once all slots are inserted.
  __device__ bool repeats(uint32_t j, const int64_t* t) const {
    const uint32_t hash =
        static_cast<uint32_t>(mix64(static_cast<uint64_t>(t[j])));
    bool found = false;
    for (uint32_t i = head_[mulhi32(hash, k_)]; i != kEnd && !found;
         i = Atomic<uint32_t>(link_[i]).load(kRelaxed) & kEnd)
      found = i < j && t[i] == t[j];
    return found;
  }

  __device__ void give_way(uint32_t j) const {
    Atomic<uint32_t>(link_[j]).fetch_or(kGaveWay, kRelaxed);
  }
  __device__ bool gave_way(uint32_t j) const {
    return (Atomic<uint32_t>(link_[j]).load(kRelaxed) & kGaveWay) != 0;
  }

 private:
  static constexpr uint32_t kGaveWay = uint32_t{1} << 31;
  static constexpr uint32_t kEnd = kGaveWay - 1;

  const uint32_t k_;
  uint32_t* const head_;  // [k] a slot, or kEnd
  uint32_t* const link_;  // [k] the next slot, and whether this one gave way
};

// The same for any k < 2^31, with scratch `t` and `words` [k]. Calls emit(slot,
// choice) for every slot; emit may overwrite the slot's scratch.
template <typename group_t, typename emit_t>
__device__ void select_floyd_memory(const Stream& draw,
                                    uint64_t n,
                                    uint32_t k,
                                    const group_t& group,
                                    int64_t* t,
                                    int64_t* words,
                                    const emit_t& emit) {
  const FloydChain chain{n - k};
  const FloydLists lists(words, k);
  for (uint32_t j = group.rank; j < k; j += group.size) {
    t[j] = static_cast<int64_t>(bounded(draw(j), chain.first + j + 1));
    lists.clear(j);
  }
  group.sync();
  for (uint32_t j = group.rank; j < k; j += group.size)
    lists.insert(j, t[j]);
  group.sync();
  for (uint32_t j = group.rank; j < k; j += group.size)
    if (lists.repeats(j, t))
      lists.give_way(j);
  group.sync();
  // Others may finish their slots meanwhile, which only shortens chains.
  for (uint32_t j = group.rank; j < k; j += group.size) {
    uint32_t at = j, next = j;
    bool found;
    do {
      at = next;
      found = lists.gave_way(at);
      next = chain.next(static_cast<uint64_t>(t[at]), at);
    } while (!found && next != at);
    if (found)
      lists.give_way(j);
  }
  group.sync();
  for (uint32_t j = group.rank; j < k; j += group.size)
    if (lists.gave_way(j))
      t[j] = static_cast<int64_t>(chain.first + j);
  group.sync();  // the lists may be overwritten
  for (uint32_t j = group.rank; j < k; j += group.size)
    emit(j, static_cast<uint64_t>(t[j]));
}

template <typename emit_t>
__device__ void select_floyd(const Stream& draw,
                             uint64_t n,
                             uint32_t k,
                             const LaneGroup& group,
                             int64_t* t,
                             int64_t* words,
                             const emit_t& emit) {
  if (k > group.size)
    return select_floyd_memory(draw, n, k, group, t, words, emit);
  const uint64_t choice = select_floyd_lanes(draw, n, k, group);
  if (group.rank < k)
    emit(group.rank, choice);
}

template <typename emit_t>
__device__ void select_floyd(const Stream& draw,
                             uint64_t n,
                             uint32_t k,
                             const BlockGroup& group,
                             int64_t* t,
                             int64_t* words,
                             const emit_t& emit) {
  select_floyd_memory(draw, n, k, group, t, words, emit);
}

}  // namespace gsample
