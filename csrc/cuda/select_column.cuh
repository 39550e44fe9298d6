// Selection in a column by a group of threads: the numbers of core/select.h and
// core/weighted.h. Every thread of the group must call these; each slot's
// choice, a position in the column, is passed to take(slot, choice) once.
#pragma once

#include "../core/weighted.h"
#include "sample_column.cuh"
#include "select_group.cuh"
#include "taken_list.cuh"

namespace gsample {

// Memory for the slots of a column, `count` of each. take() may overwrite its
// slot of `choice` and `mark`.
struct SelectScratch {
  int64_t* choice;
  int64_t* mark;
  TakenWeight* taken;
};

template <typename group_t, typename take_t>
__device__ void select_uniform(const Stream& draw,
                               const SampleColumn& column,
                               bool replace,
                               const group_t& group,
                               const SelectScratch& scratch,
                               const take_t& take) {
  const uint64_t n = static_cast<uint64_t>(column.length);
  const uint32_t k = static_cast<uint32_t>(column.count);
  if (!column.all && !replace)
    return select_floyd(draw, n, k, group, scratch.choice, scratch.mark, take);
  for (uint32_t slot = group.rank; slot < k; slot += group.size)
    take(slot, column.all ? slot : bounded(draw(slot), n));
}

// Slots that one thread draws when each depends on the earlier ones: k slots
// take it O(k^2) steps.
constexpr uint32_t kSlotsInTurn = 16;

// The choices of a group's first warp, or its first thread, for all slots, when
// each depends on the earlier ones.
template <typename group_t>
__device__ void choose_weighted(const Stream& draw,
                                const SampleColumn& column,
                                const CumulativeWeights& weights,
                                const group_t& group,
                                const SelectScratch& scratch) {
  const uint32_t k = static_cast<uint32_t>(column.count);
  const bool by_warp = !column.all && k > kSlotsInTurn && group.size >= 32;
  if (group.rank >= (by_warp ? 32u : 1u))
    return;
  uint32_t slot = 0;
  if (column.all) {
    for (uint64_t i = 0; i < weights.n && slot < k; ++i)
      if (weights.through(i) > weights.start(i))
        scratch.choice[slot++] = static_cast<int64_t>(i);
  } else if (by_warp) {
    slot = select_weighted_by_list(draw, weights, k, scratch.choice,
                                   scratch.taken);
  } else {
    slot = select_weighted_without_replacement(
        draw, EvenGuess(weights), weights, k, scratch.choice, scratch.taken);
  }
  // Only weights that are not cumulative sums leave slots without a choice.
  if (group.rank == 0)
    for (; slot < k; ++slot)
      scratch.choice[slot] = 0;
}

template <typename group_t, typename take_t>
__device__ void select_weighted(const Stream& draw,
                                const SampleColumn& column,
                                const CumulativeWeights& weights,
                                bool replace,
                                const group_t& group,
                                const SelectScratch& scratch,
                                const take_t& take) {
  const uint32_t k = static_cast<uint32_t>(column.count);
  const bool plain = column.all && column.count == column.length;
  const bool serial = !plain && (column.all || !replace);
  if (serial)
    choose_weighted(draw, column, weights, group, scratch);
  group.sync();
  const uint64_t sum = weights.total();
  const EvenGuess guess(weights);
  for (uint32_t slot = group.rank; slot < k; slot += group.size) {
    uint64_t choice = slot;
    if (serial) {
      choice = static_cast<uint64_t>(scratch.choice[slot]);
    } else if (!plain && sum > 0) {
      const uint64_t r = bounded(draw(slot), sum);
      choice = weights.find(r, guess(slot, r));
    } else if (!plain) {
      choice = 0;
    }
    take(slot, choice);
  }
}

}  // namespace gsample
