// Second-order walks, one thread per walker, by rejection as on the CPU
// (cpu/node2vec_walk.cpp). A turn draws one candidate, at the walker's own
// step, so that the walkers of a warp do not wait for the one with the most
// rejections.
#include "node2vec_walk.h"

#include "launch.cuh"
#include "random_walk.cuh"

namespace gsample {

template <typename indptr_t, typename index_t>
class Node2vecWalker {
 public:
  using Args = Node2vecCuda<indptr_t, index_t>;

  __device__ Node2vecWalker(const Args& args, int64_t walker)
      : a_(args),
        draws_{args.stream, static_cast<uint64_t>(walker)},
        at_(args.seeds[walker]),
        nodes_(args.nodes + walker * (args.length + 1)),
        edges_(args.edges + walker * args.length) {}

  // A walk with a fault stops there.
  __device__ void walk() {
    nodes_[0] = at_;
    if (at_ < 0 || at_ >= a_.graph.num_cols)
      return note_fault(a_.report, Report::kId,
                        static_cast<int64_t>(draws_.walker), at_);
    bool goes_on = a_.length > 0 && arrive();
    while (goes_on)
      goes_on = total_ > 0 ? take_turn() : stay();
  }

 private:
  // Looks up the column of the walk's node.
  __device__ bool arrive() {
    const indptr_t begin = a_.graph.indptr[at_];
    const indptr_t end = a_.graph.indptr[at_ + 1];
    if (!a_.graph.holds(begin, end)) {
      note_fault(a_.report, Report::kIndptr, at_, a_.graph.num_edges);
      return false;
    }
    begin_ = begin;
    end_ = end;
    total_ = a_.graph.cum_weight != nullptr
                 ? a_.graph.weights(begin_, end_).total()
                 : static_cast<uint64_t>(end_ - begin_);
    return true;
  }

  // At a node without neighbours, stays until the end.
  __device__ bool stay() {
    for (; step_ < a_.length; ++step_) {
      edges_[step_] = -1;
      nodes_[step_ + 1] = at_;
    }
    return false;
  }

  // Draws a candidate. Returns whether the walk goes on.
  __device__ bool take_turn() {
    const uint32_t root = step_ == 0 ? kPositionRoot : kTryRoot + attempt_;
    const Block block = Stream{draws_.key, root, draws_.walker}.block(
        static_cast<uint32_t>(step_));
    const int64_t edge = choose(block.half(0));
    const int64_t node = a_.graph.indices[edge];
    if (!is_node(node, edge))
      return false;
    if (accepted(node, block.half(1)))
      return move(edge, node);
    if (++attempt_ < kWalkTries)
      return true;
    const int64_t exact = choose_exactly();
    const int64_t neighbor = a_.graph.indices[exact];
    return is_node(neighbor, exact) && move(exact, neighbor);
  }

  __device__ int64_t choose(uint64_t draw) const {
    const uint64_t unit = bounded(draw, total_);
    if (a_.graph.cum_weight == nullptr)
      return begin_ + static_cast<int64_t>(unit);
    const CumulativeWeights w = a_.graph.weights(begin_, end_);
    return begin_ + static_cast<int64_t>(w.find(unit, EvenGuess(w)(0, unit)));
  }

  // The first step has no coin. If the coin decides the same for neighbours of
  // the previous node and for other nodes, no search is needed.
  __device__ bool accepted(int64_t node, uint64_t coin) const {
    if (step_ == 0)
      return true;
    const SecondOrder& law = a_.law;
    if (node == from_)
      return accepts(coin, law.back);
    if (accepts(coin, law.least_forward()))
      return true;
    if (!accepts(coin, law.most_forward()))
      return false;
    return is_near(node) == (law.near > law.far);
  }

  // Whether a node is a neighbour of the previous node.
  __device__ bool is_near(int64_t node) const {
    const index_t wanted = static_cast<index_t>(node);
    int64_t low = from_begin_, high = from_end_;
    if (a_.ascending != nullptr) {
      while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const bool below = a_.ascending[middle] < wanted;
        low = below ? middle + 1 : low;
        high = below ? high : middle;
      }
      return low < from_end_ && a_.ascending[low] == wanted;
    }
    while (low < high && a_.graph.indices[low] != wanted)
      ++low;
    return low < high;
  }

  // After the last try: draws among all neighbours by their masses.
  __device__ int64_t choose_exactly() const {
    const CumulativeWeights w = a_.graph.weights(begin_, end_);
    const auto mass = [&](uint64_t i) -> Mass {
      const int64_t node = a_.graph.indices[begin_ + static_cast<int64_t>(i)];
      const uint64_t weight =
          a_.graph.cum_weight != nullptr ? w.through(i) - w.start(i) : 1;
      if (node == from_)
        return Mass{weight} * a_.law.back;
      return Mass{weight} * (is_near(node) ? a_.law.near : a_.law.far);
    };
    const uint32_t step = static_cast<uint32_t>(step_);
    return begin_ + static_cast<int64_t>(select_by_mass(
                        draws_.candidate(step, kWalkTries),
                        static_cast<uint64_t>(end_ - begin_), mass));
  }

  __device__ bool move(int64_t edge, int64_t node) {
    edges_[step_] = edge;
    nodes_[step_ + 1] = node;
    from_ = at_;
    from_begin_ = begin_;
    from_end_ = end_;
    at_ = node;
    attempt_ = 0;
    return ++step_ < a_.length && arrive();
  }

  // Whether a neighbour is a node; reports it otherwise.
  __device__ bool is_node(int64_t node, int64_t edge) const {
    if (node >= 0 && node < a_.graph.num_cols)
      return true;
    note_fault(a_.report, Report::kIndices, edge, node);
    return false;
  }

  const Args& a_;
  const WalkDraws draws_;
  int64_t at_;
  int64_t* nodes_;
  int64_t* edges_;
  int64_t step_ = 0;
  uint32_t attempt_ = 0;
  uint64_t total_ = 0;  // weight of the column of `at_`
  int64_t begin_ = 0;   // [begin_, end_)
  int64_t end_ = 0;
  int64_t from_ = -1;  // the previous node, and its column
  int64_t from_begin_ = 0;
  int64_t from_end_ = 0;
};

template <typename indptr_t, typename index_t>
__global__ void __launch_bounds__(kWalkThreads)
    node2vec_walk_kernel(Node2vecCuda<indptr_t, index_t> args) {
  const int64_t step = grid_threads();
  for (int64_t w = global_rank(); w < args.num_seeds; w += step)
    Node2vecWalker<indptr_t, index_t>(args, w).walk();
}

template <typename indptr_t, typename index_t>
void node2vec_walk(const Node2vecCuda<indptr_t, index_t>& args,
                   StreamHandle stream) {
  launch("node2vec_walk", node2vec_walk_kernel<indptr_t, index_t>,
         shape_for(kWalkThreads, args.num_seeds), stream, args);
}

#define GSAMPLE_INSTANTIATE(indptr_t, index_t)                        \
  template void node2vec_walk(const Node2vecCuda<indptr_t, index_t>&, \
                              StreamHandle);
GSAMPLE_INSTANTIATE(int32_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int64_t)

}  // namespace gsample
