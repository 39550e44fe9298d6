// The candidates of a column, and how many of them are taken: the rules of
// cpu/count_columns.h.
#pragma once

#include "../core/weighted.h"
#include "neighbor_sample.h"
#include "portable.h"

namespace gsample {

// `count` edges are taken of `length` from `start` on.
struct SampleColumn {
  int64_t start;
  int64_t length;
  int64_t count;
  int64_t offset;  // of its edges in those of the hop
  bool all;        // takes all edges (of positive weight), in their order
};

// The first position in [first, last) whose time is later than `time`, or not
// earlier; `last` if there is none. Times ascend.
template <bool kLater>
__device__ int64_t
find_time(const int64_t* edge_time, int64_t first, int64_t last, int64_t time) {
  while (first < last) {
    const int64_t middle = first + (last - first) / 2;
    const int64_t t = edge_time[middle];
    if (kLater ? t <= time : t < time)
      first = middle + 1;
    else
      last = middle;
  }
  return first;
}

// Keeps the edges that are seen at the time of a seed.
template <typename args_t>
__device__ void restrict_column(const args_t& args,
                                int64_t fanout,
                                int64_t time,
                                SampleColumn* column) {
  int64_t first = column->start;
  const int64_t last =
      find_time<true>(args.edge_time, first, first + column->length, time);
  if (args.has_window && time >= INT64_MIN + args.window)
    first = find_time<false>(args.edge_time, first, last, time - args.window);
  if (args.last && fanout >= 0 && last - first > fanout)
    first = last - fanout;
  column->start = first;
  column->length = last - first;
}

// The weights of the candidates of node v.
template <typename args_t>
__device__ CumulativeWeights column_weights(const args_t& args,
                                            int64_t v,
                                            const SampleColumn& column) {
  const bool first = column.start == args.indptr[v];
  const int64_t before = first ? 0 : args.cum_weight[column.start - 1];
  return {args.cum_weight + column.start, static_cast<uint64_t>(before),
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

template <bool kWeighted, typename args_t>
__device__ void count_column(const args_t& args,
                             int64_t fanout,
                             int64_t v,
                             SampleColumn* column) {
  const int64_t length = column->length;
  bool all = fanout < 0 || (!args.replace && length <= fanout);
  int64_t positive = length;
  if constexpr (kWeighted) {
    const int64_t enough = all ? length : args.replace ? 1 : fanout + 1;
    positive = length < enough ? length : enough;
    if (has_zero_weight(args.cum_weight + args.num_edges, v))
      positive =
          count_positive_weights(column_weights(args, v, *column), enough);
    all |= !args.replace && positive < enough;
  }
  column->all = all;
  column->count = all ? positive : positive > 0 ? fanout : 0;
}

// Column v at a hop, for a tree. False when it is no range of edges.
template <bool kWeighted, typename args_t>
__device__ bool read_column(const args_t& args,
                            int hop,
                            int64_t v,
                            int64_t tree,
                            SampleColumn* column) {
  const int64_t start = args.indptr[v], last = args.indptr[v + 1];
  *column = SampleColumn{start, last - start, 0, 0, true};
  if (start < 0 || start > last || last > args.num_edges) {
    *column = SampleColumn{0, 0, 0, 0, true};
    return false;
  }
  const int64_t fanout = args.fanouts[hop];
  if (fanout == 0)
    return true;
  if (args.edge_time != nullptr)
    restrict_column(args, fanout, args.seed_time[tree], column);
  count_column<kWeighted>(args, fanout, v, column);
  return true;
}

}  // namespace gsample
