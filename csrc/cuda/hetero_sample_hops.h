// Layers of heterogeneous graphs on a GPU, by the kernels of sample_hops.cuh.
#pragma once

#include "../core/search.h"
#include "sample_hops.h"

namespace gsample {

// A node type, with the relations from its columns and those whose rows have
// the type.
struct HopType {
  NodeType of;
  int64_t first_tree;       // seeds of the types before
  int64_t first_node;       // nodes of the types before
  const int64_t* seed_ptr;  // [batches + 1] or null
  const int64_t* into;
  const int64_t* from;
  int64_t num_into;
  int64_t num_from;
};

template <typename indptr_t, typename index_t>
struct HopRelation : CachedRelation<indptr_t, index_t> {
  int64_t slot;  // index among the relations into its columns
};

template <typename indptr_t, typename index_t>
struct HeteroHopsCuda : HopState {
  using Indptr = indptr_t;
  using Index = index_t;
  using Graph = HopRelation<indptr_t, index_t>;

  const Graph* all_relations;  // [relation_count]
  const HopType* types;        // [type_count]
  int relation_count;
  int type_count;
  int most_into;                // most relations into a type
  int64_t num_nodes;            // of all types
  int64_t num_keys;             // of a hop: num_nodes for each tree
  const uint64_t* streams;      // [num_hops][relation_count][max(batches, 1)]
                                // keys of the draws
  const int64_t* draw_by_tree;  // [num_hops] whether trees draw by themselves
  int64_t* time_of_tree;        // [trees] or null, which the kernel writes

  static constexpr bool kOneType = false;
  GSAMPLE_HD int num_types() const { return type_count; }
  GSAMPLE_HD int num_relations() const { return relation_count; }
  GSAMPLE_HD const Graph& relation(int r) const { return all_relations[r]; }
  GSAMPLE_HD static bool is_weighted(const Graph& graph) {
    return graph.cum_weight != nullptr;
  }
  GSAMPLE_HD int64_t num_nodes_of(int t) const { return types[t].of.num_nodes; }
  GSAMPLE_HD const int64_t* seeds_of(int t) const { return types[t].of.seeds; }
  GSAMPLE_HD int64_t num_seeds_of(int t) const { return types[t].of.num_seeds; }
  GSAMPLE_HD int64_t first_seed(int t) const { return types[t].first_tree; }
  GSAMPLE_HD int64_t* tree_time() const { return time_of_tree; }
  GSAMPLE_HD bool in_trees() const { return options.disjoint || batches > 0; }
  // Its seed's position, or the last batch that begins at it or before it.
  GSAMPLE_HD int64_t tree_of_seed(int t, int64_t i) const {
    return batches == 0 ? types[t].first_tree + i
                        : first_above(types[t].seed_ptr, 1, batches, i) - 1;
  }
  // The position of a seed in its batch.
  GSAMPLE_HD int64_t in_batch(int t, int64_t i) const {
    return batches == 0 ? i : i - types[t].seed_ptr[tree_of_seed(t, i)];
  }

  GSAMPLE_HD int slots() const { return most_into; }
  GSAMPLE_HD int slot_of(int r) const {
    return static_cast<int>(all_relations[r].slot);
  }
  // -1 if the type has fewer relations.
  GSAMPLE_HD int relation_into(int t, int slot) const {
    return slot < types[t].num_into ? static_cast<int>(types[t].into[slot])
                                    : -1;
  }
  GSAMPLE_HD int num_from(int t) const {
    return static_cast<int>(types[t].num_from);
  }
  GSAMPLE_HD int relation_from(int t, int k) const {
    return static_cast<int>(types[t].from[k]);
  }

  // Less than 2^63: the host checks it.
  GSAMPLE_HD uint64_t key(int hop, int t, int64_t tree, int64_t node) const {
    const int64_t tree_key = in_trees() ? tree * num_nodes : 0;
    return static_cast<uint64_t>(hop * num_keys + tree_key +
                                 types[t].first_node + node);
  }
  GSAMPLE_HD HopTask task(uint64_t key) const {
    const uint64_t keys = static_cast<uint64_t>(num_keys);
    const uint64_t nodes = static_cast<uint64_t>(num_nodes);
    const uint64_t of_hop = key % keys;
    const int64_t tree = in_trees() ? static_cast<int64_t>(of_hop / nodes) : 0;
    const int64_t id = static_cast<int64_t>(of_hop) - tree * num_nodes;
    int first = 0, end = type_count;  // the last type that starts at `id`
    while (end - first > 1) {
      const int middle = (first + end) / 2;
      (types[middle].first_node <= id ? first : end) = middle;
    }
    return {static_cast<int>(key / keys), first, tree,
            id - types[first].first_node};
  }
  GSAMPLE_HD uint64_t next_key(uint64_t key) const {
    return key + static_cast<uint64_t>(num_keys);
  }
  GSAMPLE_HD Stream stream(int hop, int r, const HopTask& at) const {
    const int64_t i = int64_t{hop} * relation_count + r;
    return {streams[batches == 0 ? i : i * batches + at.tree],
            draw_by_tree[hop] != 0 ? static_cast<uint32_t>(at.tree) : 0,
            static_cast<uint64_t>(at.node)};
  }
};

}  // namespace gsample
