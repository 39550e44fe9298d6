// The candidates of a column, and the number of them to select: the rules of
// cpu/count_columns.h.
#pragma once

#include "../args.h"
#include "../core/search.h"
#include "../core/weighted.h"
#include "portable.h"

namespace gsample {

// Selects `count` of the `length` edges from `start` on.
struct SampleColumn {
  int64_t start;
  int64_t length;
  int64_t count;
  int64_t offset;  // of its edges among those of the hop
  bool all;        // selects all edges (of positive weight), in their order
};

// Restricts to the edges that are visible at the time of a seed.
__device__ inline void restrict_column(const int64_t* edge_time,
                                       const SampleOptions& options,
                                       int64_t fanout,
                                       int64_t time,
                                       SampleColumn* column) {
  int64_t first = column->start;
  const int64_t last =
      first_above(edge_time, first, first + column->length, time);
  if (options.has_window && time >= INT64_MIN + options.window)
    first = first_not_below(edge_time, first, last, time - options.window);
  if (options.last && fanout >= 0 && last - first > fanout)
    first = last - fanout;
  column->start = first;
  column->length = last - first;
}

// The weights of the candidates of node v.
template <typename relation_t>
__device__ CumulativeWeights column_weights(const relation_t& relation,
                                            int64_t v,
                                            const SampleColumn& column) {
  const bool first = column.start == relation.indptr[v];
  const int64_t before = first ? 0 : relation.cum_weight[column.start - 1];
  return {relation.cum_weight + column.start, static_cast<uint64_t>(before),
          static_cast<uint64_t>(column.length)};
}

// The number of positive weights, or `enough` if there are more.
__device__ inline int64_t count_positive_weights(const CumulativeWeights& w,
                                                 int64_t enough) {
  int64_t positive = 0;
  for (uint64_t i = 0; i < w.n && positive < enough; ++i)
    positive += w.through(i) > w.start(i);
  return positive;
}

// `kWeighted` if any relation has weights; this one may have none.
template <bool kWeighted, typename relation_t>
__device__ void count_column(const relation_t& relation,
                             bool replace,
                             int64_t fanout,
                             int64_t v,
                             SampleColumn* column) {
  const int64_t length = column->length;
  bool all = fanout < 0 || (!replace && length <= fanout);
  int64_t positive = length;
  if (kWeighted && relation.cum_weight != nullptr) {
    const int64_t enough = all ? length : replace ? 1 : fanout + 1;
    positive = length < enough ? length : enough;
    if (has_zero_weight(relation.cum_weight + relation.num_edges, v))
      positive =
          count_positive_weights(column_weights(relation, v, *column), enough);
    all |= !replace && positive < enough;
  }
  column->all = all;
  column->count = all ? positive : positive > 0 ? fanout : 0;
}

// Column v of a relation at a hop, in a tree. Returns false if its edges are
// out of range.
template <bool kWeighted, typename relation_t>
__device__ bool read_column(const relation_t& relation,
                            const SampleOptions& options,
                            int64_t fanout,
                            int64_t v,
                            const int64_t* tree_time,
                            int64_t tree,
                            SampleColumn* column) {
  const int64_t start = relation.indptr[v], last = relation.indptr[v + 1];
  *column = SampleColumn{start, last - start, 0, 0, true};
  if (start < 0 || start > last || last > relation.num_edges) {
    *column = SampleColumn{0, 0, 0, 0, true};
    return false;
  }
  if (relation.edge_time != nullptr)
    restrict_column(relation.edge_time, options, fanout, tree_time[tree],
                    column);
  count_column<kWeighted>(relation, options.replace, fanout, v, column);
  return true;
}

}  // namespace gsample
