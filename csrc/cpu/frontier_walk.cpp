#include "frontier_walk.h"

#include <utility>
#include <vector>

namespace gsample {

namespace {

// Finds a walker by the prefix sums of the degrees: a binary indexed tree
// (Fenwick, 1994). Node i, from 1 on, sums the i & -i degrees up to i.
class DegreeTree {
 public:
  explicit DegreeTree(std::vector<int64_t> degree) : sum_(std::move(degree)) {
    sum_.insert(sum_.begin(), 0);
    const int64_t size = static_cast<int64_t>(sum_.size());
    for (int64_t i = 1; i < size; ++i) {
      total_ += sum_[i];
      top_ = top_ * 2 <= i ? top_ * 2 : top_;
    }
    for (int64_t i = 1; i < size; ++i)
      if (const int64_t next = i + (i & -i); next < size)
        sum_[next] += sum_[i];
  }

  int64_t total() const { return total_; }

  void add(int64_t walker, int64_t change) {
    total_ += change;
    const int64_t size = static_cast<int64_t>(sum_.size());
    for (int64_t i = walker + 1; i < size; i += i & -i)
      sum_[i] += change;
  }

  // Returns the walker of an edge in [0, total), and subtracts the edges of the
  // walkers before it.
  int64_t find(int64_t* edge) const {
    const int64_t size = static_cast<int64_t>(sum_.size());
    int64_t walker = 0;
    for (int64_t step = top_; step > 0; step /= 2)
      if (walker + step < size && sum_[walker + step] <= *edge) {
        walker += step;
        *edge -= sum_[walker];
      }
    return walker;
  }

 private:
  std::vector<int64_t> sum_;
  int64_t total_ = 0;
  int64_t top_ = 1;  // the largest power of two in the tree
};

}  // namespace

template <typename indptr_t, typename index_t>
Status frontier_walk(const FrontierWalkArgs<indptr_t, index_t>& args,
                     int64_t* nodes,
                     int64_t* edges,
                     WalkFault* fault) {
  const auto& graph = args.graph;
  std::vector<int64_t> at(args.seeds, args.seeds + args.num_seeds), degree;
  for (const int64_t v : at) {
    const indptr_t begin = graph.indptr[v], end = graph.indptr[v + 1];
    if (!graph.holds(begin, end))
      return *fault = {false, 0, v}, Status::kFault;
    degree.push_back(int64_t{end} - begin);
  }
  DegreeTree tree(std::move(degree));
  const Stream draw{args.stream, kFrontierRoot, 0};
  Interrupt interrupt;
  for (int64_t i = 0; i < args.length; ++i) {
    if (i % 1024 == 0)
      interrupt.poll();
    if (interrupt.stopped())
      return Status::kInterrupted;
    nodes[i] = edges[i] = -1;
    if (tree.total() == 0)
      continue;
    int64_t offset = static_cast<int64_t>(
        bounded(draw(static_cast<uint32_t>(i)), tree.total()));
    const int64_t walker = tree.find(&offset);
    const int64_t v = at[walker], edge = graph.indptr[v] + offset;
    const int64_t to = graph.indices[edge];
    if (to < 0 || to >= graph.num_cols)
      return *fault = {true, 0, edge}, Status::kFault;
    const indptr_t begin = graph.indptr[to], end = graph.indptr[to + 1];
    if (!graph.holds(begin, end))
      return *fault = {false, 0, to}, Status::kFault;
    nodes[i] = v;
    edges[i] = edge;
    at[walker] = to;
    tree.add(walker, (int64_t{end} - begin) -
                         (int64_t{graph.indptr[v + 1]} - graph.indptr[v]));
  }
  return Status::kDone;
}

#define GSAMPLE_FRONTIER_WALK(indptr_t, index_t)                            \
  template Status frontier_walk(const FrontierWalkArgs<indptr_t, index_t>&, \
                                int64_t*, int64_t*, WalkFault*)
GSAMPLE_FRONTIER_WALK(int32_t, int32_t);
GSAMPLE_FRONTIER_WALK(int64_t, int32_t);
GSAMPLE_FRONTIER_WALK(int64_t, int64_t);
#undef GSAMPLE_FRONTIER_WALK

}  // namespace gsample
