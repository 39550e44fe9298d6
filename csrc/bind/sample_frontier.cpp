// The operator sample_frontier on the CPU: checks, arguments and allocation
// around cpu/sample_frontier.h.
#include "sample_frontier.h"

#include <torch/csrc/stable/library.h>

#include <tuple>

#include "../cpu/sample_frontier.h"
#include "output_pool.h"

namespace gsample {

namespace {

void check_status(Status status, int64_t num_edges) {
  STD_TORCH_CHECK(status != Status::kInterrupted, kFrontierOp, ": interrupted");
  STD_TORCH_CHECK(status == Status::kDone, kFrontierOp,
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
                                           int64_t temporal_strategy,
                                           bool replace,
                                           int64_t num_threads) {
  const int64_t n = indptr.numel() - 1;
  STD_TORCH_CHECK(n >= 0, kFrontierOp, ": 'indptr' must not be empty");
  const int64_t* offsets = int64_vector(kFrontierOp, "indptr", indptr, n + 1);
  const int64_t num_edges = offsets[n];
  STD_TORCH_CHECK(offsets[0] == 0 && num_edges >= 0, kFrontierOp,
                  ": 'indptr' must ascend from 0 (got ", offsets[0], " and ",
                  num_edges, ")");
  check_frontier(relation, edge_time, column_time, k, replace, n);
  const int64_t* weight = int64_vector(kFrontierOp, "cum_weight", cum_weight,
                                       cum_weight_size(num_edges, n));
  const int64_t* time =
      int64_vector(kFrontierOp, "edge_time", edge_time, num_edges);
  const SampleFrontierArgs args{
      {offsets, nullptr, weight, time, &k, num_edges, 0, 0},
      int64_vector(kFrontierOp, "start", start, n),
      int64_vector(kFrontierOp, "id", id, n),
      int64_vector(kFrontierOp, "root", root, n),
      int64_vector(kFrontierOp, "column_time", column_time, n),
      n,
      read_stream(kFrontierOp, key, call_id, static_cast<uint32_t>(relation)),
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
