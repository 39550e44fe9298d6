// The arguments as the phases of neighbor_sample.cuh use them: the graph, the
// spans of hops, and the trees and batches of nodes.
#pragma once

#include "../core/search.h"
#include "block.cuh"
#include "neighbor_sample.h"
#include "node_table.cuh"
#include "portable.h"
#include "report.cuh"

namespace gsample {

// `kOne`: one node type and one relation, passed as kernel arguments, without
// loops over them.
template <bool kOne, typename indptr_t, typename index_t>
class NeighborView {
 public:
  using Args = NeighborSampleCuda<indptr_t, index_t>;
  using Graph = SampledRelation<indptr_t, index_t>;

 protected:
  __device__ explicit NeighborView(const Args& args)
      : a_(args), key_(kOne ? Key{} : read_key()) {}

  __device__ int num_types() const { return kOne ? 1 : a_.num_types; }
  __device__ int num_relations() const { return kOne ? 1 : a_.num_relations; }
  __device__ const SampledType& type(int t) const {
    return kOne ? a_.type : a_.types[t];
  }
  __device__ const Graph& relation(int r) const {
    return kOne ? a_.relation : a_.relations[r];
  }

  struct Span {
    int64_t begin;
    int64_t end;
  };

  // Read on use, or once: whichever takes fewer registers.
  __device__ Key key() const { return kOne ? read_key() : key_; }
  __device__ Key read_key() const {
    const int64_t* k = a_.device_key;
    return k == nullptr ? a_.options.key : Key{k[0], k[1], k[2]};
  }

  __device__ bool is_first_thread() const { return global_rank() == 0; }

  __device__ bool has_batches() const { return a_.batches.count > 1; }

  // Batches are consecutive in each relation, but new nodes of a type come from
  // several relations: they are reordered by batch.
  __device__ bool orders_batches() const { return !kOne && has_batches(); }

  // Local ids of the nodes of type t from which a hop samples.
  __device__ Span frontier(int hop, int t) const {
    const int64_t* end = a_.node_end + int64_t{hop} * num_types() + t;
    return {end[0], end[num_types()]};
  }

  // Edges of relation r at a hop.
  __device__ Span edges(int hop, int r) const {
    const int64_t* end = a_.edge_end + int64_t{hop} * num_relations() + r;
    return {end[0], end[1]};
  }

  // The block's part of a span.
  __device__ static Span part_of(Span span) {
    const BlockRange range(span.end - span.begin);
    return {span.begin + range.begin, span.begin + range.end};
  }

  // The counts of relation r, one per block [blocks].
  __device__ int64_t* counts(int r) const {
    return a_.totals + int64_t{r} * gridDim.x;
  }
  __device__ int64_t* firsts(int r) const {
    return counts(num_relations() + r);
  }

  __device__ static int64_t tree(const SampledType& type, int64_t column) {
    return type.batch == nullptr ? 0 : type.batch[column];
  }

  // The last batch that begins at an item or before it: the others are empty.
  __device__ int64_t batch_at(const int64_t* ptr, int64_t i) const {
    return first_above(ptr, 0, a_.batches.count, i) - 1;
  }
  __device__ int64_t batch_of(int64_t tree) const {
    return a_.options.disjoint ? batch_at(a_.batches.tree_ptr, tree) : tree;
  }
  __device__ int64_t first_tree(int64_t batch) const {
    return a_.options.disjoint ? a_.batches.tree_ptr[batch] : batch;
  }
  // The start of each batch's seeds of type t [count + 1].
  __device__ const int64_t* seed_ptr(int t) const {
    return a_.batches.ptr + t * (a_.batches.count + 1);
  }

  __device__ int64_t tree_of_seed(int t, int64_t i) const {
    if (!has_batches())
      return type(t).first_tree + i;
    const int64_t batch = batch_at(seed_ptr(t), i);
    return a_.options.disjoint
               ? i + a_.batches.tree_shift[t * a_.batches.count + batch]
               : batch;
  }

  // The table's key of node 0 of type `rows` in the tree of a column.
  __device__ uint64_t first_key(const SampledType& rows,
                                const SampledType& cols,
                                int64_t column) const {
    return static_cast<uint64_t>(tree(cols, column)) * a_.num_nodes +
           rows.first_node;
  }

