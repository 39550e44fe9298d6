#include "sample_nodes.h"

#include <algorithm>
#include <vector>

#include "search_sums.h"
#include "select_columns.h"

namespace gsample {

namespace {

// The remaining weights, as a Fenwick tree: node i (from 1) sums the lowbit(i)
// weights up to and including position i - 1.
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

  // The position of unit r in the concatenated remaining weights.
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
    return select_many_weighted(draw, w, k, out);
  // The distribution of select_weighted_without_replacement(), in O(n + k log
  // n).
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

}  // namespace gsample
