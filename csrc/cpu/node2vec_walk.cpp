#include "node2vec_walk.h"

#include <vector>

#include "among.h"
#include "draws.h"

namespace gsample {

namespace {

// A walker between two steps. `from` is the node before `at`, or -1.
struct Walker {
  int64_t number;
  int64_t step;
  int64_t from;
  int64_t at;
  int64_t from_begin;
  int64_t from_end;
  int64_t begin;
  int64_t end;
  uint32_t attempt;
  bool arrived;  // its column is not looked up yet
};

// The next action for a candidate: step to it, draw another, or search the
// previous node's neighbours for it.
enum class Verdict : uint8_t { kAccept, kReject, kSearch };

// Walkers in rounds, each at its own step and candidate: a round draws one
// candidate per walker. Candidates are drawn like first-order steps and
// accepted with their relative weights (Yang et al., "KnightKing", SOSP 2019).
// If the coin decides the same for neighbours and for other nodes, no search is
// needed.
template <typename indptr_t, typename index_t>
class Node2vecGroup {
 public:
  using Args = Node2vecArgs<indptr_t, index_t>;

  Node2vecGroup(const Args& args,
                int64_t first,
                int lanes,
                int64_t* nodes,
                int64_t* edges)
      : args_(args),
        graph_(args.graph),
        lanes_(lanes),
        nodes_(nodes),
        edges_(edges),
        per_node_(1.0 / static_cast<double>(args.graph.num_cols)) {
    for (int lane = 0; lane < kWalkLanes; ++lane) {
      const int64_t number = first + lane;
      const int64_t seed = lane < lanes ? args.seeds[number] : 0;
      walker_[lane] = {number, 0, -1, seed, 0, 0, 0, 0, 0, true};
      if (lane < lanes) {
        nodes_[number * (args.length + 1)] = seed;
        prefetch_column(graph_, seed);
      }
    }
    if (args.length == 0)
      lanes_ = 0;
  }

  void walk(WalkWatch* watch) {
    for (int64_t round = 0; lanes_ > 0; ++round) {
      if (round % 32 == 0)
        watch->poll();
      if (watch->stopped() || !look_up(watch))
        return;
      draw();
      graph_.cum_weight != nullptr ? choose_weighted() : choose_uniform();
      if (!judge(watch))
        return;
      search();
      for (int lane = 0; lane < lanes_; ++lane)
        if (verdict_[lane] == Verdict::kAccept)
          move(&walker_[lane], edge_[lane], candidate_[lane]);
        else if (++walker_[lane].attempt == kWalkTries &&
                 !move_exactly(&walker_[lane], watch))
          return;
      for (int lane = lanes_; lane-- > 0;)
        if (walker_[lane].step == args_.length)
          walker_[lane] = walker_[--lanes_];
    }
  }

 private:
  // Reads the columns of the walkers that moved, and retires those that cannot
  // move.
  bool look_up(WalkWatch* watch) {
    for (int lane = lanes_; lane-- > 0;) {
      Walker& w = walker_[lane];
      if (!w.arrived)
        continue;
      const indptr_t begin = graph_.indptr[w.at], end = graph_.indptr[w.at + 1];
      if (!graph_.holds(begin, end)) {
        watch->report({false, 0, w.at});
        return false;
      }
      w.begin = begin;
      w.end = end;
      w.arrived = false;
      if (graph_.cum_weight != nullptr)
        prefetch_item(graph_.cum_weight, end - 1);
    }
    for (int lane = lanes_; lane-- > 0;) {
      const Walker& w = walker_[lane];
      total_[lane] = graph_.cum_weight != nullptr
                         ? graph_.weights(w.begin, w.end).total()
                         : static_cast<uint64_t>(w.end - w.begin);
      if (total_[lane] == 0)
        stay(lane);
    }
    return true;
  }

  // Ends the walk at a node without neighbours.
  void stay(int lane) {
    const Walker& w = walker_[lane];
    for (int64_t step = w.step; step < args_.length; ++step) {
      edges_[w.number * args_.length + step] = -1;
      nodes_[w.number * (args_.length + 1) + step + 1] = w.at;
    }
    --lanes_;
    walker_[lane] = walker_[lanes_];
    total_[lane] = total_[lanes_];
  }

  // A candidate and a coin for each walker. The first step is first-order and
  // has no coin.
  void draw() {
    for (int lane = 0; lane < kWalkLanes; ++lane) {
      const Walker& w = walker_[lane];
      const bool first = w.step == 0;
      block_[lane] = w.step;
      root_[lane] = first ? kPositionRoot : kTryRoot + w.attempt;
      id_[lane] = w.number;
    }
    draw_blocks(args_.stream, block_, root_, id_, lanes_, draw_, coin_);
  }

