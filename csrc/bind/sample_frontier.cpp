// The operator sample_frontier on the CPU: checks, arguments and allocation
// around cpu/sample_frontier.h.
#include "../cpu/sample_frontier.h"

#include <torch/csrc/stable/library.h>

#include <limits>
#include <string>
#include <tuple>

#include "check.h"
#include "output_pool.h"

namespace gsample {

namespace {

constexpr const char* kOp = "sample_frontier";

SampleOptions read_frontier_options(const std::optional<int64_t>& time_window,
                                    const std::string& temporal_strategy,
                                    bool timed,
                                    bool replace) {
  STD_TORCH_CHECK(temporal_strategy == "uniform" || temporal_strategy == "last",
                  kOp,
                  ": 'temporal_strategy' must be 'uniform' or 'last' (got "
                  "'",
                  temporal_strategy, "')");
  STD_TORCH_CHECK(!time_window.has_value() || *time_window >= 0, kOp,
                  ": 'time_window' must not be negative");
  SampleOptions options{};
  options.replace = replace;
  options.last = timed && temporal_strategy == "last";
  options.has_window = time_window.has_value();
  options.window = time_window.value_or(0);
  return options;
}

// No column may give more than can be counted: n * k or, for -1, all edges.
void check_fanout(int64_t k, bool replace, int64_t n) {
  STD_TORCH_CHECK(k >= -1, kOp, ": 'k' must be -1 or more (got ", k, ")");
  STD_TORCH_CHECK(!replace || k <= INT32_MAX, kOp,
                  ": 'k' must be less than 2^31 with replacement (got ", k,
                  ")");
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  STD_TORCH_CHECK(!replace || k <= 0 || n <= kMost / 16 / k, kOp, ": ", n,
                  " columns of ", k, " edges are too many");
}

void check_status(Status status, int64_t num_edges) {
  STD_TORCH_CHECK(status != Status::kInterrupted, kOp, ": interrupted");
  STD_TORCH_CHECK(status == Status::kDone, kOp,
                  ": 'indptr' must ascend from 0 to ", num_edges);
}

std::tuple<Tensor, Tensor> sample_frontier(Tensor indptr,
                                           Tensor start,
                                           Tensor id,
                                           int64_t k,
                                           Tensor key,
                                           int64_t call_id,
                                           int64_t relation,
                                           std::optional<Tensor> root,
                                           std::optional<Tensor> cum_weight,
                                           std::optional<Tensor> edge_time,
                                           std::optional<Tensor> column_time,
                                           std::optional<int64_t> time_window,
                                           std::string temporal_strategy,
                                           bool replace,
                                           int64_t num_threads) {
  const int64_t n = indptr.numel() - 1;
  STD_TORCH_CHECK(n >= 0, kOp, ": 'indptr' must not be empty");
  const int64_t* offsets = int64_vector(kOp, "indptr", indptr, n + 1);
  const int64_t num_edges = offsets[n];
  STD_TORCH_CHECK(offsets[0] == 0 && num_edges >= 0, kOp,
                  ": 'indptr' must ascend from 0 (got ", offsets[0], " and ",
                  num_edges, ")");
  STD_TORCH_CHECK(relation >= 0 && relation < kMaxRelations, kOp,
                  ": 'relation' must be in [0, 65280) (got ", relation, ")");
  STD_TORCH_CHECK(edge_time.has_value() == column_time.has_value(), kOp,
                  ": 'edge_time' and 'column_time' must be given together");
  check_fanout(k, replace, n);
  const int64_t* weight = int64_vector(kOp, "cum_weight", cum_weight,
                                       cum_weight_size(num_edges, n));
  const int64_t* time = int64_vector(kOp, "edge_time", edge_time, num_edges);
  const SampleFrontierArgs args{
      {offsets, nullptr, weight, time, &k, num_edges, 0, 0},
      int64_vector(kOp, "start", start, n),
      int64_vector(kOp, "id", id, n),
      int64_vector(kOp, "root", root, n),
      int64_vector(kOp, "column_time", column_time, n),
      n,
      read_stream(kOp, key, call_id, static_cast<uint32_t>(relation)),
      read_frontier_options(time_window, temporal_strategy,
                            edge_time.has_value(), replace),
      threads_of(num_threads)};
  FrontierSampler sampler(args);
  Tensor out_indptr = pooled_vector(n + 1);
  int64_t* begin = out_indptr.mutable_data_ptr<int64_t>();
  check_status(sampler.count(begin), num_edges);
  Tensor edge = pooled_vector(begin[n]);
  check_status(sampler.select(begin, edge.mutable_data_ptr<int64_t>()),
               num_edges);
  return {out_indptr, edge};
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gsample, CPU, m) {
  m.impl("sample_frontier", TORCH_BOX(&sample_frontier));
}

}  // namespace gsample
