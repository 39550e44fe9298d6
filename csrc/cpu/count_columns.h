// The first phase of sampling: the candidates of each frontier column, and the
// number of them to select.
#pragma once

#include <algorithm>

#include "../args.h"
#include "../core/weighted.h"
#include "edge_source.h"
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
  using Source = EdgeSource<indptr_t, index_t>;

  // The edges are those of `source`, unless it is null; if it has weights, the
  // columns' are `weights` [n].
  ColumnCounter(const Edges& relation,
                const SampleOptions& options,
                int hop,
                const Source* source = nullptr,
                const ColumnWeights<indptr_t>* weights = nullptr)
      : relation_(relation),
        options_(options),
        fanout_(relation.fanouts[hop]),
        source_(source),
        weights_(weights) {}

  bool is_weighted() const {
    return weights_ != nullptr || relation_.cum_weight != nullptr;
  }
  bool is_timed() const {
    return source_ != nullptr ? source_->is_timed()
                              : relation_.edge_time != nullptr;
  }

  // The start and length of the columns of `node` [n]. Returns false if a
  // column is out of bounds.
  bool find(const index_t* node, int64_t n, indptr_t* start, indptr_t* length) {
    if (source_ != nullptr)
      return source_->find(node, n, start, length);
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
  // time. Returns false if times are missing.
  bool restrict(int64_t time, indptr_t* start, indptr_t* length) const {
    const bool has_window =
        options_.has_window && time >= INT64_MIN + options_.window;
    if (source_ != nullptr) {
      indptr_t first = *start, last;
      if (!source_->search(time, false, *start, *length, &last) ||
          (has_window && !source_->search(time - options_.window, true, *start,
                                          last - *start, &first)))
        return false;
      *start = first;
      *length = last - first;
      return true;
    }
    const int64_t* first = relation_.edge_time + *start;
    const int64_t* last = std::upper_bound(first, first + *length, time);
    if (has_window)
      first = std::lower_bound(first, last, time - options_.window);
    *start = static_cast<indptr_t>(first - relation_.edge_time);
    *length = static_cast<indptr_t>(last - first);
    return true;
  }

  // The number of edges to select in each column. If that is all candidates (of
  // positive weight), `length` becomes its complement ~length.
  void count(const index_t* node,
             int64_t n,
             indptr_t* start,
             indptr_t* length,
             int64_t* counts) const {
    // Without times no edge is the latest: edges are drawn.
    const bool latest = options_.last && is_timed();
    for (int64_t i = 0; latest && i < n; ++i)
      keep_last(start + i, length + i);
    if (is_weighted())
      return count_weighted(node, n, start, length, counts);
    for (int64_t i = 0; i < n; ++i) {  // branch-free
      const indptr_t degree = length[i];
      const bool all = fanout_ < 0 || (!options_.replace && degree <= fanout_);
      counts[i] = all ? degree : degree > 0 ? fanout_ : 0;
      length[i] = all ? ~degree : degree;
    }
  }

  // The weights of `n` edges from `start` on, of column i with this node.
  CumulativeWeights weights(int64_t i,
                            index_t node,
                            indptr_t start,
                            int64_t n) const {
    if (weights_ != nullptr) {
      const int64_t* cum = weights_[i].cum + (start - weights_[i].start);
      const bool first = start == weights_[i].start;
      return {cum, static_cast<uint64_t>(first ? 0 : cum[-1]),
              static_cast<uint64_t>(n)};
    }
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
    for (int64_t i = 0; i < n; ++i) {
      const int64_t degree = length[i];
      bool all = fanout_ < 0 || (!options_.replace && degree <= fanout_);
      const int64_t enough = all ? degree : options_.replace ? 1 : fanout_ + 1;
      const int64_t positive =
          has_zero(i, node[i])
              ? count_positive(weights(i, node[i], start[i], degree), enough)
              : std::min(degree, enough);
      all |= !options_.replace && positive < enough;
      counts[i] = all ? positive : positive > 0 ? fanout_ : 0;
      length[i] = all ? ~length[i] : length[i];
    }
  }

  bool has_zero(int64_t i, index_t node) const {
    if (weights_ != nullptr)
      return weights_[i].has_zero;
    return has_zero_weight(relation_.cum_weight + relation_.num_edges, node);
  }

  const Edges& relation_;
  const SampleOptions& options_;
  int64_t fanout_;
  const Source* source_;
  const ColumnWeights<indptr_t>* weights_;
};

}  // namespace gsample
