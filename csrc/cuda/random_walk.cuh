// First-order walks, one thread per walker. A step reads the column's bounds,
// the weights if any, and one neighbour: three dependent reads, whose latency
// is hidden by many concurrent walkers.
#pragma once

#include "../core/walk.h"
#include "random_walk.h"
#include "report.cuh"

namespace gsample {

constexpr int kWalkThreads = 256;  // per block

// The edge of column `v` for a draw, or -1 if it has none. If the column is out
// of bounds, reports it and returns false.
template <bool kWeighted, typename indptr_t, typename index_t>
__device__ bool draw_edge(const WalkGraph<indptr_t, index_t>& graph,
                          int64_t v,
                          uint64_t draw,
                          int64_t relation,
                          Report* report,
                          int64_t* edge) {
  const indptr_t begin = graph.indptr[v], end = graph.indptr[v + 1];
  if (!graph.holds(begin, end)) {
    note_fault(report, Report::kIndptr, v, graph.num_edges, relation);
    return false;
  }
  if (!kWeighted || graph.cum_weight == nullptr) {
    const uint64_t degree = static_cast<uint64_t>(int64_t{end} - begin);
    *edge =
        degree > 0 ? begin + static_cast<int64_t>(bounded(draw, degree)) : -1;
    return true;
  }
  const CumulativeWeights w = graph.weights(begin, end);
  *edge = -1;
  if (w.total() > 0) {
    const uint64_t unit = bounded(draw, w.total());
    *edge = begin + static_cast<int64_t>(w.find(unit, EvenGuess(w)(0, unit)));
  }
  return true;
}

// The features of a walk: each takes registers.
enum class WalkKind { kPlain, kAny, kPath };

// Plain walks have neither weights nor restarts, others may; walks along a path
// also have several relations.
template <WalkKind kKind, typename indptr_t, typename index_t>
class RandomWalker {
  static constexpr bool kPlain = kKind == WalkKind::kPlain;
  static constexpr bool kPath = kKind == WalkKind::kPath;

 public:
  using Args = RandomWalkCuda<indptr_t, index_t>;
  using Graph = WalkGraph<indptr_t, index_t>;

  __device__ RandomWalker(const Args& args, int64_t walker)
      : a_(args),
        draws_{args.stream, static_cast<uint64_t>(walker)},
        seed_(args.seeds[walker]),
        nodes_(args.nodes + walker * (args.length + 1)),
        edges_(args.edges + walker * args.length) {}

  // A walk with a fault stops there.
  __device__ void walk() {
    nodes_[0] = seed_;
    if (seed_ < 0 || seed_ >= a_.num_cols)
      return note_fault(a_.report, Report::kId,
                        static_cast<int64_t>(draws_.walker), seed_);
    int64_t node = seed_;
    for (int64_t step = 0; step < a_.length; ++step) {
      draw(static_cast<uint32_t>(step));
      int64_t edge = -1;
      if (node >= 0 && !draw_edge<!kPlain>(graph(step), node, position_,
                                           relation(step), a_.report, &edge))
        return;
      if (!kPlain && a_.restart > 0 && restarts(restart_, a_.restart)) {
        edge = -1;
        node = seed_;
      }
      if (edge >= 0 && !follow(step, edge, &node))
        return;
      if (kPath && edge < 0)
        node = -1;
      edges_[step] = edge;
      nodes_[step + 1] = node;
    }
  }

 private:
  __device__ int64_t relation(int64_t step) const {
    return kPath ? a_.path[step] : 0;
  }
  __device__ const Graph& graph(int64_t step) const {
    return kPath ? a_.graphs[a_.path[step]] : a_.graph;
  }

  // A block has the draws of two steps.
  __device__ void draw(uint32_t step) {
    if (step % 2 != 0) {
      position_ = next_position_;
      restart_ = next_restart_;
      return;
    }
    const Block position =
        Stream{draws_.key, kPositionRoot, draws_.walker}.block(step / 2);
    position_ = position.half(0);
    next_position_ = position.half(1);
    if (kPlain || a_.restart == 0)
      return;
    const Block restart =
        Stream{draws_.key, kRestartRoot, draws_.walker}.block(step / 2);
    restart_ = restart.half(0);
    next_restart_ = restart.half(1);
  }

  // Moves to the end of an edge, which must be a column of the next step.
  __device__ bool follow(int64_t step, int64_t edge, int64_t* node) const {
    const bool last = step + 1 == a_.length;
    const int64_t limit = !last   ? graph(step + 1).num_cols
                          : kPath ? INT64_MAX
                                  : a_.graph.num_cols;
    *node = graph(step).indices[edge];
    if (*node >= 0 && *node < limit)
      return true;
    note_fault(a_.report, Report::kIndices, edge, *node, relation(step));
    return false;
  }

  const Args& a_;
  const WalkDraws draws_;
  const int64_t seed_;
  int64_t* nodes_;
  int64_t* edges_;
  uint64_t position_ = 0;  // draws of this step
  uint64_t restart_ = 0;
  uint64_t next_position_ = 0;
  uint64_t next_restart_ = 0;
};

// As many plain walkers as an SM holds: they hide their read latency.
template <WalkKind kKind, typename indptr_t, typename index_t>
__global__ void __launch_bounds__(kWalkThreads,
                                  kKind == WalkKind::kPlain ? 8 : 1)
    random_walk_kernel(RandomWalkCuda<indptr_t, index_t> args) {
  const int64_t step = grid_threads();
  for (int64_t w = global_rank(); w < args.num_seeds; w += step)
    RandomWalker<kKind, indptr_t, index_t>(args, w).walk();
}

}  // namespace gsample
