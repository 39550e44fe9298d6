// Several hops of column sampling on a GPU: bind/ fills this in,
// sample_hops.cuh and order_hops.cuh read it. All pointers are to device memory
// or pinned host memory.
#pragma once

#include "../args.h"
#include "../core/hd.h"
#include "../core/select.h"
#include "cached_relation.h"
#include "device.h"
#include "node_table.h"
#include "report.h"
#include "task_queue.h"

namespace gsample {

// The range of a task's edges, in the order of drawing.
struct TaskEdges {
  uint32_t first;
  uint32_t count;
};

// A task: a node of a type, in a tree, at a hop.
struct HopTask {
  int hop;
  int type;
  int64_t tree;
  int64_t node;
};

// The state of layers apart from their graph. Columns of a hop are ordered by
// type, its edges by relation.
struct HopState {
  SampleOptions options;  // without a key
  Frontier frontier;
  bool next;            // whether a frontier follows the last hop
  bool weighted;        // whether any relation is
  int64_t max_columns;  // of all hops, and of the frontier after them
  int64_t max_edges;    // of all hops
  // Batches of seeds are trees, and columns are in their order. 0 if seeds are
  // of one batch.
  int64_t batches;
  int64_t* batch_begin;  // [(num_hops + 1) * num_types][batches + 1] among the
                         // columns of a hop and type

  // The columns of all hops in order, as table entries, and the number of them
  // before [hop][type].
  int64_t* column;      // [max_columns]
  int64_t* column_end;  // [(num_hops + 1) * num_types + 1]
  // Edges of a relation at a hop before each column of it; each relation of the
  // same columns has its own part. And edges before [hop][relation].
  int64_t* begin;     // [slots * (max_columns + num_hops * num_types)]
  int64_t* edge_end;  // [num_hops * num_relations + 1]
  int64_t* place;     // [max_edges] position of each edge among the drawn ones
  Report* report;

  // Edges as drawn, and their rows: table entries or, if no frontier follows,
  // nodes.
  int64_t* drawn_edge;  // [max_edges]
  int64_t* drawn_row;   // [max_edges]
  int64_t* num_drawn;   // [1]

  // Scratch. A task is an entry of the table.
  NodeTable table;
  TaskEdges* task_edges;  // [table.capacity][slots]
  TaskQueue queue;
  int64_t* candidate;  // [max_columns + max_edges] entries
  int64_t* totals;     // [max(num_types, num_relations) * blocks]
  TakenWeight* taken;  // [max_edges] for weights without replacement

  // Whether a frontier includes everything a hop visits.
  GSAMPLE_HD bool takes_queue() const {
    return frontier == Frontier::kRow || frontier == Frontier::kNodes;
  }
  GSAMPLE_HD bool has_frontier(int hop) const {
    return next || hop + 1 < options.num_hops;
  }
};

// A homogeneous graph. HeteroHopsCuda has any number of types and relations,
// and the same functions: kernels access the graph through them.
template <typename indptr_t, typename index_t>
struct SampleHopsCuda : HopState {
  using Indptr = indptr_t;
  using Index = index_t;
  using Graph = CachedRelation<indptr_t, index_t>;

  Graph graph;
  int64_t num_nodes;  // positive
  const int64_t* seeds;
  int64_t num_seeds;
  const uint64_t* streams;  // [num_hops] keys of the draws
  bool sorted;              // frontiers ascend
  uint64_t* bits;           // [num_nodes / 64 + 1] one per node, if `sorted`

  static constexpr bool kOneType = true;
  GSAMPLE_HD static constexpr int num_types() { return 1; }
  GSAMPLE_HD static constexpr int num_relations() { return 1; }
  GSAMPLE_HD const Graph& relation(int) const { return graph; }
  GSAMPLE_HD static constexpr bool is_weighted(const Graph&) { return true; }
  GSAMPLE_HD int64_t num_nodes_of(int) const { return num_nodes; }
  GSAMPLE_HD const int64_t* seeds_of(int) const { return seeds; }
  GSAMPLE_HD int64_t num_seeds_of(int) const { return num_seeds; }
  GSAMPLE_HD static constexpr int64_t first_seed(int) { return 0; }
  GSAMPLE_HD static constexpr int64_t* tree_time() { return nullptr; }
  GSAMPLE_HD static constexpr int64_t tree_of_seed(int, int64_t) { return 0; }
  GSAMPLE_HD static int64_t in_batch(int, int64_t i) { return i; }

  // The relations from columns of a type have slots 0, 1, ...; the relations
  // whose rows are of a type are counted, too.
  GSAMPLE_HD static constexpr int slots() { return 1; }
  GSAMPLE_HD static constexpr int slot_of(int) { return 0; }
  GSAMPLE_HD static constexpr int relation_into(int, int) { return 0; }
  GSAMPLE_HD static constexpr int num_from(int) { return 1; }
  GSAMPLE_HD static constexpr int relation_from(int, int) { return 0; }

  // A task as a key of the table. If a node is in at most one hop, its key
  // needs no hop.
  GSAMPLE_HD uint64_t key(int hop, int, int64_t, int64_t node) const {
    const bool once = frontier == Frontier::kUnseen;
    return static_cast<uint64_t>((once ? 0 : hop * num_nodes) + node);
  }
  GSAMPLE_HD HopTask task(uint64_t key) const {
    const uint64_t nodes = static_cast<uint64_t>(num_nodes);
    return {static_cast<int>(key / nodes), 0, 0,
            static_cast<int64_t>(key % nodes)};
  }
  // The same task at the next hop.
  GSAMPLE_HD uint64_t next_key(uint64_t key) const {
    return key + static_cast<uint64_t>(num_nodes);
  }
  GSAMPLE_HD Stream stream(int hop, int, const HopTask& at) const {
    return {streams[hop], 0, static_cast<uint64_t>(at.node)};
  }
};

template <typename args_t>
LaunchShape sample_hops_shape(const args_t& args);

// Launches the sampling of all hops, asynchronously. The report is valid once
// the stream gets there.
template <typename args_t>
void sample_hops(const args_t& args, LaunchShape shape, StreamHandle stream);

// The outputs of a relation at a hop.
template <typename indptr_t, typename index_t>
struct HopEdges {
  int64_t hop;
  int64_t relation;
  int64_t first_edge;
  int64_t num_edges;
  indptr_t* indptr;  // [number of columns + 1]
  index_t* row;      // [num_edges]
  int64_t* edge;     // [num_edges]
};

// The columns of a type, at a hop after the first.
struct HopNodes {
  int64_t first_column;
  int64_t num_columns;
  int64_t* node;               // [num_columns]
  int64_t* tree;               // [num_columns] or null
  const int64_t* batch_begin;  // [batches + 1], copied to `ptr` unless null
  int64_t* ptr;
};

template <typename indptr_t, typename index_t>
struct HopOutputs {
  const HopEdges<indptr_t, index_t>* edges;  // [num_edges]
  const HopNodes* nodes;                     // [num_nodes]
  int64_t num_edges;
  int64_t num_nodes;
  int64_t items;  // approximate total
};

template <typename args_t>
void write_hops(
    const args_t& args,
    const HopOutputs<typename args_t::Indptr, typename args_t::Index>& out,
    StreamHandle stream);

}  // namespace gsample