  void choose_uniform() {
    for (int lane = 0; lane < lanes_; ++lane) {
      edge_[lane] = walker_[lane].begin + bounded(draw_[lane], total_[lane]);
      prefetch_item(graph_.indices, edge_[lane]);
    }
  }

  void choose_weighted() {
    for (int lane = 0; lane < lanes_; ++lane) {
      const Walker& walker = walker_[lane];
      const CumulativeWeights w = graph_.weights(walker.begin, walker.end);
      draw_[lane] = bounded(draw_[lane], total_[lane]);
      guess_[lane] = EvenGuess(w)(0, draw_[lane]);
      prefetch_item(w.cum, w.window(guess_[lane]));
      prefetch_item(w.cum, w.window(guess_[lane]) + kWindow - 1);
    }
    for (int lane = 0; lane < lanes_; ++lane) {
      const Walker& walker = walker_[lane];
      const CumulativeWeights w = graph_.weights(walker.begin, walker.end);
      edge_[lane] = walker.begin + w.find(draw_[lane], guess_[lane]);
      prefetch_item(graph_.indices, edge_[lane]);
    }
  }

  // Reads the candidates and decides those that need no search.
  bool judge(WalkWatch* watch) {
    const SecondOrder& law = args_.law;
    for (int lane = 0; lane < lanes_; ++lane) {
      const Walker& w = walker_[lane];
      const int64_t node = graph_.indices[edge_[lane]];
      if (!holds(node, edge_[lane], watch))
        return false;
      candidate_[lane] = node;
      const bool back = node == w.from;
      const uint64_t sure = back ? law.back : law.least_forward();
      const uint64_t most = back ? law.back : law.most_forward();
      const bool accepted = (w.from < 0) | accepts(coin_[lane], sure);
      const bool open = accepts(coin_[lane], most);
      verdict_[lane] = accepted ? Verdict::kAccept
                       : open   ? Verdict::kSearch
                                : Verdict::kReject;
    }
    return true;
  }

  // Accepts either the neighbours of the previous node or all others: whichever
  // have the larger weight.
  void settle(int lane, bool is_near) {
    const bool near_wins = args_.law.near > args_.law.far;
    verdict_[lane] = is_near == near_wins ? Verdict::kAccept : Verdict::kReject;
  }

  // Decides the candidates that need a search. Interpolation finds the
  // approximate position in a sorted column with evenly spread entries; a probe
  // there refines it, and that cache line, or the next one, nearly always
  // decides. All searches advance together, so that their misses overlap.
  void search() {
    int count = begin_searches();
    for (int i = 0; i < count; ++i)
      aim(&search_[i]);
    while (count > 0)
      count = look(count);
  }

  // Entries equal to the candidate are in [low, high).
  struct Search {
    int lane;
    bool missed;  // probed a line in vain
    int64_t low;
    int64_t high;
    int64_t place;   // of the next read
    double density;  // entries per node
  };

  int begin_searches() {
    int count = 0;
    for (int lane = 0; lane < lanes_; ++lane) {
      if (verdict_[lane] != Verdict::kSearch)
        continue;
      const Walker& w = walker_[lane];
      if (args_.ascending == nullptr) {
        settle(lane, is_among(graph_.indices + w.from_begin,
                              graph_.indices + w.from_end,
                              static_cast<index_t>(candidate_[lane])));
        continue;
      }
      Search& s = search_[count++];
      s = {lane, false, w.from_begin, w.from_end, 0, 0};
      s.density = per_node_ * (s.high - s.low);
      s.place =
          std::min(s.low + static_cast<int64_t>(candidate_[lane] * s.density),
                   s.high - 1);
      prefetch_item(args_.ascending, s.place);
    }
    return count;
  }

  // Moves a search to the line where its candidate should be.
  void aim(Search* s) {
    const double size = static_cast<double>(s->high - s->low);
    const double ahead = (static_cast<double>(candidate_[s->lane]) -
                          static_cast<double>(args_.ascending[s->place])) *
                         s->density;
    go(s,
       s->place + static_cast<int64_t>(std::min(std::max(ahead, -size), size)));
  }

  void go(Search* s, int64_t place) const {
    s->place = std::max(s->low, std::min(place, s->high - 1) & -kLine);
    prefetch_item(args_.ascending, s->place);
  }

  // Probes one line of each search. Returns the number of unfinished searches.
  int look(int count) {
    int left = 0;
    for (int i = 0; i < count; ++i) {
      Search s = search_[i];
      const index_t node = static_cast<index_t>(candidate_[s.lane]);
      const int64_t end = std::min((s.place & -kLine) + kLine, s.high);
      const bool before = s.place == s.low || args_.ascending[s.place] <= node;
      const bool behind = end == s.high || args_.ascending[end - 1] >= node;
      if (before & behind) {
        settle(s.lane, is_in(s.place, end, node));
        continue;
      }
      (before ? s.low : s.high) = before ? end : s.place;
      go(&s, s.missed ? s.low + (s.high - s.low) / 2
             : before ? s.low
                      : s.high - 1);
      s.missed = true;
      search_[left++] = s;
    }
    return left;
  }

