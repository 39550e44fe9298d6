// Multi-hop neighbour sampling on a GPU: bind/ fills this in,
// neighbor_sample.cuh reads it. All pointers are to memory that the device can
// read: its own or, for graphs, pinned host memory.
#pragma once

#include "../args.h"
#include "../core/weighted.h"
#include "cached_relation.h"
#include "device.h"
#include "node_table.h"
#include "report.h"

namespace gsample {

// A node type, and the output memory for its nodes.
struct SampledType {
  NodeType of;
  int64_t first_tree;  // seeds of earlier types
  int64_t first_node;  // nodes of earlier types
  int64_t* node;       // [max_nodes]
  int64_t* batch;      // or null
  int64_t max_nodes;
};

template <typename indptr_t, typename index_t>
struct SampledRelation : CachedRelation<indptr_t, index_t> {
  int64_t max_edges;  // of a sample, or -1: any part of all
};

// Batches sampled in one launch: each is a separate tree, or the trees of its
// seeds.
struct SampledBatches {
  int64_t count;              // if 1, the key is that of the options
  const int64_t* ptr;         // [num_types, count + 1] first seed of each
  const int64_t* tree_ptr;    // [count + 1] first tree of each
  const int64_t* tree_shift;  // [num_types, count] from a seed to its tree
  const int64_t* key;         // [count, 3]
  const uint64_t* stream;     // [num_hops, num_relations, count] keys of the
                              // draws
  // The first node and edge of each batch at a hop: batches are consecutive.
  int64_t* node_begin;  // [num_hops + 1, num_types, count]
  int64_t* edge_begin;  // [num_hops, num_relations, count]
  // Number of edges that are the first to visit a node, unless there is one
  // relation.
  int64_t* firsts;  // [num_hops, num_relations, count]
};

template <typename indptr_t, typename index_t>
struct NeighborSampleCuda {
  const SampledRelation<indptr_t, index_t>* relations;  // [num_relations]
  const SampledType* types;                             // [num_types]
  int num_relations;
  int num_types;
  // For one type and one relation: the relation and the type.
  SampledRelation<indptr_t, index_t> relation;
  SampledType type;
  SampledBatches batches;
  int64_t num_nodes;  // of all types
  SampleOptions options;
  const int64_t* device_key;  // [3], replaces the key unless null
  bool weighted;              // whether any relation is

  // Edges of all relations, in the order (hop, relation, column, slot), and
  // their capacity. `edge` may be null.
  int64_t* row;  // [max_edges]
  int64_t* col;
  int64_t* edge;
  int64_t max_edges;
  Report* report;
  // Local ids of a type below [hop][type] belong to earlier hops.
  int64_t* node_end;  // [(num_hops + 2) * num_types]
  // Edges below [hop][relation] belong to earlier hops and relations.
  int64_t* edge_end;  // [num_hops * num_relations + 1]

  // Scratch.
  NodeTable table;
  int64_t* tree_time;  // [num_trees] or null
  int64_t* totals;     // [2 * num_relations * blocks]
  TakenWeight* taken;  // [max_edges] for weights without replacement
};

template <typename indptr_t, typename index_t>
LaunchShape neighbor_sample_shape(
    const NeighborSampleCuda<indptr_t, index_t>& args);

// Launches the sampling of a batch, asynchronously. The report is valid once
// the stream gets there.
template <typename indptr_t, typename index_t>
void neighbor_sample(const NeighborSampleCuda<indptr_t, index_t>& args,
                     LaunchShape shape,
                     StreamHandle stream);

// Sorts the edges of a sample into the order (relation, hop, column, slot).
// Unused slots hold -1.
struct SplitEdgesCuda {
  const int64_t* row;  // as sampled; those of an only relation may stay in
                       // place
  const int64_t* col;
  const int64_t* edge;      // or null
  const int64_t* edge_end;  // [num_hops * num_relations + 1]
  int num_hops;
  int num_relations;
  const int64_t* first;  // [num_relations + 1] first slot of each relation, and
                         // the number of slots
  int64_t num_slots;
  int64_t* out_row;  // [num_slots]
  int64_t* out_col;
  int64_t* out_edge;  // or null
};

// The same for a sample of known size, whose nodes are concatenated.
struct SplitSampleCuda {
  SplitEdgesCuda edges;
  const int64_t* node_size;  // [num_types]
  const SampledType* types;  // [num_types]
  int num_types;
  int64_t* node;   // or null: they stay in place
  int64_t* batch;  // or null
};

void split_sample(const SplitSampleCuda& args, StreamHandle stream);

}  // namespace gsample
