// A thread for each edge and node.
#include "split_batches.h"

#include "../core/search.h"
#include "launch.cuh"
#include "report.cuh"

namespace gsample {

class BatchSplitter {
 public:
  __device__ explicit BatchSplitter(const SplitBatchesCuda& args) : a_(args) {}

  __device__ void move_edges() const {
    for (int64_t from = global_rank(); from < a_.edge_end[a_.num_hops];
         from += grid_threads()) {
      const int64_t col = a_.col[from], batch = batch_of(a_.tree[col]);
      const int hop = hop_of(a_.edge_end, from);
      const int64_t to = from + a_.edge_shift[hop * a_.count + batch];
      a_.out_row[to] = place(a_.row[from], batch) - a_.first_node[batch];
      a_.out_col[to] = place(col, batch) - a_.first_node[batch];
      if (a_.out_edge != nullptr)
        a_.out_edge[to] = a_.edge[from];
    }
  }

  __device__ void move_nodes() const {
    for (int64_t from = global_rank(); from < a_.node_end[a_.num_hops + 1];
         from += grid_threads()) {
      const int64_t tree = a_.tree[from], batch = batch_of(tree);
      const int64_t to = place(from, batch);
      a_.out_node[to] = a_.node[from];
      if (a_.out_tree != nullptr)
        a_.out_tree[to] = tree - a_.ptr[batch];
    }
  }

 private:
  __device__ int64_t batch_of(int64_t tree) const {
    return a_.disjoint ? first_above(a_.ptr, 0, a_.count, tree) - 1 : tree;
  }
  __device__ static int hop_of(const int64_t* end, int64_t item) {
    int hop = 0;
    while (item >= end[hop + 1])
      ++hop;
    return hop;
  }
  // Where a node goes.
  __device__ int64_t place(int64_t node, int64_t batch) const {
    const int hop = hop_of(a_.node_end, node);
    return node + a_.node_shift[hop * a_.count + batch];
  }

  const SplitBatchesCuda& a_;
};

__global__ void split_batches_kernel(SplitBatchesCuda args) {
  const BatchSplitter splitter(args);
  splitter.move_edges();
  splitter.move_nodes();
}

void split_batches(const SplitBatchesCuda& args, StreamHandle stream) {
  constexpr int kThreads = 256;
  launch("split_batches", split_batches_kernel,
         shape_for(kThreads, args.num_items), stream, args);
}

}  // namespace gsample