  // The draws of a column. Each batch has its own stream.
  __device__ Stream
  draw_of(uint64_t stream, int hop, int r, int t, int64_t c) const {
    const int64_t batch = has_batches() ? batch_of(tree(type(t), c)) : 0;
    if (has_batches())
      stream =
          a_.batches
              .stream[(int64_t{hop} * num_relations() + r) * a_.batches.count +
                      batch];
    return {stream, root(t, c, batch), static_cast<uint64_t>(type(t).node[c])};
  }

  // The id that distinguishes the draws of equal columns: their tree or, for a
  // repeated seed, its number. Each batch has its own numbers.
  __device__ uint32_t root(int t, int64_t c, int64_t batch) const {
    const SampledType& cols = type(t);
    const int64_t scope =
        has_batches() ? a_.batches.key[3 * batch + 2] : key().batch;
    if (scope == kEpochScope)
      return 0;
    if (a_.options.disjoint)
      return static_cast<uint32_t>(tree(cols, c) -
                                   (has_batches() ? first_tree(batch) : 0));
    if (c >= cols.of.num_seeds)
      return 0;
    const uint64_t key =
        first_key(cols, cols, c) + static_cast<uint64_t>(cols.node[c]);
    if (least_of(a_.table, key) == static_cast<uint32_t>(c))
      return 0;
    return static_cast<uint32_t>(c - (has_batches() ? seed_ptr(t)[batch] : 0));
  }

  // The start of each batch at each hop: trees ascend.
  __device__ void find_batches() const {
    const int64_t count = a_.batches.count;
    const int hops = a_.options.num_hops;
    const int of_nodes = (hops + 1) * num_types();
    const int all = of_nodes + hops * num_relations();
    for (int64_t i = global_rank(); i < all * count; i += grid_threads()) {
      const int at = static_cast<int>(i / count);
      const int64_t least = first_tree(i % count);
      if (at < of_nodes) {
        const SampledType& of = type(at % num_types());
        a_.batches.node_begin[i] =
            first_of_tree(frontier(at / num_types(), at % num_types()), least,
                          [&](int64_t node) { return tree(of, node); });
      } else {
        const int r = (at - of_nodes) % num_relations();
        a_.batches.edge_begin[i - of_nodes * count] =
            first_edge_of(edges((at - of_nodes) / num_relations(), r),
                          type(relation(r).dst), least);
      }
    }
  }

  // The first edge whose tree is not below `least`.
  __device__ int64_t first_edge_of(Span span,
                                   const SampledType& cols,
                                   int64_t least) const {
    return first_of_tree(
        span, least, [&](int64_t edge) { return tree(cols, a_.col[edge]); });
  }

  // Calls function(batch, edges) on each batch's part of the edges to `cols`,
  // if the order of batches matters; else once on all.
  template <typename function_t>
  __device__ void for_each_batch(const SampledType& cols,
                                 Span span,
                                 const function_t& function) const {
    if (!orders_batches())
      return function(0, span);
    while (span.begin < span.end) {
      const int64_t batch = batch_of(tree(cols, a_.col[span.begin]));
      const int64_t end = first_edge_of(span, cols, first_tree(batch + 1));
      function(batch, Span{span.begin, end});
      span.begin = end;
    }
  }

  // The first visits of a relation's edges, per batch [count].
  __device__ int64_t* batch_firsts(int hop, int r) const {
    return a_.batches.firsts +
           (int64_t{hop} * num_relations() + r) * a_.batches.count;
  }

  // The first item of a span whose tree is not below `least`.
  template <typename tree_t>
  __device__ static int64_t first_of_tree(Span span,
                                          int64_t least,
                                          const tree_t& tree_of) {
    while (span.begin < span.end) {
      const int64_t middle = span.begin + (span.end - span.begin) / 2;
      if (tree_of(middle) < least)
        span.begin = middle + 1;
      else
        span.end = middle;
    }
    return span.begin;
  }

  const Args& a_;
  const Key key_;
};

}  // namespace gsample
