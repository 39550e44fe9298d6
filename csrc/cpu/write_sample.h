// Copies a sample from the workspace into its outputs.
#pragma once

#include <algorithm>

#include "neighbor_state.h"

namespace gsample {

// Where a relation's edges go. `edge` may be null.
struct EdgeOutput {
  int64_t* row;
  int64_t* col;
  int64_t* edge;
};

// Where a type's nodes go. `batch` may be null.
struct NodeOutput {
  int64_t* node;
  int64_t* batch;
};

// Writes value `first + i` at [offset[i], offset[i + 1]) for i in [a, b).
// Most columns have a few edges only: eight are written at a time, and the
// next column writes over those that were too many.
inline void fill_columns(const int64_t* offset,
                         int64_t a,
                         int64_t b,
                         int64_t first,
                         int64_t* col) {
  constexpr int64_t kStep = 8;
  const int64_t end = offset[b];
  int64_t i = a;
  for (; i < b && offset[i] + kStep <= end; ++i) {
    const int64_t value = first + i;
    int64_t* to = col + offset[i];
    for (int j = 0; j < kStep; ++j)
      to[j] = value;
    if (offset[i + 1] - offset[i] > kStep)
      std::fill(to + kStep, col + offset[i + 1], value);
  }
  for (; i < b; ++i)
    std::fill(col + offset[i], col + offset[i + 1], first + i);
}

// Columns [a, b) of a span.
template <typename indptr_t, typename index_t>
void write_columns(const RelationState<indptr_t, index_t>& edges,
                   const Span& span,
                   int64_t a,
                   int64_t b,
                   const EdgeOutput& out) {
  const int64_t* offset = edges.offsets.data() + span.offsets;
  const int64_t begin = span.edges + offset[a], end = span.edges + offset[b];
  fill_columns(offset, a, b, span.frontier, out.col + span.edges);
  std::copy(edges.row.data() + begin, edges.row.data() + end, out.row + begin);
  if (out.edge != nullptr)
    std::copy(edges.edge.data() + begin, edges.edge.data() + end,
              out.edge + begin);
}

template <typename index_t>
void write_nodes(const TypeState<index_t>& nodes, const NodeOutput& out) {
  const index_t* node = nodes.node.data();
  const uint32_t* root = nodes.root.data();
  std::copy(node, node + nodes.size, out.node);
  if (out.batch != nullptr)
    std::copy(root, root + nodes.size, out.batch);
}

}  // namespace gsample
