// The second phase of sampling: selects the edges of the counted frontier
// columns.
#pragma once

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
  const ColumnCounter<indptr_t, index_t> counter(relation, options, hop);
  ColumnSelector<pos_t, index_t> selector(
      relation.indices, relation.cum_weight != nullptr, options.replace, key);
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
                               counter.weights(node, start, size),
                               edge + offset[i]};
    if (length < 0) {
      __builtin_prefetch(relation.indices + start);
      take_all(column, limit);
    } else
      selector.add(column);
  }
  selector.flush();
}

}  // namespace gsample
