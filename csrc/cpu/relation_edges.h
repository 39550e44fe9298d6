// The edges of one relation that hops sample.
#pragma once

#include <algorithm>
#include <vector>

#include "buffer.h"
#include "edge_source.h"

namespace gsample {

constexpr int64_t kCountBlock = 1024;  // columns counted together

// The edges of a hop.
struct Span {
  int64_t first_column;  // number of the first column
  int64_t num_columns;
  int64_t edges;    // start of the span in the buffers of edges
  int64_t offsets;  // start of its offsets
};

// Edges of all hops, or of one.
template <typename indptr_t, typename index_t>
struct RelationEdges {
  int64_t size;
  std::vector<Span> spans;
  std::vector<int64_t> hop_edges;
  Buffer<int64_t> offsets;  // of all spans, num_columns + 1 each
  // Columns of the last hop.
  Buffer<indptr_t> start;   // first candidate
  Buffer<indptr_t> length;  // ~length: select all
  // Unless the edges are in arrays: weights, summed up block by block of
  // columns.
  Buffer<ColumnWeights<indptr_t>> weights;
  std::vector<Buffer<int64_t>> cum;
  // Unless the caller provides memory for them:
  Buffer<indptr_t> edge;     // [size] selected edge
  Buffer<uint32_t> row;      // [size] number of its row
  Buffer<index_t> neighbor;  // [edges of the last hop] its row

  const int64_t* offset(const Span& span) const {
    return offsets.data() + span.offsets;
  }

  // Offsets of the last hop.
  int64_t* offset() { return offsets.data() + spans.back().offsets; }
  indptr_t* hop_edge() { return edge.data() + spans.back().edges; }
  uint32_t* hop_row() { return row.data() + spans.back().edges; }

  void clear() {
    size = 0;
    spans.clear();
    hop_edges.clear();
  }

  void begin_hop(int64_t first_column, int64_t num_columns) {
    const int64_t begin =
        spans.empty() ? 0 : spans.back().offsets + spans.back().num_columns + 1;
    spans.push_back({first_column, num_columns, size, begin});
    offsets.reserve(begin + num_columns + 1, begin);
    start.reserve(num_columns);
    length.reserve(num_columns);
  }

  // Reserves memory for the weights of the hop's columns.
  void reserve_weights() {
    const int64_t n = spans.back().num_columns;
    weights.reserve(n);
    cum.resize((n + kCountBlock - 1) / kCountBlock);
  }

  // Turns the counts from offset()[1] on into offsets, and copies them unless
  // `indptr` is null.
  void add_up(indptr_t* indptr) {
    const int64_t n = spans.back().num_columns;
    int64_t* to = offset();
    to[0] = 0;
    if (indptr != nullptr)
      indptr[0] = 0;
    for (int64_t i = 0; i < n; ++i) {
      to[i + 1] += to[i];
      if (indptr != nullptr)
        indptr[i + 1] = static_cast<indptr_t>(to[i + 1]);
    }
    hop_edges.push_back(to[n]);
    size += to[n];
  }

  void reserve_edges() {
    const int64_t before = spans.back().edges;
    edge.reserve(size, before);
    row.reserve(size, before);
    neighbor.reserve(hop_edges.back());
  }

  // Calls function(begin, end) for runs of columns of about `step` edges.
  template <typename function_t>
  void for_each_range(const Span& span,
                      int64_t step,
                      const function_t& function) const {
    const int64_t* first = offset(span);
    const int64_t* last = first + span.num_columns;
    if (*last == 0)
      return;
    for (const int64_t* begin = first; begin < last;) {
      const int64_t* end = std::lower_bound(begin + 1, last, *begin + step);
      function(begin - first, end - first);
      begin = end;
    }
  }
};

}  // namespace gsample
