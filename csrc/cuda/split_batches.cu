// One thread per edge and node.
#include "split_batches.h"

#include "../core/search.h"
#include "launch.cuh"
#include "report.cuh"

namespace gsample {

class BatchSplitter {
 public:
  __device__ explicit BatchSplitter(const SplitBatchesCuda& args) : a_(args) {}

  __device__ void move_edges() const {
    const int kinds = a_.num_hops * a_.num_relations;
    for (int64_t from = global_rank(); from < a_.edge_end[kinds];
         from += grid_threads()) {
      const int at =
          static_cast<int>(first_above(a_.edge_end, 0, kinds, from)) - 1;
      const int64_t* ends = a_.ends + 2 * (at % a_.num_relations);
      const int64_t col = a_.col[from];
      const int64_t batch = batch_of(a_.types[ends[1]].batch[col]);
      const int64_t to = from + a_.edge_shift[at * a_.count + batch];
      a_.out_row[to] = local_id(ends[0], a_.row[from], batch);
      a_.out_col[to] = local_id(ends[1], col, batch);
      if (a_.out_edge != nullptr)
        a_.out_edge[to] = a_.edge[from];
    }
  }

  __device__ void move_nodes(int t) const {
    const SampledType& type = a_.types[t];
    const int64_t size = a_.node_end[(a_.num_hops + 1) * a_.num_types + t];
    for (int64_t from = global_rank(); from < size; from += grid_threads()) {
      const int64_t tree = type.batch[from], batch = batch_of(tree);
      const int64_t to = place(t, from, batch);
      a_.out_node[to] = type.node[from];
      if (a_.out_tree != nullptr)
        a_.out_tree[to] = tree - a_.tree_ptr[batch];
    }
  }

 private:
  __device__ int64_t batch_of(int64_t tree) const {
    return a_.disjoint ? first_above(a_.tree_ptr, 0, a_.count, tree) - 1 : tree;
  }
  // The output position of a node of type t.
  __device__ int64_t place(int64_t t, int64_t node, int64_t batch) const {
    int64_t at = t;
    while (node >= a_.node_end[at + a_.num_types])
      at += a_.num_types;
    return node + a_.node_shift[at * a_.count + batch];
  }
  // Its position among the nodes of its batch.
  __device__ int64_t local_id(int64_t t, int64_t node, int64_t batch) const {
    return place(t, node, batch) - a_.first_node[t * a_.count + batch];
  }

  const SplitBatchesCuda& a_;
};

__global__ void split_batches_kernel(SplitBatchesCuda args) {
  const BatchSplitter splitter(args);
  splitter.move_edges();
  for (int t = 0; t < args.num_types; ++t)
    splitter.move_nodes(t);
}

void split_batches(const SplitBatchesCuda& args, StreamHandle stream) {
  constexpr int kThreads = 256;
  launch("split_batches", split_batches_kernel,
         shape_for(kThreads, args.num_items), stream, args);
}

}  // namespace gsample
