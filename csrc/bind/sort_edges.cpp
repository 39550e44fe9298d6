// Layouts of few edges for vertex programs, on the CPU.
#include "../cpu/sort_edges.h"

#include <torch/csrc/stable/library.h>

#include <tuple>

#include "../cpu/formats.h"
#include "check.h"

namespace gsample {

namespace {

constexpr ScalarType kInt = ScalarType::Int;

void check_vertices(const char* op, const char* name, int64_t size) {
  STD_TORCH_CHECK(size >= 0 && size < INT32_MAX, op, ": '", name,
                  "' must be in [0, 2^31 - 1) (got ", size, ")");
}

Tensor number(int64_t value) {
  Tensor out = empty_vector(1);
  *out.mutable_data_ptr<int64_t>() = value;
  return out;
}

template <typename input_t>
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> sort_edges(
    const Edges<input_t>& edges) {
  Tensor indptr = empty_vector(edges.num_cols + 1, kInt);
  Tensor degree = empty_vector(edges.num_cols, ScalarType::Float);
  int32_t* start = indptr.mutable_data_ptr<int32_t>();
  const int64_t most =
      count_edges(edges, start, degree.mutable_data_ptr<float>());
  const int64_t size = most < 0 ? 0 : start[edges.num_cols];
  Tensor indices = empty_vector(size, kInt), edge_id = empty_vector(size, kInt);
  if (most >= 0)
    place_edges(edges, start, indices.mutable_data_ptr<int32_t>(),
                edge_id.mutable_data_ptr<int32_t>());
  return {indptr, indices, edge_id, degree, number(most)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> sort_edges_op(
    Tensor edge_index,
    int64_t num_rows,
    int64_t num_cols,
    int64_t loops) {
  const char* op = "sort_edges";
  STD_TORCH_CHECK(edge_index.dim() == 2 && edge_index.size(0) == 2 &&
                      edge_index.is_contiguous(),
                  op, ": 'edge_index' must be contiguous, [2, num_edges]");
  check_vertices(op, "num_rows", num_rows);
  check_vertices(op, "num_cols", num_cols);
  const int64_t size = edge_index.size(1);
  // The id of the last loop is less than size + num_cols.
  STD_TORCH_CHECK(size < INT32_MAX - num_cols, op,
                  ": 'edge_index' has too many edges for int32 (got ", size,
                  ")");
  STD_TORCH_CHECK(loops >= 0 && loops <= 2, op,
                  ": 'loops' must be 0, 1 or 2 (got ", loops, ")");
  const auto call = [&](const auto* row) {
    return sort_edges(Edges<std::decay_t<decltype(*row)>>{
        row, row + size, size, num_rows, num_cols, static_cast<Loops>(loops)});
  };
  if (edge_index.scalar_type() == kInt)
    return call(edge_index.const_data_ptr<int32_t>());
  STD_TORCH_CHECK(edge_index.scalar_type() == ScalarType::Long, op,
                  ": 'edge_index' must be int32 or int64");
  return call(edge_index.const_data_ptr<int64_t>());
}

std::tuple<Tensor, Tensor, Tensor, Tensor> transpose_columns_op(
    Tensor indptr,
    Tensor indices,
    std::optional<Tensor> edge_id,
    int64_t num_rows) {
  const char* op = "transpose_columns";
  check_vector(op, "indptr", indptr, kInt);
  check_vector(op, "indices", indices, kInt);
  const int64_t num_cols = indptr.numel() - 1, size = indices.numel();
  check_vertices(op, "num_rows", num_rows);
  STD_TORCH_CHECK(num_cols >= 0, op, ": 'indptr' must not be empty");
  const int32_t* start = indptr.const_data_ptr<int32_t>();
  const int32_t* rows = indices.const_data_ptr<int32_t>();
  const CscFault fault = check_csc(start, rows, num_cols, size, num_rows);
  STD_TORCH_CHECK(fault.rule == CscFault::kNone, op,
                  ": 'indptr' must ascend from 0 to the ", size,
                  " edges, and 'indices' be in [0, ", num_rows, ")");
  const int32_t* id = nullptr;
  if (edge_id) {
    check_vector(op, "edge_id", *edge_id, kInt);
    check_size(op, "edge_id", *edge_id, size);
    id = edge_id->const_data_ptr<int32_t>();
  }
  Tensor row_indptr = empty_vector(num_rows + 1, kInt);
  Tensor cols = empty_vector(size, kInt), ids = empty_vector(size, kInt);
  const int64_t most = transpose_columns(start, rows, id, num_cols, num_rows,
                                         row_indptr.mutable_data_ptr<int32_t>(),
                                         cols.mutable_data_ptr<int32_t>(),
                                         ids.mutable_data_ptr<int32_t>());
  return {row_indptr, cols, ids, number(most)};
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gsample, CPU, m) {
  m.impl("sort_edges", TORCH_BOX(&sort_edges_op));
  m.impl("transpose_columns", TORCH_BOX(&transpose_columns_op));
}

}  // namespace gsample
