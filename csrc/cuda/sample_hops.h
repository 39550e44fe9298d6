// Several hops of column sampling on a GPU: what bind/ fills in, and what
// sample_hops.cuh and order_hops.cuh read. All pointers are to the device's
// memory.
#pragma once

#include "../args.h"
#include "../core/hd.h"
#include "device.h"
#include "node_table.h"
#include "report.h"
#include "task_queue.h"

namespace gsample {

// Where the edges of a task are, in the order in which they were drawn.
struct TaskEdges {
  uint32_t first;
  uint32_t count;
};

template <typename indptr_t, typename index_t>
struct SampleHopsCuda {
  Relation<indptr_t, index_t> graph;
  int64_t num_nodes;  // positive
  const int64_t* seeds;
  int64_t num_seeds;
  const uint64_t* streams;  // [num_hops] keys of the draws
  SampleOptions options;    // `num_hops` and `replace`
  Frontier frontier;
  bool sorted;          // frontiers ascend
  bool next;            // there is a frontier after the last hop
  int64_t max_columns;  // of all hops, and of the frontier after them
  int64_t max_edges;    // of all hops

  // The columns of hop after hop, as entries of the table, and how many there
  // are before a hop.
  int64_t* column;      // [max_columns]
  int64_t* column_end;  // [num_hops + 2]
  // Edges of a hop before each column of it, and of all hops before.
  int64_t* begin;     // [max_columns + num_hops]
  int64_t* edge_end;  // [num_hops + 1]
  int64_t* place;     // [max_edges] of each edge among those that were drawn
  Report* report;

  // Edges as they were drawn, and their rows as entries of the table.
  int64_t* drawn_edge;  // [max_edges]
  int64_t* drawn_row;   // [max_edges], rubbish where no frontier follows
  int64_t* num_drawn;   // [1]

  // Scratch. A task is an entry of the table, a node at a hop.
  NodeTable table;
  TaskEdges* task_edges;  // [table.capacity]
  TaskQueue queue;
  int64_t* candidate;  // [max_columns + max_edges] entries
  uint64_t* bits;      // [num_nodes / 64 + 1] of nodes, if `sorted`
  int64_t* totals;     // [blocks]
  TakenWeight* taken;  // [max_edges] for weights without replacement

  // Whether a frontier takes in all that a hop meets.
  GSAMPLE_HD bool takes_queue() const {
    return frontier == Frontier::kRow || frontier == Frontier::kNodes;
  }
  GSAMPLE_HD bool has_frontier(int hop) const {
    return next || hop + 1 < options.num_hops;
  }
};

template <typename indptr_t, typename index_t>
LaunchShape sample_hops_shape(const SampleHopsCuda<indptr_t, index_t>& args);

// Starts the sampling of all hops. Nothing waits for it: its report tells how
// it went once the stream gets there.
template <typename indptr_t, typename index_t>
void sample_hops(const SampleHopsCuda<indptr_t, index_t>& args,
                 LaunchShape shape,
                 StreamHandle stream);

// What becomes of a hop.
template <typename indptr_t, typename index_t>
struct HopOutput {
  int hop;
  int64_t first_column;
  int64_t num_columns;
  int64_t first_edge;
  int64_t num_edges;
  int64_t num_nodes;  // 0, or the columns of the next hop
  indptr_t* indptr;   // [num_columns + 1]
  index_t* row;       // [num_edges]
  int64_t* edge;      // [num_edges]
  int64_t* node;      // [num_nodes]
};

template <typename indptr_t, typename index_t>
void write_hop(const SampleHopsCuda<indptr_t, index_t>& args,
               const HopOutput<indptr_t, index_t>& out,
               StreamHandle stream);

}  // namespace gsample
