#include "random_walk.h"

#include "draws.h"

namespace gsample {

namespace {

// A group of walkers that make each step together: all look up their columns,
// then all read their neighbours, so that the reads of a phase overlap.
template <typename indptr_t, typename index_t, bool kPath>
class WalkGroup {
 public:
  using Graph = WalkGraph<indptr_t, index_t>;
  using Args = RandomWalkArgs<indptr_t, index_t>;

  WalkGroup(const Args& args, int64_t first, int lanes)
      : args_(args), lanes_(lanes), graph_(args.graphs) {
    for (int lane = 0; lane < kWalkLanes; ++lane) {
      id_[lane] = first + lane;
      position_root_[lane] = kPositionRoot;
      restart_root_[lane] = kRestartRoot;
    }
    seeds_ = args.seeds + first;
  }

  // Returns false, after a report, where the graph is malformed.
  bool walk(int64_t* nodes, int64_t* edges, WalkWatch* watch) {
    for (int lane = 0; lane < lanes_; ++lane) {
      node_[lane] = seeds_[lane];
      nodes[lane * (args_.length + 1)] = seeds_[lane];
      if (args_.length > 0)
        prefetch_column(graph(0), node_[lane]);
    }
    for (int64_t step = 0; step < args_.length; ++step) {
      if (step % 32 == 0)
        watch->poll();
      if (watch->stopped())
        return false;
      if (step % 2 == 0)
        draw(step);
      graph_ = &graph(step);
      if (!choose(step % 2, watch) || !move(step, nodes, edges, watch))
        return false;
    }
    return true;
  }

 private:
  const Graph& graph(int64_t step) const {
    return args_.graphs[kPath ? args_.path[step] : 0];
  }

  // The draws of this step and the next.
  void draw(int64_t step) {
    for (int lane = 0; lane < kWalkLanes; ++lane)
      block_[lane] = step / 2;
    draw_blocks(args_.stream, block_, position_root_, id_, lanes_, position_[0],
                position_[1]);
    if (args_.restart > 0)
      draw_blocks(args_.stream, block_, restart_root_, id_, lanes_, restart_[0],
                  restart_[1]);
  }

  // Sets the edge of each walker's step, -1 if none.
  bool choose(int half, WalkWatch* watch) {
    bool holds = true;
    for (int lane = 0; lane < lanes_; ++lane) {
      const int64_t v = node_[lane];
      const bool ended = kPath && v < 0;
      begin_[lane] = ended ? 0 : graph_->indptr[v];
      end_[lane] = ended ? 0 : graph_->indptr[v + 1];
      holds &= graph_->holds(begin_[lane], end_[lane]);
      if (graph_->cum_weight == nullptr)
        choose_uniform(lane, position_[half][lane]);
    }
    if (!holds)
      return report_column(watch);
    if (graph_->cum_weight != nullptr)
      choose_weighted(position_[half]);
    if (args_.restart > 0)
      restart(restart_[half]);
    return true;
  }

  void choose_uniform(int lane, uint64_t draw) {
    const uint64_t begin = begin_[lane];
    const uint64_t degree = static_cast<uint64_t>(end_[lane]) - begin;
    const int64_t edge = static_cast<int64_t>(begin + bounded(draw, degree));
    prefetch_item(graph_->indices, edge);
    edge_[lane] = degree > 0 ? edge : -1;
  }

  void choose_weighted(const uint64_t* draw) {
    for (int lane = 0; lane < lanes_; ++lane)
      __builtin_prefetch(graph_->cum_weight + end_[lane] - 1);
    for (int lane = 0; lane < lanes_; ++lane) {
      const CumulativeWeights w = graph_->weights(begin_[lane], end_[lane]);
      total_[lane] = w.total();
      if (total_[lane] == 0)
        continue;
      unit_[lane] = bounded(draw[lane], total_[lane]);
      guess_[lane] = EvenGuess(w)(0, unit_[lane]);
      const int64_t* window = w.cum + w.window(guess_[lane]);
      __builtin_prefetch(window);
      __builtin_prefetch(window + kWindow - 1);
    }
    for (int lane = 0; lane < lanes_; ++lane) {
      edge_[lane] = -1;
      if (total_[lane] == 0)
        continue;
      const CumulativeWeights w = graph_->weights(begin_[lane], end_[lane]);
      edge_[lane] = begin_[lane] + w.find(unit_[lane], guess_[lane]);
      __builtin_prefetch(graph_->indices + edge_[lane]);
    }
  }

