// Multi-hop neighbour sampling on a GPU: what bind/ fills in, and what
// neighbor_sample.cuh reads. All pointers but those to `fanouts` are to the
// device's memory.
#pragma once

#include "../args.h"
#include "../core/weighted.h"
#include "device.h"
#include "node_table.h"

namespace gsample {

constexpr int kMaxHops = 16;

// What a sample reports besides its nodes and edges.
struct SampleReport {
  enum Fault { kNone, kSeed, kIndptr, kIndices, kCapacity };

  int64_t hop_nodes[kMaxHops + 1];
  int64_t hop_edges[kMaxHops];
  int64_t fault;
  int64_t where;  // seed position, node or edge that is at fault
  int64_t value;
};

template <typename indptr_t, typename index_t>
struct NeighborSampleCuda {
  const indptr_t* indptr;     // [num_nodes + 1]
  const index_t* indices;     // [num_edges]
  const int64_t* cum_weight;  // or null, see core/weighted.h
  const int64_t* edge_time;   // [num_edges] or null, ascending in a column
  int64_t num_nodes;
  int64_t num_edges;
  const int64_t* seeds;      // [num_seeds]
  const int64_t* seed_time;  // [num_seeds] or null
  int64_t num_seeds;
  int64_t fanouts[kMaxHops];
  int num_hops;
  bool replace;
  bool disjoint;
  bool last;        // the latest edges instead of random ones
  bool has_window;  // only edges of [seed_time - window, seed_time]
  int64_t window;
  uint32_t call_id;
  Key key;
  const int64_t* device_key;  // [3], takes the place of `key` unless null

  // Outputs, and how much they hold. `edge` and `batch` may be null.
  int64_t* row;  // [max_edges]
  int64_t* col;
  int64_t* edge;
  int64_t* node;  // [max_nodes]
  int64_t* batch;
  int64_t max_edges;
  int64_t max_nodes;
  SampleReport* report;

  // Scratch.
  NodeTable table;
  int64_t* totals;     // [2 * blocks]
  TakenWeight* taken;  // [max_edges] for weights without replacement
};

template <typename indptr_t, typename index_t>
LaunchShape neighbor_sample_shape(
    const NeighborSampleCuda<indptr_t, index_t>& args);

// Starts the sampling of a batch. Nothing waits for it: its report tells how
// it went once the stream gets there.
template <typename indptr_t, typename index_t>
void neighbor_sample(const NeighborSampleCuda<indptr_t, index_t>& args,
                     LaunchShape shape,
                     StreamHandle stream);

}  // namespace gsample
