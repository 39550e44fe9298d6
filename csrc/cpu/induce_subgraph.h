// All edges of a graph between two lists of nodes.
#pragma once

#include <stdint.h>

#include <vector>

#include "parallel.h"

namespace gsample {

template <typename indptr_t, typename index_t>
struct InduceArgs {
  const indptr_t* indptr;    // [num_cols + 1]
  const index_t* indices;    // [num_edges]
  const int64_t* row_nodes;  // [num_row_nodes]
  const int64_t* col_nodes;  // [num_col_nodes]
  const int64_t* row_batch;  // [num_row_nodes] or null: one tree
  const int64_t* col_batch;  // [num_col_nodes] or null
  int64_t num_rows;
  int64_t num_cols;
  int64_t num_edges;
  int64_t num_row_nodes;
  int64_t num_col_nodes;
  int num_threads;
};

struct InducedEdge {
  int64_t row;   // position in row_nodes (the first)
  int64_t col;   // position in col_nodes
  int64_t edge;  // position in indices
};

// Edges column by column, in the order of `col_nodes` and of the graph.
using InducedEdges = std::vector<InducedEdge>;

// Parts are in order, to be concatenated. kFault: `indptr` is no CSC, or a
// column is out of range.
template <typename indptr_t, typename index_t>
Status induce_subgraph(const InduceArgs<indptr_t, index_t>& args,
                       std::vector<InducedEdges>* parts);

}  // namespace gsample
