#include "sample_matrix.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "count_columns.h"
#include "select_columns.h"

namespace gsample {

namespace {

constexpr int64_t kGrain = 1024;   // columns of one task, at least
constexpr int64_t kPrefetch = 16;  // offsets in flight

template <typename indptr_t>
CumulativeWeights column_weights(const SampleColsArgs<indptr_t>& args,
                                 int64_t v) {
  const int64_t start = args.indptr[v];
  const uint64_t n = static_cast<uint64_t>(args.indptr[v + 1] - start);
  if (args.cum_weight == nullptr)
    return {nullptr, 0, n};
  return {args.cum_weight + start, 0, n};
}

// How many edges of a column can be drawn, or `enough` if there are more.
template <typename indptr_t>
int64_t candidates(const SampleColsArgs<indptr_t>& args,
                   int64_t v,
                   int64_t enough) {
  const CumulativeWeights w = column_weights(args, v);
  const int64_t n = static_cast<int64_t>(w.n);
  if (args.cum_weight == nullptr ||
      !has_zero_weight(args.cum_weight + args.num_edges, v))
    return std::min(n, enough);
  return count_positive(w, enough);
}

}  // namespace

template <typename indptr_t>
Status sample_cols_indptr(const SampleColsArgs<indptr_t>& args,
                          indptr_t* indptr) {
  std::atomic<bool> valid{true};
  Interrupt interrupt;
  const int64_t k = args.k;
  parallel_ranges(
      args.num_cols, kGrain, args.threads, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end && !interrupt.stopped(); ++i) {
          if (args.cols != nullptr && i + kPrefetch < end &&
              args.cols[i + kPrefetch] >= 0 &&
              args.cols[i + kPrefetch] < args.all_cols)
            __builtin_prefetch(args.indptr + args.cols[i + kPrefetch]);
          const int64_t v = args.column(i);
          if (v < 0 || v >= args.all_cols) {
            valid = false;
            return;
          }
          const indptr_t first = args.indptr[v], last = args.indptr[v + 1];
          if (first < 0 || first > last || last > args.num_edges) {
            valid = false;
            return;
          }
          int64_t count = candidates(args, v, k < 0 ? last - first : k);
          if (args.replace && k >= 0 && count > 0)
            count = k;
          indptr[i + 1] = static_cast<indptr_t>(count);
          if (i % kGrain == 0)
            interrupt.poll();
        }
      });
  if (interrupt.stopped())
    return Status::kInterrupted;
  if (!valid)
    return Status::kFault;
  int64_t total = 0;
  indptr[0] = 0;
  for (int64_t i = 0; i < args.num_cols; ++i) {
    total += indptr[i + 1];
    indptr[i + 1] = static_cast<indptr_t>(total);
  }
  // Columns that are taken repeatedly can exceed what int32 counts.
  return total <= static_cast<int64_t>(std::numeric_limits<indptr_t>::max())
             ? Status::kDone
             : Status::kFault;
}

template <typename indptr_t>
Status sample_cols_edges(const SampleColsArgs<indptr_t>& args,
                         const indptr_t* indptr,
                         int64_t* edge) {
  Interrupt interrupt;
  parallel_ranges(
      args.num_cols, kGrain, args.threads, [&](int64_t begin, int64_t end) {
        if (begin == end)
          return;
        ColumnSelector<int64_t, int64_t> selector(
            nullptr, args.cum_weight != nullptr, args.replace, args.key[0]);
        const int64_t* limit = edge + indptr[end];
        int64_t batch = 0;
        for (int64_t i = begin; i < end && !interrupt.stopped(); ++i) {
          if (args.ptr != nullptr && (i == begin || i == args.ptr[batch + 1])) {
            while (i >= args.ptr[batch + 1])
              ++batch;
            selector.use_key(args.key[batch]);
          }
          const int64_t count = indptr[i + 1] - indptr[i];
          if (count == 0)
            continue;
          const int64_t v = args.column(i);
          const int64_t length = args.indptr[v + 1] - args.indptr[v];
          const Column<int64_t> column{
              args.indptr[v],
              length,
              count,
              0,
              static_cast<uint64_t>(args.id == nullptr ? v : args.id[i]),
              column_weights(args, v),
              edge + indptr[i]};
          const bool all =
              args.k < 0 || (!args.replace && count < args.k) ||
              (!args.replace && candidates(args, v, args.k + 1) == count);
          if (all)
            take_all(column, limit);
          else
            selector.add(column);
          if (i % kGrain == 0)
            interrupt.poll();
        }
        selector.flush();
      });
  return interrupt.stopped() ? Status::kInterrupted : Status::kDone;
}

