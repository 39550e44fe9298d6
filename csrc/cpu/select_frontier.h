// The second phase of sampling: selects the edges of the counted frontier
// columns.
#pragma once

#include <type_traits>

#include "count_columns.h"
#include "select_columns.h"

namespace gsample {

// The result of ColumnCounter::count() for the columns of a frontier.
template <typename indptr_t, typename index_t>
struct CountedColumns {
  const index_t* node;
  const uint32_t* root;  // the tree that keys a column's draws, or null
  const indptr_t* start;
  const indptr_t* length;  // its complement if all edges are selected
  const int64_t* offset;   // output position of each column's edges
  // Of the edges of a source, null for others:
  const ColumnWeights<indptr_t>* weights;
};

// Writes the positions of the selected edges of the columns [begin, end) to
// edge[offset[begin]], ..., and prefetches their rows.
template <typename pos_t, typename indptr_t, typename index_t>
void select_frontier(const Relation<indptr_t, index_t>& relation,
                     const SampleOptions& options,
                     int hop,
                     uint64_t key,
                     const CountedColumns<indptr_t, index_t>& columns,
                     int64_t begin,
                     int64_t end,
                     pos_t* edge) {
  const int64_t* offset = columns.offset;
  const ColumnCounter<indptr_t, index_t> counter(relation, options, hop,
                                                 nullptr, columns.weights);
  ColumnSelector<pos_t, index_t> selector(
      relation.indices, counter.is_weighted(), options.replace, key);
  const pos_t* limit = edge + offset[end];
  for (int64_t i = begin; i < end; ++i) {
    const int64_t n = offset[i + 1] - offset[i];
    if (n == 0)
      continue;
    const index_t node = columns.node[i];
    const indptr_t start = columns.start[i], length = columns.length[i];
    const indptr_t size = length < 0 ? ~length : length;
    const Column<pos_t> column{start,
                               size,
                               n,
                               columns.root == nullptr ? 0 : columns.root[i],
                               static_cast<uint64_t>(node),
                               counter.weights(i, node, start, size),
                               edge + offset[i]};
    if (length < 0) {
      __builtin_prefetch(relation.indices + start);
      take_all(column, limit);
    } else
      selector.add(column);
  }
  selector.flush();
}

// Reads the rows of edge [n], and returns whether all are nodes. The positions
// of a source's edges become their ids.
template <typename pos_t, typename indptr_t, typename index_t>
bool read_rows(const Relation<indptr_t, index_t>& relation,
               const EdgeSource<indptr_t, index_t>* source,
               uint64_t num_nodes,
               pos_t* edge,
               int64_t n,
               index_t* row) {
  bool valid = true;
  if constexpr (std::is_same_v<pos_t, indptr_t>)
    if (source != nullptr && !source->read(edge, n, row))
      return false;
  for (int64_t i = 0; i < n; ++i) {
    if (source == nullptr)
      row[i] = relation.indices[edge[i]];
    valid &= static_cast<uint64_t>(row[i]) < num_nodes;
  }
  return valid;
}

}  // namespace gsample
