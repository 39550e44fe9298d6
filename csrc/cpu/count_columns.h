// The first phase of sampling: the candidates of each frontier column, and the
// number of them to select.
#pragma once

#include <algorithm>

#include "../args.h"
#include "../core/weighted.h"
#include "prefetch.h"

namespace gsample {

// The number of positive weights, or `enough` if it is exceeded.
inline int64_t count_positive(const CumulativeWeights& w, int64_t enough) {
  int64_t positive = 0;
  for (uint64_t i = 0; i < w.n && positive < enough; ++i)
    positive += w.through(i) > w.start(i);
  return positive;
}

template <typename indptr_t, typename index_t>
class ColumnCounter {
 public:
  using Edges = Relation<indptr_t, index_t>;

  ColumnCounter(const Edges& relation, const SampleOptions& options, int hop)
      : relation_(relation),
        options_(options),
        fanout_(relation.fanouts[hop]) {}

  // The start and length of the columns of `node` [n]. Returns false if a
  // column is out of bounds.
  bool find(const index_t* node, int64_t n, indptr_t* start, indptr_t* length) {
    bool bad = false;
    for (int64_t i = 0; i < n; ++i) {
      __builtin_prefetch(relation_.indptr +
                         node[std::min(i + kPrefetch, n - 1)]);
      const indptr_t first = relation_.indptr[node[i]];
      const indptr_t last = relation_.indptr[node[i] + 1];
      bad |= first < 0 || first > last || last > relation_.num_edges;
      start[i] = first;
      length[i] = last - first;
      if (relation_.edge_time != nullptr)  // where restrict() starts to search
        prefetch_item(relation_.edge_time, first + length[i] / 2);
    }
    return !bad;
  }

  // Restricts to the edges of [time - window, time]. Columns are sorted by
  // time.
  void restrict(int64_t time, indptr_t* start, indptr_t* length) const {
    const int64_t* first = relation_.edge_time + *start;
    const int64_t* last = std::upper_bound(first, first + *length, time);
    if (options_.has_window && time >= INT64_MIN + options_.window)
      first = std::lower_bound(first, last, time - options_.window);
    *start = static_cast<indptr_t>(first - relation_.edge_time);
    *length = static_cast<indptr_t>(last - first);
  }

  // The number of edges to select in each column. If that is all candidates (of
  // positive weight), `length` becomes its complement ~length.
  void count(const index_t* node,
             int64_t n,
             indptr_t* start,
             indptr_t* length,
             int64_t* counts) const {
    // Without times no edge is the latest: edges are drawn.
    const bool latest = options_.last && relation_.edge_time != nullptr;
    for (int64_t i = 0; latest && i < n; ++i)
      keep_last(start + i, length + i);
    if (relation_.cum_weight != nullptr)
      return count_weighted(node, n, start, length, counts);
    for (int64_t i = 0; i < n; ++i) {  // branch-free
      const indptr_t degree = length[i];
      const bool all = fanout_ < 0 || (!options_.replace && degree <= fanout_);
      counts[i] = all ? degree : degree > 0 ? fanout_ : 0;
      length[i] = all ? ~degree : degree;
    }
  }

  CumulativeWeights weights(index_t node, indptr_t start, int64_t n) const {
    if (relation_.cum_weight == nullptr)
      return {nullptr, 0, static_cast<uint64_t>(n)};
    const bool first = start == relation_.indptr[node];
    const int64_t before = first ? 0 : relation_.cum_weight[start - 1];
    return {relation_.cum_weight + start, static_cast<uint64_t>(before),
            static_cast<uint64_t>(n)};
  }

 private:
  static constexpr int64_t kPrefetch = 32;  // columns prefetched at a time

  void keep_last(indptr_t* start, indptr_t* length) const {
    if (fanout_ < 0 || *length <= fanout_)
      return;
    *start += *length - static_cast<indptr_t>(fanout_);
    *length = static_cast<indptr_t>(fanout_);
  }

  void count_weighted(const index_t* node,
                      int64_t n,
                      const indptr_t* start,
                      indptr_t* length,
                      int64_t* counts) const {
    const int64_t* zeros = relation_.cum_weight + relation_.num_edges;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t degree = length[i];
      bool all = fanout_ < 0 || (!options_.replace && degree <= fanout_);
      const int64_t enough = all ? degree : options_.replace ? 1 : fanout_ + 1;
      const int64_t positive =
          has_zero_weight(zeros, node[i])
              ? count_positive(weights(node[i], start[i], degree), enough)
              : std::min(degree, enough);
      all |= !options_.replace && positive < enough;
      counts[i] = all ? positive : positive > 0 ? fanout_ : 0;
      length[i] = all ? ~length[i] : length[i];
    }
  }

  const Edges& relation_;
  const SampleOptions& options_;
  int64_t fanout_;
};

}  // namespace gsample
