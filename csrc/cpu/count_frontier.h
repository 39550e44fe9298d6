// The first phase of sampling, for a block of a frontier's columns.
#pragma once

#include "count_columns.h"
#include "node_set.h"
#include "relation_edges.h"

namespace gsample {

// Writes the candidates of the columns [begin, end), a block of kCountBlock or
// the last ones, and the numbers of edges to select. Returns false if a column
// is malformed, or missing in `source`.
template <typename indptr_t, typename index_t>
bool count_frontier(const Relation<indptr_t, index_t>& relation,
                    const SampleOptions& options,
                    int hop,
                    const EdgeSource<indptr_t, index_t>* source,
                    const NodeSet<index_t>& columns,
                    const int64_t* tree_time,  // [trees] with edge times
                    int64_t begin,
                    int64_t end,
                    RelationEdges<indptr_t, index_t>& to) {
  const int64_t n = end - begin;
  const index_t* node = columns.column() + begin;
  indptr_t* start = to.start.data() + begin;
  indptr_t* length = to.length.data() + begin;
  const bool weighted = source != nullptr && source->is_weighted();
  ColumnWeights<indptr_t>* weights =
      weighted ? to.weights.data() + begin : nullptr;
  ColumnCounter<indptr_t, index_t> counter(relation, options, hop, source,
                                           weights);
  if (!counter.find(node, n, start, length) ||
      (weighted && !source->cumulate(start, length, n,
                                     to.cum[begin / kCountBlock], weights)))
    return false;
  bool found = true;
  for (int64_t i = 0; counter.is_timed() && i < n; ++i)
    found &= counter.restrict(tree_time[columns.column_tree()[begin + i]],
                              start + i, length + i);
  if (found)
    counter.count(node, n, start, length, to.offset() + 1 + begin);
  return found;
}

}  // namespace gsample