  bool is_in(int64_t begin, int64_t end, index_t node) const {
    bool found = false;
    for (int64_t j = begin; j < end; ++j)
      found |= args_.ascending[j] == node;
    return found;
  }

  void move(Walker* w, int64_t edge, int64_t node) {
    edges_[w->number * args_.length + w->step] = edge;
    nodes_[w->number * (args_.length + 1) + w->step + 1] = node;
    prefetch_column(graph_, node);
    w->from = w->at;
    w->from_begin = w->begin;
    w->from_end = w->end;
    w->at = node;
    ++w->step;
    w->attempt = 0;
    w->arrived = true;
  }

  // After the last try: draws among all neighbours by their masses.
  bool move_exactly(Walker* w, WalkWatch* watch) {
    std::vector<index_t> sorted;
    if (args_.ascending == nullptr) {
      sorted.assign(graph_.indices + w->from_begin,
                    graph_.indices + w->from_end);
      std::sort(sorted.begin(), sorted.end());
    }
    const index_t* near = args_.ascending == nullptr
                              ? sorted.data()
                              : args_.ascending + w->from_begin;
    const index_t* near_end = near + (w->from_end - w->from_begin);
    const CumulativeWeights weights = graph_.weights(w->begin, w->end);
    const auto mass = [&](uint64_t i) -> Mass {
      const index_t node = graph_.indices[w->begin + i];
      const uint64_t weight = graph_.cum_weight != nullptr
                                  ? weights.through(i) - weights.start(i)
                                  : 1;
      if (node == w->from)
        return Mass{weight} * args_.law.back;
      const bool is_near = std::binary_search(near, near_end, node);
      return Mass{weight} * (is_near ? args_.law.near : args_.law.far);
    };
    const WalkDraws draws{args_.stream, static_cast<uint64_t>(w->number)};
    const int64_t edge =
        w->begin +
        select_by_mass(
            draws.candidate(static_cast<uint32_t>(w->step), kWalkTries),
            w->end - w->begin, mass);
    const int64_t node = graph_.indices[edge];
    if (!holds(node, edge, watch))
      return false;
    move(w, edge, node);
    return true;
  }

  // Whether a neighbour is a node; reports it otherwise.
  bool holds(int64_t node, int64_t edge, WalkWatch* watch) const {
    if (static_cast<uint64_t>(node) < static_cast<uint64_t>(graph_.num_cols))
      return true;
    watch->report({true, 0, edge});
    return false;
  }

  static constexpr int64_t kLine = 64 / sizeof(index_t);

  const Args& args_;
  const WalkGraph<indptr_t, index_t>& graph_;
  int lanes_;
  int64_t* nodes_;
  int64_t* edges_;
  const double per_node_;
  Walker walker_[kWalkLanes];
  Search search_[kWalkLanes];
  int64_t edge_[kWalkLanes];
  int64_t candidate_[kWalkLanes];
  Verdict verdict_[kWalkLanes];
  uint64_t total_[kWalkLanes];
  uint64_t guess_[kWalkLanes];
  uint64_t block_[kWalkLanes];
  uint64_t root_[kWalkLanes];
  uint64_t id_[kWalkLanes];
  uint64_t draw_[kWalkLanes];
  uint64_t coin_[kWalkLanes];
};

}  // namespace

template <typename indptr_t, typename index_t>
Status node2vec_walk(const Node2vecArgs<indptr_t, index_t>& args,
                     int64_t* nodes,
                     int64_t* edges,
                     WalkFault* fault) {
  WalkWatch watch;
  for_walk_groups(args.num_seeds, args.threads, [&](int64_t first, int lanes) {
    if (!watch.stopped())
      Node2vecGroup<indptr_t, index_t>(args, first, lanes, nodes, edges)
          .walk(&watch);
  });
  return watch.status(fault);
}

#define GSAMPLE_NODE2VEC_WALK(indptr_t, index_t)                        \
  template Status node2vec_walk(const Node2vecArgs<indptr_t, index_t>&, \
                                int64_t*, int64_t*, WalkFault*)
GSAMPLE_NODE2VEC_WALK(int32_t, int32_t);
GSAMPLE_NODE2VEC_WALK(int64_t, int32_t);
GSAMPLE_NODE2VEC_WALK(int64_t, int64_t);
#undef GSAMPLE_NODE2VEC_WALK

}  // namespace gsample
