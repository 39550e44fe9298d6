// Arguments of the kernels as plain pointers: what the operators in bind/
// fill in, and what the kernels in cpu/ and cuda/ read.
#pragma once

#include <stdint.h>

#include "core/philox.h"
#include "core/weighted.h"

namespace gsample {

// One edge type in compressed sparse column form: columns are destinations,
// so column v lists the in-neighbours of v.
template <typename indptr_t, typename index_t>
struct Relation {
  const indptr_t* indptr;     // [num_cols + 1] where each column starts
  const index_t* indices;     // [num_edges] row (source) of each edge
  const int64_t* cum_weight;  // or null, see core/weighted.h
  const int64_t* edge_time;   // [num_edges] or null, ascending in a column
  const int64_t* fanouts;     // [num_hops] neighbours a column, -1 = all
  int64_t num_edges;
  int src;  // node type of the rows
  int dst;  // node type of the columns
};

// One relation of random walks: a walk at v goes to an entry of column v.
template <typename indptr_t, typename index_t>
struct WalkGraph {
  const indptr_t* indptr;     // [num_cols + 1]
  const index_t* indices;     // [num_edges]
  const int64_t* cum_weight;  // or null, see core/weighted.h
  int64_t num_cols;
  int64_t num_edges;

  // Whether a column may be read.
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
  bool disjoint;    // a tree of its own for every seed
  bool last;        // the latest edges instead of random ones
  bool has_window;  // only edges of [seed_time - window, seed_time]
  int64_t window;
  int num_threads;  // 0: as many as torch uses
};

// What becomes the columns of the next hop of layers, each node once, in the
// order of its first occurrence:
enum class Frontier {
  kRow,     // the rows that were sampled
  kNodes,   // the columns, then the rows that are none of them
  kNew,     // the same without its first `number of columns` nodes
  kUnseen,  // rows that are in no hop before, likewise
};

template <typename indptr_t, typename index_t>
struct NeighborSampleArgs {
  const Relation<indptr_t, index_t>* relations;  // [num_relations]
  const NodeType* types;                         // [num_types]
  int num_relations;
  int num_types;
  SampleOptions options;
};

}  // namespace gsample
