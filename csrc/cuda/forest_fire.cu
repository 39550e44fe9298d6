// Fire, level by level in one cooperative launch: a warp per burning node, or a
// block if it has many edges. The nodes that catch fire do not depend on the
// order within a level, so they are listed in any order and sorted at the end.
#include "forest_fire.h"

#include "../core/forest_fire.h"
#include "columns.cuh"
#include "launch.cuh"
#include "select_group.cuh"

namespace gsample {

constexpr int kFireThreads = 256;         // per block
constexpr int64_t kManyFireEdges = 4096;  // of a node handled by a block
constexpr int kFireDigit = 5;             // bits: one lane of a warp per value
constexpr int kFirePositionBits = 61;     // and 64 of a draw: 25 digits

struct FireShared {
  BlockSums sums;
  uint32_t warp_bins[kFireThreads / 32][1 << kFireDigit];
  uint32_t block_bins[1 << kFireDigit];
};

template <typename indptr_t, typename index_t>
class Fire {
 public:
  using Args = ForestFireCuda<indptr_t, index_t>;

  __device__ Fire(const Args& args, FireShared& shared)
      : a_(args), shared_(shared) {}

  __device__ void begin() const {
    for (int64_t w = global_rank(); w < a_.words(); w += grid_threads())
      a_.caught[w] = a_.burning[w] = 0;
    if (global_rank() == 0)
      *a_.tail = 0;
    grid_barrier();
    for (int64_t i = global_rank(); i < a_.num_seeds; i += grid_threads()) {
      const int64_t v = a_.seeds[i];
      if (v >= 0 && v < a_.graph.num_cols)
        catch_fire(v);
      else
        note_fault(a_.report, Report::kId, i, v);
    }
    grid_barrier();
  }

  // The number of nodes that burn or will burn. No thread may change it
  // meanwhile.
  __device__ int64_t size() const {
    return Atomic<int64_t>(*a_.tail).load(kRelaxed);
  }

  // Spreads from the nodes of [level, end), none of which can catch fire again.
  __device__ void spread(int64_t level, int64_t end) const {
    for (int64_t i = level + global_rank(); i < end; i += grid_threads())
      Atomic<uint64_t>(a_.burning[a_.burnt[i] / 64])
          .fetch_or(bit_of(a_.burnt[i]), kRelaxed);
    grid_barrier();
    const LaneGroup warp(32);
    const int64_t warps = grid_threads() / 32;
    for (int64_t i = level + global_rank() / 32; i < end; i += warps)
      spread_from(a_.burnt[i], warp, shared_.warp_bins[threadIdx.x / 32], 0,
                  kManyFireEdges);
    for (int64_t i = level + blockIdx.x; i < end; i += gridDim.x)
      spread_from(a_.burnt[i], BlockGroup(), shared_.block_bins, kManyFireEdges,
                  INT64_MAX);
    grid_barrier();
  }

  __device__ void write_ascending() const {
    const auto count = [&](int64_t w) -> int64_t {
      return __popcll(a_.caught[w]);
    };
    const auto write = [&](int64_t w, int64_t next) {
      for (uint64_t left = a_.caught[w]; left != 0; left &= left - 1)
        a_.burnt[next++] = 64 * w + __popcll((left & (~left + 1)) - 1);
    };
    const int64_t size =
        number_items(count, write, a_.words(), a_.totals, shared_.sums);
    if (global_rank() == 0)
      a_.report->size = size;
  }

 private:
  // A draw and the position of its entry: all keys are distinct.
  using Key = unsigned __int128;

  __device__ static uint64_t bit_of(int64_t v) { return uint64_t{1} << v % 64; }

  __device__ void catch_fire(int64_t v) const {
    const uint64_t before =
        Atomic<uint64_t>(a_.caught[v / 64]).fetch_or(bit_of(v), kRelaxed);
    if ((before & bit_of(v)) == 0)
      a_.burnt[Atomic<int64_t>(*a_.tail).fetch_add(1, kRelaxed)] = v;
  }

  // Whether an entry can catch fire.
  __device__ bool is_fresh(int64_t edge) const {
    const int64_t to = a_.graph.indices[edge];
    if (to >= 0 && to < a_.graph.num_cols)
      return (a_.burning[to / 64] & bit_of(to)) == 0;
    note_fault(a_.report, Report::kIndices, edge, to);
    return false;
  }

  __device__ static Key key_of(const FireDraws& draws, int64_t i) {
    return Key{draws.entry(i)} << kFirePositionBits | static_cast<uint64_t>(i);
  }

