// The operators of sparse matrices on the CPU.
#include <torch/csrc/stable/library.h>

#include <array>
#include <tuple>
#include <vector>

#include "../cpu/sample_matrix.h"
#include "../cpu/slice_matrix.h"
#include "../cpu/unique_nodes.h"
#include "check.h"
#include "output_pool.h"

namespace gsample {

namespace {

Tensor pooled_like(const Tensor& tensor, int64_t size) {
  return pooled_tensor({size}, tensor.scalar_type(), tensor.element_size());
}

void check_status(const char* op, Status status) {
  STD_TORCH_CHECK(status != Status::kInterrupted, op, ": interrupted");
  STD_TORCH_CHECK(status != Status::kFault, op,
                  ": 'indptr' must ascend from 0 to the number of edges");
}

// Reads the last number of `indptr`, whatever its type.
int64_t num_edges_of(const Tensor& indptr) {
  const int64_t last = indptr.numel() - 1;
  return indptr.scalar_type() == ScalarType::Int
             ? indptr.const_data_ptr<int32_t>()[last]
             : indptr.const_data_ptr<int64_t>()[last];
}

std::tuple<Tensor, Tensor, Tensor> slice_cols_op(Tensor indptr,
                                                 Tensor indices,
                                                 Tensor cols,
                                                 int64_t num_threads) {
  const char* op = "slice_cols";
  check_matrix(op, indptr, indices);
  const int64_t n = cols.numel(), num_cols = indptr.numel() - 1;
  const int64_t* wanted = int64_vector(op, "cols", cols, n);
  const int threads = threads_of(num_threads);
  Tensor out_indptr = pooled_like(indptr, n + 1);
  Tensor out_indices, edge;
  dispatch_graph(
      op, indptr.scalar_type(), indices.scalar_type(),
      [&](auto indptr_type, auto index_type) {
        using indptr_t = decltype(indptr_type);
        using index_t = decltype(index_type);
        const Matrix<indptr_t, index_t> matrix{
            indptr.const_data_ptr<indptr_t>(),
            indices.const_data_ptr<index_t>(), 0, num_cols, indices.numel()};
        indptr_t* begin = out_indptr.mutable_data_ptr<indptr_t>();
        const Status status =
            slice_cols_indptr(matrix, wanted, n, begin, threads);
        STD_TORCH_CHECK(status == Status::kDone, op, ": 'cols' must be in [0, ",
                        num_cols,
                        "), 'indptr' must ascend from 0 to the number of "
                        "edges and be able to count the edges of the slice");
        out_indices = pooled_like(indices, begin[n]);
        edge = pooled_vector(begin[n]);
        slice_cols_edges(matrix, wanted, n, begin,
                         out_indices.mutable_data_ptr<index_t>(),
                         edge.mutable_data_ptr<int64_t>(), threads);
      });
  return {out_indptr, out_indices, edge};
}

std::tuple<Tensor, Tensor, Tensor> slice_rows_op(Tensor indptr,
                                                 Tensor indices,
                                                 int64_t num_rows,
                                                 Tensor rows,
                                                 std::optional<Tensor> cols,
                                                 int64_t num_threads) {
  const char* op = "slice_rows";
  check_matrix(op, indptr, indices);
  const int64_t n = rows.numel(), all_cols = indptr.numel() - 1;
  const int64_t* wanted = int64_vector(op, "rows", rows, n);
  STD_TORCH_CHECK(n <= INT32_MAX, op,
                  ": 'rows' must have less than 2^31 elements (got ", n, ")");
  const int64_t num_cols = cols.has_value() ? cols->numel() : all_cols;
  const int64_t* wanted_cols = int64_vector(op, "cols", cols, num_cols);
  Tensor out_indptr = pooled_like(indptr, num_cols + 1);
  Tensor out_indices, edge;
  dispatch_graph(
      op, indptr.scalar_type(), indices.scalar_type(),
      [&](auto indptr_type, auto index_type) {
        using indptr_t = decltype(indptr_type);
        using index_t = decltype(index_type);
        const Matrix<indptr_t, index_t> matrix{
            indptr.const_data_ptr<indptr_t>(),
            indices.const_data_ptr<index_t>(), num_rows, all_cols,
            indices.numel()};
        indptr_t* begin = out_indptr.mutable_data_ptr<indptr_t>();
        RowSlice<indptr_t, index_t> slice(matrix, wanted, n, wanted_cols,
                                          num_cols, threads_of(num_threads));
        const Status status = slice.find(begin);
        STD_TORCH_CHECK(status != Status::kInterrupted, op, ": interrupted");
        STD_TORCH_CHECK(
            status == Status::kDone, op, ": 'cols' must be in [0, ", all_cols,
            "), 'indptr' must ascend from 0 to the number of edges and be "
            "able to count the edges of the slice");
        out_indices = pooled_like(indices, begin[num_cols]);
        edge = pooled_vector(begin[num_cols]);
        slice.write(begin, out_indices.mutable_data_ptr<index_t>(),
                    edge.mutable_data_ptr<int64_t>());
      });
  return {out_indptr, out_indices, edge};
}

template <typename indptr_t>
std::tuple<Tensor, Tensor> sample_columns(const char* op,
                                          const SampleColsArgs<indptr_t>& args,
                                          Tensor out_indptr) {
  indptr_t* begin = out_indptr.mutable_data_ptr<indptr_t>();
  const Status status = sample_cols_indptr(args, begin);
  STD_TORCH_CHECK(status != Status::kFault || args.cols == nullptr, op,
                  ": 'cols' must be in [0, ", args.all_cols,
                  "), 'indptr' must ascend from 0 to the number of edges and "
                  "be able to count the edges of the sample");
  check_status(op, status);
  Tensor edge = pooled_vector(begin[args.num_cols]);
  check_status(
      op, sample_cols_edges(args, begin, edge.mutable_data_ptr<int64_t>()));
  return {out_indptr, edge};
}

std::tuple<Tensor, Tensor> sample_cols_op(Tensor indptr,
                                          int64_t k,
                                          Tensor key,
                                          int64_t call_id,
                                          std::optional<Tensor> cols,
                                          std::optional<Tensor> id,
                                          std::optional<Tensor> cum_weight,
                                          bool replace,
                                          int64_t num_threads,
                                          std::optional<Tensor> ptr) {
  const char* op = "sample_cols";
  check_vector(op, "indptr", indptr, indptr.scalar_type());
  STD_TORCH_CHECK(indptr.numel() > 0, op, ": 'indptr' must not be empty");
  STD_TORCH_CHECK(k >= -1, op, ": 'k' must be -1 or more (got ", k, ")");
  STD_TORCH_CHECK(!replace || k <= INT32_MAX, op,
                  ": 'k' must be less than 2^31 with replacement (got ", k,
                  ")");
  STD_TORCH_CHECK(indptr.scalar_type() == ScalarType::Int ||
                      indptr.scalar_type() == ScalarType::Long,
                  op, ": 'indptr' must be int32 or int64");
  const int64_t all_cols = indptr.numel() - 1;
  const int64_t num_edges = num_edges_of(indptr);
  const int64_t n = cols.has_value() ? cols->numel() : all_cols;
  STD_TORCH_CHECK(num_edges >= 0, op, ": 'indptr' must ascend from 0");
  const int64_t* begin = ptr ? read_ptr(op, "ptr", *ptr, n) : nullptr;
  const std::vector<uint64_t> streams =
      read_streams(op, key, ptr ? ptr->numel() - 1 : 1, call_id, 0);
  Tensor out_indptr = pooled_like(indptr, n + 1);
  const auto call = [&](auto indptr_type) {
    using indptr_t = decltype(indptr_type);
    STD_TORCH_CHECK(
        !replace || k <= 0 ||
            n <= static_cast<int64_t>(std::numeric_limits<indptr_t>::max()) / k,
        op, ": 'indptr' must be int64 for ", n, " columns of ", k, " edges");
    return sample_columns(
        op,
        SampleColsArgs<indptr_t>{
            indptr.const_data_ptr<indptr_t>(),
            int64_vector(op, "cols", cols, n), int64_vector(op, "id", id, n),
            int64_vector(op, "cum_weight", cum_weight,
                         cum_weight_size(num_edges, all_cols)),
            n, all_cols, num_edges, k, replace, streams.data(), begin,
            threads_of(num_threads)},
        out_indptr);
  };
  return indptr.scalar_type() == ScalarType::Int ? call(int32_t{})
                                                 : call(int64_t{});
}

Tensor sample_nodes_op(int64_t num_nodes,
                       int64_t k,
                       Tensor key,
                       int64_t call_id,
                       std::optional<Tensor> cum_weight,
                       bool replace,
                       std::optional<Tensor>) {
  const char* op = "sample_nodes";
  STD_TORCH_CHECK(num_nodes >= 0, op, ": 'num_nodes' must not be negative");
  STD_TORCH_CHECK(k >= 0 && k <= INT32_MAX, op,
                  ": 'k' must be in [0, 2^31) (got ", k, ")");
  if (!replace || num_nodes == 0)
    k = std::min(k, num_nodes);
  const int64_t* cum =
      int64_vector(op, "cum_weight", cum_weight, cum_weight_size(num_nodes, 1));
  Tensor out = empty_vector(k);
  const int64_t selected = sample_nodes(
      cum, cum != nullptr && has_zero_weight(cum + num_nodes, 0), num_nodes, k,
      replace, read_stream(op, key, call_id, kSampleNodes),
      out.mutable_data_ptr<int64_t>());
  return selected == k
             ? out
             : torch::stable::clone(torch::stable::narrow(out, 0, 0, selected));
}

std::tuple<Tensor, Tensor> unique_nodes_op(Tensor id,
                                           int64_t num_nodes,
                                           bool sorted) {
  const char* op = "unique_nodes";
  const int64_t n = id.numel();
  const bool narrow = id.scalar_type() == ScalarType::Int;
  check_vector(op, "id", id, narrow ? ScalarType::Int : ScalarType::Long);
  STD_TORCH_CHECK(n <= INT32_MAX, op,
                  ": 'id' must have less than 2^31 elements (got ", n, ")");
  STD_TORCH_CHECK(num_nodes >= 0, op, ": 'num_nodes' must not be negative");
  Tensor node = empty_vector(n), local = pooled_like(id, n);
  const auto call = [&](auto id_type) {
    using id_t = decltype(id_type);
    return unique_nodes(id.const_data_ptr<id_t>(), n, num_nodes, sorted,
                        node.mutable_data_ptr<int64_t>(),
                        local.mutable_data_ptr<id_t>());
  };
  const int64_t size = narrow ? call(int32_t{}) : call(int64_t{});
  STD_TORCH_CHECK(size >= 0, op, ": 'id' must be in [0, ", num_nodes, ")");
  return {torch::stable::clone(torch::stable::narrow(node, 0, 0, size)), local};
}

// Uniform doubles in [0, 1): the 53 high bits of the draw of each id.
Tensor random_uniform_op(Tensor id, Tensor key, int64_t call_id) {
  const char* op = "random_uniform";
  const int64_t n = id.numel();
  const int64_t* ids = int64_vector(op, "id", id, n);
  const uint64_t stream = read_stream(op, key, call_id, kRandomUniform);
  Tensor out = empty_vector(n, ScalarType::Double);
  double* to = out.mutable_data_ptr<double>();
  parallel_ranges(n, 4096, max_threads(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      to[i] =
          unit_interval(Stream{stream, 0, static_cast<uint64_t>(ids[i])}(0));
  });
  return out;
}

// Draws (seed, 0, 0) from torch's default generator. `state` only tells
// compilers that a call changes something: threads share it, so that nothing
// is written there.
Tensor next_key_op(Tensor state) {
  int64_vector("next_key", "state", state, 1);
  std::array<StableIValue, 2> stack{
      torch::stable::detail::from(empty_vector(1)),
      torch::stable::detail::from(std::nullopt)};
  TORCH_ERROR_CODE_CHECK(torch_call_dispatcher(
      "aten::random_", "", stack.data(), TORCH_ABI_VERSION));
  const Tensor seed = torch::stable::detail::to<Tensor>(stack[0]);
  const int64_t row[3] = {seed.const_data_ptr<int64_t>()[0], 0, 0};
  return to_tensor(row, 1, 3);
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gsample, CPU, m) {
  m.impl("slice_cols", TORCH_BOX(&slice_cols_op));
  m.impl("slice_rows", TORCH_BOX(&slice_rows_op));
  m.impl("sample_cols", TORCH_BOX(&sample_cols_op));
  m.impl("sample_nodes", TORCH_BOX(&sample_nodes_op));
  m.impl("unique_nodes", TORCH_BOX(&unique_nodes_op));
  m.impl("random_uniform", TORCH_BOX(&random_uniform_op));
  m.impl("next_key", TORCH_BOX(&next_key_op));
}

}  // namespace gsample
