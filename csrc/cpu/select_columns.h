// Selects edges of columns. The draws of a group of columns precede the
// selections, so that the random numbers are vectorised.
#pragma once

#include "../core/hash.h"
#include "../core/select.h"
#include "../core/weighted.h"
#include "buffer.h"
#include "draws.h"
#include "search_sums.h"
#include "select_lanes.h"

namespace gsample {

// The candidates of a column after temporal restriction: `length` edges from
// `start` on, of which `count` are selected and written to `out`.
template <typename indptr_t>
struct Column {
  indptr_t start;
  indptr_t length;
  int64_t count;
  uint32_t root;
  uint64_t id;
  CumulativeWeights weights;  // of the candidates, if weighted
  indptr_t* out;
};

// Writes all candidates (of positive weight), in the order of the graph. Most
// columns are short: eight edges are written at a time up to `limit`, and later
// columns overwrite the excess.
template <typename indptr_t>
inline void take_all(const Column<indptr_t>& c, const indptr_t* limit) {
  constexpr indptr_t kStep = 8;
  if (c.count == c.length) {
    indptr_t i = 0;
    if (limit - c.out >= kStep)
      for (; i < kStep; ++i)
        c.out[i] = c.start + i;
    for (; i < c.length; ++i)
      c.out[i] = c.start + i;
    return;
  }
  indptr_t* out = c.out;
  for (indptr_t i = 0; i < c.length; ++i)
    if (c.weights.through(i) > c.weights.start(i))
      *out++ = c.start + i;
}

// Selects at random in its columns, one group at a time.
template <typename indptr_t, typename index_t>
class ColumnSelector {
 public:
  // Prefetches the selected `indices`, unless null.
  ColumnSelector(const index_t* indices,
                 bool weighted,
                 bool replace,
                 uint64_t key)
      : indices_(indices), weighted_(weighted), replace_(replace), key_(key) {}

  // Later columns draw with another key.
  void use_key(uint64_t key) {
    if (key != key_)
      flush();
    key_ = key;
  }

  // The selection is written by flush() at the latest.
  void add(const Column<indptr_t>& column) {
    if (column.count > kGroupSlots ||
        (!weighted_ && static_cast<uint64_t>(column.length) > UINT32_MAX))
      return select_large(column);
    const int slots = std::max(slots_, even(column.count));
    if (lanes_ == kGroupLanes || slots * padded(lanes_ + 1) > kGroupDraws)
      flush();
    if (weighted_)
      prefetch_ends(column.weights);
    slots_ = std::max(slots_, even(column.count));
    column_[lanes_] = column;
    root_[lanes_] = column.root;
    id_[lanes_] = column.id;
    length_[lanes_] = static_cast<uint64_t>(column.length);
    count_[lanes_] = static_cast<uint64_t>(column.count);
    ++lanes_;
  }

  void flush() {
    stride_ = padded(lanes_);
    for (int lane = lanes_; lane < stride_; ++lane)
      root_[lane] = id_[lane] = length_[lane] = count_[lane] = 0;
    draw_lanes(key_, root_, id_, lanes_, slots_, stride_, draws_);
    if (weighted_)
      prefetch_searches();
    else
      select_lanes(length_, count_, replace_, lanes_, slots_, stride_, draws_);
    for (int lane = 0; lane < lanes_; ++lane) {
      select_small(column_[lane], lane);
      for (int64_t slot = 0; indices_ && slot < column_[lane].count; ++slot)
        __builtin_prefetch(indices_ + column_[lane].out[slot]);
    }
    lanes_ = slots_ = 0;
  }

  // Selects in a large column on its own.
  void select_large(const Column<indptr_t>& c) {
    const Stream draw{key_, c.root, c.id};
    if (weighted_ && replace_)
      finish_weighted(c, select_many_weighted(draw, c.weights, c.count, c.out));
    else if (weighted_)
      select_weighted(c, draw, EvenGuess(c.weights));
    else
      select_uniform(c, draw);
  }

 private:
  // A group's draws fit in the L1 cache: 2,048 of 8 bytes.
  static constexpr int kGroupLanes = 64;
  static constexpr int kGroupSlots = 64;
  static constexpr int kGroupDraws = 2048;
  static constexpr uint64_t kLongColumn = 64;

  struct LaneDraws {
    const uint64_t* first;
    int stride;
    uint64_t operator()(uint32_t slot) const { return first[slot * stride]; }
  };

  static int even(int64_t slots) { return static_cast<int>(slots + 1) & ~1; }
  static int padded(int lanes) {
    return (lanes + kLaneGroup - 1) / kLaneGroup * kLaneGroup;
  }

  static void prefetch_ends(const CumulativeWeights& w) {
    __builtin_prefetch(w.cum);
    __builtin_prefetch(w.cum + w.n - 1);
  }

  // Guesses where each search of a group will end, so that the misses of all of
  // them overlap. In a long column one probe at the guess improves it: an error
  // of e positions becomes one of about sqrt(e).
  void prefetch_searches() {
    for (int lane = 0; lane < lanes_; ++lane)
      guess_positions(column_[lane], lane);
    for (int lane = 0; lane < lanes_; ++lane)
      improve_guesses(column_[lane], lane);
  }

  void guess_positions(const Column<indptr_t>& c, int lane) {
    const CumulativeWeights& w = c.weights;
    const EvenGuess guess(w);
    const uint64_t sum = w.total();
    for (uint32_t slot = 0; slot < c.count; ++slot) {
      const int at = static_cast<int>(slot) * stride_ + lane;
      guess_[at] = std::min(guess(slot, bounded(draws_[at], sum)), w.n - 1);
      __builtin_prefetch(w.cum + guess_[at]);
    }
  }

