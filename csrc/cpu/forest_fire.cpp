#include "forest_fire.h"

#include <utility>

namespace gsample {

namespace {

enum State : char { kIntact, kCaught, kBurning };

template <typename indptr_t, typename index_t>
class Fire {
 public:
  Fire(const WalkGraph<indptr_t, index_t>& graph, double p, uint64_t stream)
      : graph_(graph), p_(p), stream_(stream), state_(graph.num_cols) {}

  void burn(int64_t node) { state_[node] = kBurning; }

  // Appends the nodes that `node` sets on fire; false if the graph is
  // malformed.
  bool spread(int64_t node, std::vector<int64_t>* caught, WalkFault* fault) {
    const indptr_t begin = graph_.indptr[node], end = graph_.indptr[node + 1];
    if (!graph_.holds(begin, end))
      return *fault = {false, 0, node}, false;
    const FireDraws draws(stream_, node);
    const int64_t width = draws.width(p_, int64_t{end} - begin);
    if (width == 0)
      return true;
    fresh_.clear();
    for (int64_t edge = begin; edge < end; ++edge) {
      const int64_t to = graph_.indices[edge];
      if (to < 0 || to >= graph_.num_cols)
        return *fault = {true, 0, edge}, false;
      if (state_[to] != kBurning)
        fresh_.push_back({draws.entry(edge - begin), edge});
    }
    if (width < static_cast<int64_t>(fresh_.size())) {
      std::nth_element(fresh_.begin(), fresh_.begin() + width, fresh_.end());
      fresh_.resize(width);
    }
    for (const auto& [_, edge] : fresh_) {
      const int64_t to = graph_.indices[edge];
      if (std::exchange(state_[to], kCaught) == kIntact)
        caught->push_back(to);
    }
    return true;
  }

 private:
  const WalkGraph<indptr_t, index_t>& graph_;
  const double p_;
  const uint64_t stream_;
  std::vector<char> state_;
  std::vector<std::pair<uint64_t, int64_t>> fresh_;  // draw and edge
};

}  // namespace

template <typename indptr_t, typename index_t>
Status forest_fire(const WalkGraph<indptr_t, index_t>& graph,
                   double p,
                   uint64_t stream,
                   std::vector<int64_t>* burnt,
                   WalkFault* fault) {
  Fire<indptr_t, index_t> fire(graph, p, stream);
  Interrupt interrupt;
  size_t level = 0;  // first node that has not spread yet
  while (level < burnt->size()) {
    const size_t end = burnt->size();
    for (size_t i = level; i < end; ++i)
      fire.burn((*burnt)[i]);
    for (; level < end; ++level) {
      interrupt.poll();
      if (interrupt.stopped())
        return Status::kInterrupted;
      if (!fire.spread((*burnt)[level], burnt, fault))
        return Status::kFault;
    }
  }
  return Status::kDone;
}

#define GSAMPLE_FOREST_FIRE(indptr_t, index_t)                             \
  template Status forest_fire(const WalkGraph<indptr_t, index_t>&, double, \
                              uint64_t, std::vector<int64_t>*, WalkFault*);
GSAMPLE_FOREST_FIRE(int32_t, int32_t)
GSAMPLE_FOREST_FIRE(int64_t, int32_t)
GSAMPLE_FOREST_FIRE(int64_t, int64_t)
#undef GSAMPLE_FOREST_FIRE

}  // namespace gsample