namespace {

// The weights that are left, as a Fenwick tree: node i (from 1) sums the
// lowbit(i) weights up to and including position i - 1.
class RemainingWeights {
 public:
  RemainingWeights(const int64_t* cum, int64_t n) : n_(n), tree_(n + 1) {
    for (int64_t i = 1; i <= n; ++i) {
      const int64_t before = i - (i & -i);
      tree_[i] = static_cast<uint64_t>(cum[i - 1]) -
                 (before == 0 ? 0 : static_cast<uint64_t>(cum[before - 1]));
    }
    for (top_ = 1; top_ * 2 <= n; top_ *= 2) {
    }
  }

  // The position that holds unit r when the weights that are left are laid
  // end to end.
  int64_t find(uint64_t r) const {
    int64_t i = 0;
    for (int64_t step = top_; step > 0; step /= 2) {
      if (i + step <= n_ && tree_[i + step] <= r) {
        i += step;
        r -= tree_[i];
      }
    }
    return std::min(i, n_ - 1);
  }

  void remove(int64_t position, uint64_t weight) {
    for (int64_t i = position + 1; i <= n_; i += i & -i)
      tree_[i] -= weight;
  }

 private:
  int64_t n_;
  int64_t top_;
  std::vector<uint64_t> tree_;
};

// select_weighted_with_replacement() for sums that are far larger than a cache:
// binary searches in turns, so that their misses overlap. No step branches on
// what it reads.
int64_t select_from_many(const Stream& draw,
                         const CumulativeWeights& w,
                         int64_t k,
                         int64_t* out) {
  constexpr int64_t kLanes = 32;
  const uint64_t sum = w.total();
  if (sum == 0)
    return 0;
  for (int64_t begin = 0; begin < k; begin += kLanes) {
    const int64_t lanes = std::min(kLanes, k - begin);
    uint64_t r[kLanes], low[kLanes] = {};
    for (int64_t lane = 0; lane < lanes; ++lane)
      r[lane] = bounded(draw(static_cast<uint32_t>(begin + lane)), sum);
    // The first i with through(i) > r is in [low, low + length).
    for (uint64_t length = w.n; length > 1;) {
      const uint64_t half = length / 2;
      length -= half;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        low[lane] += w.through(low[lane] + half - 1) <= r[lane] ? half : 0;
        __builtin_prefetch(w.cum + low[lane] + length / 2);
      }
    }
    for (int64_t lane = 0; lane < lanes; ++lane)
      out[begin + lane] = static_cast<int64_t>(low[lane]);
  }
  return k;
}

}  // namespace

int64_t sample_nodes(const int64_t* cum,
                     bool has_zero,
                     int64_t n,
                     int64_t k,
                     bool replace,
                     uint64_t key,
                     int64_t* out) {
  const Stream draw{key, 0, 0};
  if (n == 0 || k == 0)
    return 0;
  if (k == n && !replace && (cum == nullptr || !has_zero)) {
    for (int64_t i = 0; i < n; ++i)
      out[i] = i;
    return n;
  }
  if (cum == nullptr) {
    Column<int64_t> column{0, n, k, 0, 0, {nullptr, 0, 0}, out};
    ColumnSelector<int64_t, int64_t>(nullptr, false, replace, key)
        .select_large(column);
    return k;
  }
  const CumulativeWeights w{cum, 0, static_cast<uint64_t>(n)};
  if (replace)
    return select_from_many(draw, w, k, out);
  // The law of select_weighted_without_replacement(), in O(n + k log n).
  RemainingWeights weights(cum, n);
  uint64_t left = w.total();
  int64_t slot = 0;
  for (; slot < k && left > 0; ++slot) {
    const int64_t i =
        weights.find(bounded(draw(static_cast<uint32_t>(slot)), left));
    const uint64_t weight = w.through(i) - w.start(i);
    weights.remove(i, weight);
    left -= weight;
    out[slot] = i;
  }
  return slot;
}

#define GSAMPLE_INSTANTIATE(indptr_t)                                 \
  template Status sample_cols_indptr(const SampleColsArgs<indptr_t>&, \
                                     indptr_t*);                      \
  template Status sample_cols_edges(const SampleColsArgs<indptr_t>&,  \
                                    const indptr_t*, int64_t*);
GSAMPLE_INSTANTIATE(int32_t)
GSAMPLE_INSTANTIATE(int64_t)
#undef GSAMPLE_INSTANTIATE

}  // namespace gsample