  void improve_guesses(const Column<indptr_t>& c, int lane) {
    const CumulativeWeights& w = c.weights;
    const double density = EvenGuess(w).density;
    const uint64_t sum = w.total();
    for (uint32_t slot = 0; slot < c.count; ++slot) {
      const int at = static_cast<int>(slot) * stride_ + lane;
      const uint64_t r = bounded(draws_[at], sum);
      if (w.n > kLongColumn)
        guess_[at] = shift(guess_[at], r, w.through(guess_[at]), density);
      const uint64_t first = w.window(guess_[at]);
      __builtin_prefetch(w.cum + first);
      __builtin_prefetch(w.cum + std::min(first + kWindow, w.n) - 1);
    }
  }

  // The position of weight `to`, estimated from that of `from`.
  static uint64_t shift(uint64_t position,
                        uint64_t to,
                        uint64_t from,
                        double density) {
    const double steps =
        (static_cast<double>(to) - static_cast<double>(from)) * density;
    const double moved = static_cast<double>(position) + steps;
    constexpr double kFar = 1e18;  // find() clamps larger values
    return static_cast<uint64_t>(std::min(std::max(moved, 0.0), kFar));
  }

  // Starts from the guess for a slot's draw; selections of earlier slots move
  // r.
  struct GroupGuess {
    const LaneDraws& draw;
    const uint64_t* first;
    uint64_t sum;
    double density;
    uint64_t operator()(uint32_t slot, uint64_t r) const {
      return shift(first[slot * draw.stride], r, bounded(draw(slot), sum),
                   density);
    }
  };

  void select_small(const Column<indptr_t>& c, int lane) {
    const LaneDraws draw{draws_ + lane, stride_};
    if (weighted_)
      return select_weighted(c, draw,
                             GroupGuess{draw, guess_ + lane, c.weights.total(),
                                        EvenGuess(c.weights).density});
    for (uint32_t slot = 0; slot < c.count; ++slot)
      c.out[slot] = c.start + static_cast<indptr_t>(draw(slot));
  }

  template <typename draw_t>
  void select_uniform(const Column<indptr_t>& c, const draw_t& draw) {
    const uint32_t k = static_cast<uint32_t>(c.count);
    if (replace_)
      select_with_replacement(draw, c.length, k, c.out);
    else if (k <= kGroupSlots)
      select_without_replacement(draw, c.length, k, c.out);
    else
      select_floyd(draw, c.length, k, c.out, TakenSet(seen_, c.length, k));
    for (uint32_t slot = 0; slot < k; ++slot)
      c.out[slot] += c.start;
  }

  template <typename draw_t, typename guess_t>
  void select_weighted(const Column<indptr_t>& c,
                       const draw_t& draw,
                       const guess_t& guess) {
    const uint32_t k = static_cast<uint32_t>(c.count);
    taken_.reserve(k);
    const uint32_t selected =
        replace_
            ? select_weighted_with_replacement(draw, guess, c.weights, k, c.out)
            : select_weighted_without_replacement(draw, guess, c.weights, k,
                                                  c.out, taken_.data());
    finish_weighted(c, selected);
  }

  // Turns the positions selected in a column into edges.
  static void finish_weighted(const Column<indptr_t>& c, int64_t selected) {
    for (int64_t slot = 0; slot < selected; ++slot)
      c.out[slot] += c.start;
    // Only weights that are not cumulative sums leave slots without a draw.
    std::fill(c.out + selected, c.out + c.count, c.start);
  }

  // `taken` of select_floyd for many slots. It stores every value that the
  // algorithm selects: t if it is free, else n - k + slot, which is new.
  class TakenSet {
   public:
    TakenSet(Buffer<uint64_t>& table, uint64_t n, uint32_t k) : first_(n - k) {
      uint64_t capacity = 64;
      while (capacity < 2 * static_cast<uint64_t>(k))
        capacity *= 2;
      mask_ = capacity - 1;
      table.reserve(capacity);
      memset(table.data(), 0, capacity * sizeof(uint64_t));
      table_ = table.data();
    }
    bool operator()(indptr_t t, uint32_t slot) const {
      const bool found = insert(static_cast<uint64_t>(t));
      if (found)
        insert(first_ + slot);
      return found;
    }

   private:
    bool insert(uint64_t value) const {
      uint64_t i = mix64(value) & mask_;
      for (; table_[i] != 0; i = (i + 1) & mask_)
        if (table_[i] == value + 1)
          return true;
      table_[i] = value + 1;
      return false;
    }

    uint64_t* table_;
    uint64_t mask_;
    uint64_t first_;
  };

  const index_t* indices_;
  bool weighted_;
  bool replace_;
  uint64_t key_;
  int lanes_ = 0;
  int slots_ = 0;  // of the lanes, rounded up to even
  int stride_ = 0;
  Column<indptr_t> column_[kGroupLanes];
  uint64_t root_[kGroupLanes];
  uint64_t id_[kGroupLanes];
  uint64_t length_[kGroupLanes];
  uint64_t count_[kGroupLanes];
  uint64_t draws_[kGroupDraws + kGroupLanes];
  uint64_t guess_[kGroupDraws + kGroupLanes];
  Buffer<TakenWeight> taken_;
  Buffer<uint64_t> seen_;
};

}  // namespace gsample