  void restart(const uint64_t* draw) {
    for (int lane = 0; lane < lanes_; ++lane) {
      if (!restarts(draw[lane], args_.restart))
        continue;
      edge_[lane] = -1;
      node_[lane] = seeds_[lane];  // with a path, move() ends the walk
    }
  }

  // Moves the walkers along their edges.
  bool move(int64_t step, int64_t* nodes, int64_t* edges, WalkWatch* watch) {
    const bool last = step + 1 == args_.length;
    const Graph& next = last ? *graph_ : graph(step + 1);
    const uint64_t limit =
        kPath && last ? INT64_MAX : static_cast<uint64_t>(next.num_cols);
    bool holds = true;
    for (int lane = 0; lane < lanes_; ++lane) {
      const int64_t edge = edge_[lane];
      int64_t node = kPath ? -1 : node_[lane];
      if (edge >= 0) {
        node = graph_->indices[edge];
        holds &= static_cast<uint64_t>(node) < limit;
      }
      node_[lane] = node;
      prefetch_column(next, node);
      edges[lane * args_.length + step] = edge;
      nodes[lane * (args_.length + 1) + step + 1] = node;
    }
    return holds || report_edge(limit, watch);
  }

  int graph_number() const { return static_cast<int>(graph_ - args_.graphs); }

  bool report_column(WalkWatch* watch) const {
    for (int lane = 0; lane < lanes_; ++lane)
      if (!graph_->holds(begin_[lane], end_[lane])) {
        watch->report({false, graph_number(), node_[lane]});
        break;
      }
    return false;
  }

  bool report_edge(uint64_t limit, WalkWatch* watch) const {
    for (int lane = 0; lane < lanes_; ++lane)
      if (edge_[lane] >= 0 && static_cast<uint64_t>(node_[lane]) >= limit) {
        watch->report({true, graph_number(), edge_[lane]});
        break;
      }
    return false;
  }

  const Args& args_;
  const int lanes_;
  const Graph* graph_;  // of this step
  const int64_t* seeds_;
  int64_t node_[kWalkLanes];
  int64_t edge_[kWalkLanes];
  indptr_t begin_[kWalkLanes];
  indptr_t end_[kWalkLanes];
  uint64_t total_[kWalkLanes];
  uint64_t unit_[kWalkLanes];
  uint64_t guess_[kWalkLanes];
  uint64_t id_[kWalkLanes];
  uint64_t block_[kWalkLanes];
  uint64_t position_root_[kWalkLanes];
  uint64_t restart_root_[kWalkLanes];
  uint64_t position_[2][kWalkLanes];
  uint64_t restart_[2][kWalkLanes];
};

template <bool kPath, typename indptr_t, typename index_t>
Status walk_groups(const RandomWalkArgs<indptr_t, index_t>& args,
                   int64_t* nodes,
                   int64_t* edges,
                   WalkFault* fault) {
  WalkWatch watch;
  for_walk_groups(args.num_seeds, args.threads, [&](int64_t first, int lanes) {
    if (!watch.stopped())
      WalkGroup<indptr_t, index_t, kPath>(args, first, lanes)
          .walk(nodes + first * (args.length + 1), edges + first * args.length,
                &watch);
  });
  return watch.status(fault);
}

}  // namespace

template <typename indptr_t, typename index_t>
Status random_walk(const RandomWalkArgs<indptr_t, index_t>& args,
                   int64_t* nodes,
                   int64_t* edges,
                   WalkFault* fault) {
  return args.path != nullptr ? walk_groups<true>(args, nodes, edges, fault)
                              : walk_groups<false>(args, nodes, edges, fault);
}

#define GSAMPLE_RANDOM_WALK(indptr_t, index_t)                          \
  template Status random_walk(const RandomWalkArgs<indptr_t, index_t>&, \
                              int64_t*, int64_t*, WalkFault*)
GSAMPLE_RANDOM_WALK(int32_t, int32_t);
GSAMPLE_RANDOM_WALK(int64_t, int32_t);
GSAMPLE_RANDOM_WALK(int64_t, int64_t);
#undef GSAMPLE_RANDOM_WALK

}  // namespace gsample
