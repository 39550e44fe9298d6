// The operator sample_frontier on a GPU.
#include <torch/csrc/stable/library.h>

#include <tuple>

#include "../cuda/sample_frontier.h"
#include "../cuda/taken_tree.h"
#include "columns_report_cuda.h"
#include "matrix_cuda.h"
#include "sample_frontier.h"

namespace gsample {

namespace {

// How many edges the columns have, if weights or times say so, or -1.
int64_t known_edges(const std::optional<Tensor>& cum_weight,
                    const std::optional<Tensor>& edge_time,
                    int64_t n) {
  if (edge_time.has_value())
    return edge_time->numel();
  if (!cum_weight.has_value())
    return -1;
  const int64_t num_edges = cum_weight->numel() - cum_weight_size(0, n);
  STD_TORCH_CHECK(num_edges >= 0, kFrontierOp,
                  ": 'cum_weight' must have at least ", cum_weight_size(0, n),
                  " elements (got ", cum_weight->numel(), ")");
  return num_edges;
}

// Selects with `args`, which lack outputs and scratch.
std::tuple<Tensor, Tensor> select(SampleFrontierCuda args,
                                  const Tensor& like,
                                  const DeviceScope& scope) {
  Tensor out_indptr = device_vector("indptr", like, args.n + 1);
  Tensor column = device_vector("column", like, kFrontierWords * args.n);
  ColumnsReport report(like);
  args.out_indptr = out_indptr.mutable_data_ptr<int64_t>();
  args.column = static_cast<SampleColumn*>(column.mutable_data_ptr());
  args.report = report.get();
  args.longest = report.longest();
  const LaunchShape shape = sample_frontier_shape(args);
  Tensor totals = device_vector("totals", like, shape.blocks);
  args.totals = totals.mutable_data_ptr<int64_t>();
  sample_frontier_indptr(args, shape, scope.stream());
  const auto [found, longest] = report.read(scope);
  check_report(kFrontierOp, found, "indptr", 0);
  Tensor edge = device_vector("edge", like, found.size);
  Tensor slots =
      device_vector("slots", like, args.needs_slots() ? found.size : 0);
  static_assert(sizeof(TakenWeight) == 2 * sizeof(int64_t), "two words");
  Tensor taken =
      device_vector("taken", like, args.needs_taken() ? 2 * found.size : 0);
  args.edge = edge.mutable_data_ptr<int64_t>();
  args.lists = slots.mutable_data_ptr<int64_t>();
  args.taken = static_cast<TakenWeight*>(taken.mutable_data_ptr());
  args.tree_words = taken_tree_words(longest);
  args.trees = count_trees(args.n, args.tree_words);
  Tensor tree = device_vector(
      "tree", like, args.needs_trees() ? args.trees * args.tree_words : 0);
  args.tree = static_cast<uint64_t*>(tree.mutable_data_ptr());
  sample_frontier_edges(args, scope.stream());
  return {out_indptr, edge};
}

std::tuple<Tensor, Tensor> sample_frontier_cuda(
    Tensor indptr,
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
    int64_t) {
  const int64_t n = indptr.numel() - 1;
  STD_TORCH_CHECK(n >= 0, kFrontierOp, ": 'indptr' must not be empty");
  check_frontier(relation, edge_time, column_time, k, replace, n);
  const auto vector = [&](const char* name, const auto& tensor, int64_t size) {
    return device_int64(kFrontierOp, name, tensor, size, indptr);
  };
  const int64_t edges = known_edges(cum_weight, edge_time, n);
  SampleFrontierCuda args{};
  args.knows_edges = edges >= 0;
  args.columns.num_edges = edges;
  args.columns.indptr = vector("indptr", indptr, n + 1);
  args.columns.cum_weight = vector("cum_weight", cum_weight,
                                   cum_weight_size(edges >= 0 ? edges : 0, n));
  args.columns.edge_time = vector("edge_time", edge_time, edges);
  args.start = vector("start", start, n);
  args.id = vector("id", id, n);
  args.root = vector("root", root, n);
  args.column_time = vector("column_time", column_time, n);
  args.n = n;
  args.k = k;
  args.stream =
      read_stream(kFrontierOp, key, call_id, static_cast<uint32_t>(relation));
  args.options = read_frontier_options(time_window, temporal_strategy,
                                       edge_time.has_value(), replace);
  return select(args, indptr, DeviceScope(kFrontierOp, indptr));
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(GSAMPLE_CUDA_LIBRARY, GSAMPLE_CUDA_KEY, m) {
  m.impl("sample_frontier", TORCH_BOX(&sample_frontier_cuda));
}

}  // namespace gsample
