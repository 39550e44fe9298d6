// Arguments of the kernels as plain pointers: the operators in bind/ fill them
// in, the kernels in cpu/ and cuda/ read them.
#pragma once

#include <stdint.h>

#include "core/philox.h"
#include "core/weighted.h"

namespace gsample {

// One edge type in compressed sparse column form: columns are destinations,
// so column v lists the in-neighbours of v.
template <typename indptr_t, typename index_t>
struct Relation {
  const indptr_t* indptr;     // [num_cols + 1] start of each column
  const index_t* indices;     // [num_edges] row (source) of each edge
  const int64_t* cum_weight;  // or null, see core/weighted.h
  const int64_t* edge_time;   // [num_edges] or null, ascending in a column
  const int64_t* fanouts;     // [num_hops] neighbours per column, -1 = all
  int64_t num_edges;
  int src;  // node type of the rows
  int dst;  // node type of the columns
};

// One relation of random walks: a walk at v moves to an entry of column v.
template <typename indptr_t, typename index_t>
struct WalkGraph {
  const indptr_t* indptr;     // [num_cols + 1]
  const index_t* indices;     // [num_edges]
  const int64_t* cum_weight;  // or null, see core/weighted.h
  int64_t num_cols;
  int64_t num_edges;

  // Whether a column is in bounds and may be read.
  GSAMPLE_HD bool holds(indptr_t begin, indptr_t end) const {
    return begin >= 0 && begin <= end && end <= num_edges;
  }
  GSAMPLE_HD CumulativeWeights weights(int64_t begin, int64_t end) const {
    return {cum_weight + begin, 0, static_cast<uint64_t>(end - begin)};
  }
};

struct NodeType {
  int64_t num_nodes;
  const int64_t* seeds;      // [num_seeds]
  const int64_t* seed_time;  // [num_seeds] or null
  int64_t num_seeds;
};

struct SampleOptions {
  Key key;
  uint32_t call_id;
  int num_hops;
  bool replace;
  bool disjoint;    // a separate tree for every seed
  bool last;        // the latest edges instead of random ones
  bool has_window;  // only edges of [seed_time - window, seed_time]
  int64_t window;
  int num_threads;  // 0: as many as torch
};

// The nodes that become the columns of the next hop, each once, in the order of
// first occurrence:
enum class Frontier {
  kRow,     // the sampled rows
  kNodes,   // the columns, then the rows that are not columns
  kNew,     // as kNodes, without the columns
  kUnseen,  // as kNew, only rows that no earlier hop has
};

template <typename indptr_t, typename index_t>
class EdgeSource;  // cpu/edge_source.h

template <typename indptr_t, typename index_t>
struct NeighborSampleArgs {
  const Relation<indptr_t, index_t>* relations;  // [num_relations]
  const NodeType* types;                         // [num_types]
  int num_relations;
  int num_types;
  SampleOptions options;
  // [num_relations], the edges on the CPU if they are not in arrays, else null
  const EdgeSource<indptr_t, index_t>* const* sources;
};

// Columns of one relation, in each of which edges are selected independently.
// The result is positions of edges: `edges` has no `indices`.
template <typename indptr_t>
struct SampleColumnsArgs {
  Relation<indptr_t, int64_t> edges;
  int64_t all_cols;
  int64_t n;
  const int64_t* cols;         // [n] the columns, or null: all
  const int64_t* id;           // [n] ids that key the draws, or null: the
                               // column's id
  const int64_t* root;         // [n] the tree of a column, or null
  const int64_t* column_time;  // [n] with edge times, else null
  const int64_t* start;        // [n] first edge of each column, or null: as in
                               // `edges`
  const int64_t* ptr;          // [batches + 1] first column of each batch, or
                               // null: one batch
  const uint64_t* streams;     // [batches] keys of the draws
  int64_t batches;
  int64_t k;  // edges per column; -1 selects all
  SampleOptions options;

  GSAMPLE_HD int64_t column(int64_t i) const {
    return cols == nullptr ? i : cols[i];
  }
  // The tree of column i, and the node that keys the draws of column v.
  GSAMPLE_HD uint32_t tree_of(int64_t i) const {
    return root == nullptr ? 0 : static_cast<uint32_t>(root[i]);
  }
  GSAMPLE_HD uint64_t node_of(int64_t i, int64_t v) const {
    return static_cast<uint64_t>(id == nullptr ? v : id[i]);
  }
  // The position of edge e of column v.
  GSAMPLE_HD int64_t position(int64_t i, int64_t v, int64_t e) const {
    return start == nullptr ? e : start[i] + (e - edges.indptr[v]);
  }
};

}  // namespace gsample
