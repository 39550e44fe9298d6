// The operator last_neighbors on the CPU.
#include "../cpu/last_neighbors.h"

#include <torch/csrc/stable/library.h>

#include <optional>
#include <tuple>

#include "check.h"
#include "output_pool.h"

namespace gsample {

namespace {

constexpr const char* kOp = "last_neighbors";

void check_ids(const std::optional<Tensor>& edge_id, int64_t num_edges) {
  if (!edge_id)
    return;
  const bool narrow = edge_id->scalar_type() == ScalarType::Int;
  check_vector(kOp, "edge_id", *edge_id,
               narrow ? ScalarType::Int : ScalarType::Long);
  check_size(kOp, "edge_id", *edge_id, num_edges);
}

void check_columns(const Tensor& cols, int64_t num_cols) {
  const int64_t* v = cols.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < cols.numel(); ++i)
    STD_TORCH_CHECK(v[i] >= -1 && v[i] < num_cols, kOp,
                    ": 'cols' must be in [-1, ", num_cols, ") (got ", v[i],
                    " at position ", i, ")");
}

std::tuple<Tensor, Tensor, Tensor> last_neighbors_op(
    Tensor indptr,
    Tensor indices,
    Tensor edge_time,
    Tensor cols,
    Tensor until,
    int64_t k,
    std::optional<Tensor> edge_id,
    std::optional<int64_t> time_window,
    bool closed_start,
    bool closed_end,
    bool ascending,
    bool return_edge,
    int64_t num_threads) {
  check_matrix(kOp, indptr, indices);
  const int64_t n = cols.numel(), num_edges = indices.numel();
  STD_TORCH_CHECK(k >= 0, kOp, ": 'k' must not be negative (got ", k, ")");
  STD_TORCH_CHECK(!time_window || *time_window >= 0, kOp,
                  ": 'time_window' must not be negative");
  check_rows_fit(kOp, "k", k, multiply_sizes(n, sizeof(int64_t)));
  check_ids(edge_id, num_edges);
  const bool narrow = edge_id && edge_id->scalar_type() == ScalarType::Int;
  const bool wide = edge_id && !narrow;
  Tensor neighbor = pooled_tensor({n, k}, indices.scalar_type(),
                                  static_cast<int64_t>(indices.element_size()));
  const int64_t slots = return_edge ? k : 0;
  Tensor edge = pooled_tensor({n, slots}, ScalarType::Long, sizeof(int64_t));
  Tensor time = pooled_tensor({n, k}, ScalarType::Long, sizeof(int64_t));
  const Status status = dispatch_graph(
      kOp, indptr.scalar_type(), indices.scalar_type(),
      [&](auto indptr_type, auto index_type) {
        using indptr_t = decltype(indptr_type);
        using index_t = decltype(index_type);
        const LastNeighborsArgs<indptr_t, index_t> args{
            indptr.const_data_ptr<indptr_t>(),
            indices.const_data_ptr<index_t>(),
            int64_vector(kOp, "edge_time", edge_time, num_edges),
            narrow ? edge_id->const_data_ptr<int32_t>() : nullptr,
            wide ? edge_id->const_data_ptr<int64_t>() : nullptr,
            int64_vector(kOp, "cols", cols, n),
            int64_vector(kOp, "until", until, n),
            indptr.numel() - 1,
            num_edges,
            n,
            k,
            time_window.has_value(),
            time_window.value_or(0),
            closed_start,
            closed_end,
            ascending,
            threads_of(num_threads)};
        return last_neighbors(
            args, neighbor.mutable_data_ptr<index_t>(),
            return_edge ? edge.mutable_data_ptr<int64_t>() : nullptr,
            time.mutable_data_ptr<int64_t>());
      });
  STD_TORCH_CHECK(status != Status::kInterrupted, kOp, ": interrupted");
  if (status == Status::kFault)
    check_columns(cols, indptr.numel() - 1);
  STD_TORCH_CHECK(status == Status::kDone, kOp,
                  ": 'indptr' must ascend from 0 to the number of edges");
  return {neighbor, edge, time};
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gsample, CPU, m) {
  m.impl("last_neighbors", TORCH_BOX(&last_neighbors_op));
}

}  // namespace gsample