  // Sets neighbours of a node with more than `least` and at most `most` edges
  // on fire, in a group of whole warps with its own `bins`.
  template <typename group_t>
  __device__ void spread_from(int64_t v,
                              const group_t& group,
                              uint32_t* bins,
                              int64_t least,
                              int64_t most) const {
    const ColumnBounds c = read_bounds(a_.graph.indptr, a_.graph.num_cols,
                                       a_.graph.num_edges, v, v, a_.report);
    if (c.length <= least || c.length > most)
      return;
    const FireDraws draws(a_.stream, v);
    const int64_t width = draws.width(a_.p, c.length);
    if (width == 0)
      return;
    int shift;
    const Key last = find_last(c, draws, width, group, bins, &shift);
    for (int64_t i = group.rank; i < c.length; i += group.size)
      if (is_fresh(c.start + i) && key_of(draws, i) >> shift <= last)
        catch_fire(a_.graph.indices[c.start + i]);
  }

  // Returns the bound of the `width` smallest keys of fresh entries, those with
  // key >> *shift <= the result: all, if there are no more. The search goes
  // digit by digit from the highest, by counts of the next digit.
  template <typename group_t>
  __device__ Key find_last(const ColumnBounds& c,
                           const FireDraws& draws,
                           int64_t width,
                           const group_t& group,
                           uint32_t* bins,
                           int* shift) const {
    constexpr uint32_t kDigits = 1u << kFireDigit;
    const uint32_t lane = group.rank % kDigits;
    Key last = 0;
    int64_t left = width;
    *shift = 64 + kFirePositionBits;
    for (;;) {
      *shift -= kFireDigit;
      if (group.rank < kDigits)
        bins[group.rank] = 0;
      group.sync();
      for (int64_t i = group.rank; i < c.length; i += group.size) {
        const Key key = key_of(draws, i) >> *shift;
        if (key >> kFireDigit == last && is_fresh(c.start + i))
          Atomic<uint32_t>(bins[static_cast<uint32_t>(key) % kDigits])
              .fetch_add(1, kRelaxed);
      }
      group.sync();
      const int64_t count = bins[lane];
      group.sync();         // `bins` may be reused
      int64_t sum = count;  // of the digits up to and including this one
      for (uint32_t step = 1; step < kDigits; step *= 2) {
        const int64_t before = __shfl_up_sync(kAllLanes, sum, step);
        sum += lane >= step ? before : 0;
      }
      if (__shfl_sync(kAllLanes, sum, kDigits - 1) <= left)
        return last << kFireDigit | (kDigits - 1);
      const uint32_t below = __ballot_sync(kAllLanes, sum < left);
      const int digit = __popc(below);
      last = last << kFireDigit | static_cast<uint32_t>(digit);
      left -= __shfl_sync(kAllLanes, sum - count, digit);
      if (__shfl_sync(kAllLanes, count, digit) == left)
        return last;
    }
  }

  const Args& a_;
  FireShared& shared_;
};

// Three blocks per SM: nvcc aims at four, and spills registers.
template <typename indptr_t, typename index_t>
__global__ void __launch_bounds__(kFireThreads, 3)
    forest_fire_kernel(ForestFireCuda<indptr_t, index_t> args) {
  GSAMPLE_SHARED(FireShared, shared);
  const Fire<indptr_t, index_t> fire(args, shared);
  fire.begin();
  int64_t level = 0;  // first node that has not spread yet
  for (int64_t end = fire.size(); level < end; end = fire.size()) {
    fire.spread(level, end);
    level = end;
  }
  fire.write_ascending();
}

template <typename indptr_t, typename index_t>
LaunchShape forest_fire_shape(const ForestFireCuda<indptr_t, index_t>& args) {
  return cooperative_shape(forest_fire_kernel<indptr_t, index_t>, kFireThreads,
                           args.graph.num_cols);
}

template <typename indptr_t, typename index_t>
void forest_fire(const ForestFireCuda<indptr_t, index_t>& args,
                 LaunchShape shape,
                 StreamHandle stream) {
  launch_cooperative("forest_fire", forest_fire_kernel<indptr_t, index_t>,
                     shape, stream, args);
}

#define GSAMPLE_INSTANTIATE(indptr_t, index_t)                        \
  template LaunchShape forest_fire_shape(                             \
      const ForestFireCuda<indptr_t, index_t>&);                      \
  template void forest_fire(const ForestFireCuda<indptr_t, index_t>&, \
                            LaunchShape, StreamHandle);
GSAMPLE_INSTANTIATE(int32_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int64_t)

}  // namespace gsample
