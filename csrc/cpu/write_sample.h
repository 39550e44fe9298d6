// Copies a sample from the workspace to its outputs.
#pragma once

#include <algorithm>
#include <vector>

#include "hop_workspace.h"
#include "parallel.h"
#include "sample_hops.h"

namespace gsample {

constexpr int64_t kWriteEdges = 65536;  // work item of a thread

// Writes value `first + i` at [offset[i], offset[i + 1]) for i in [a, b). Most
// columns have only a few edges: eight are written at a time, and the next
// column overwrites the excess.
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
void write_columns(const RelationEdges<indptr_t, index_t>& edges,
                   const Span& span,
                   int64_t a,
                   int64_t b,
                   const EdgeOutput& out) {
  const int64_t* offset = edges.offset(span);
  const int64_t begin = span.edges + offset[a], end = span.edges + offset[b];
  fill_columns(offset, a, b, span.first_column, out.col + span.edges);
  std::copy(edges.row.data() + begin, edges.row.data() + end, out.row + begin);
  if (out.edge != nullptr)
    std::copy(edges.edge.data() + begin, edges.edge.data() + end,
              out.edge + begin);
}

template <typename index_t>
void write_nodes(const NodeSet<index_t>& nodes, const NodeOutput& out) {
  const index_t* node = nodes.node.data();
  const uint32_t* tree = nodes.tree.data();
  std::copy(node, node + nodes.size, out.node);
  if (out.batch != nullptr)
    std::copy(tree, tree + nodes.size, out.batch);
}

template <typename indptr_t, typename index_t>
void write_sample(const HopWorkspace<indptr_t, index_t>& workspace,
                  int64_t num_types,
                  int num_relations,
                  const NodeOutput* nodes,
                  const EdgeOutput* out,
                  int threads) {
  struct Part {
    int relation;
    const Span* span;
    int64_t begin, end;
  };
  std::vector<Part> parts;
  for (int r = 0; r < num_relations; ++r) {
    const auto& edges = *workspace.edges[r];
    for (const Span& span : edges.spans)
      edges.for_each_range(span, kWriteEdges, [&](int64_t a, int64_t b) {
        parts.push_back({r, &span, a, b});
      });
  }
  parallel_items(num_types + parts.size(), threads, [&](int64_t i) {
    if (i < num_types)
      return write_nodes(*workspace.sets[i], nodes[i]);
    const Part& p = parts[i - num_types];
    write_columns(*workspace.edges[p.relation], *p.span, p.begin, p.end,
                  out[p.relation]);
  });
}

}  // namespace gsample
