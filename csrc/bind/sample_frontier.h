// What sample_frontier of all devices checks, with one wording of errors.
#pragma once

#include <limits>
#include <optional>

#include "check.h"

namespace gsample {

constexpr const char* kFrontierOp = "sample_frontier";

inline SampleOptions read_frontier_options(
    const std::optional<int64_t>& time_window,
    int64_t temporal_strategy,
    bool timed,
    bool replace) {
  STD_TORCH_CHECK(!time_window.has_value() || *time_window >= 0, kFrontierOp,
                  ": 'time_window' must not be negative");
  SampleOptions options{};
  options.replace = replace;
  options.last = takes_last(kFrontierOp, temporal_strategy) && timed;
  options.has_window = time_window.has_value();
  options.window = time_window.value_or(0);
  return options;
}

// No column may give more than can be counted: n * k or, for -1, all edges.
inline void check_fanout(int64_t k, bool replace, int64_t n) {
  STD_TORCH_CHECK(k >= -1, kFrontierOp, ": 'k' must be -1 or more (got ", k,
                  ")");
  STD_TORCH_CHECK(!replace || k <= INT32_MAX, kFrontierOp,
                  ": 'k' must be less than 2^31 with replacement (got ", k,
                  ")");
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  STD_TORCH_CHECK(!replace || k <= 0 || n <= kMost / 16 / k, kFrontierOp, ": ",
                  n, " columns of ", k, " edges are too many");
}

inline void check_frontier(int64_t relation,
                           const std::optional<Tensor>& edge_time,
                           const std::optional<Tensor>& column_time,
                           int64_t k,
                           bool replace,
                           int64_t n) {
  STD_TORCH_CHECK(relation >= 0 && relation < kMaxRelations, kFrontierOp,
                  ": 'relation' must be in [0, 65280) (got ", relation, ")");
  STD_TORCH_CHECK(edge_time.has_value() == column_time.has_value(), kFrontierOp,
                  ": 'edge_time' and 'column_time' must be given together");
  check_fanout(k, replace, n);
}

}  // namespace gsample
