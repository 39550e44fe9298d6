// The operators of sparse matrices on the CPU.
#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <tuple>
#include <vector>

#include "../cpu/draws.h"
#include "../cpu/has_edges.h"
#include "../cpu/mask_columns.h"
#include "../cpu/slice_matrix.h"
#include "check.h"
#include "output_pool.h"

namespace gsample {

namespace {

Tensor pooled_like(const Tensor& tensor, int64_t size) {
  return pooled_tensor({size}, tensor.scalar_type(), tensor.element_size());
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

std::tuple<Tensor, Tensor> mask_columns_op(Tensor indptr, Tensor mask) {
  constexpr int64_t kGrain = 16384;  // fewest edges of a thread
  const char* op = "mask_columns";
  const bool narrow = indptr.scalar_type() == ScalarType::Int;
  check_vector(op, "indptr", indptr,
               narrow ? ScalarType::Int : ScalarType::Long);
  check_vector(op, "mask", mask, ScalarType::Bool);
  STD_TORCH_CHECK(indptr.numel() > 0, op, ": 'indptr' must not be empty");
  const int64_t n = indptr.numel() - 1, num_edges = mask.numel();
  const int threads = static_cast<int>(std::max<int64_t>(
      1, std::min<int64_t>(max_threads(), num_edges / kGrain)));
  const bool* data = mask.const_data_ptr<bool>();
  Tensor out_indptr = pooled_like(indptr, n + 1), edge;
  const auto call = [&](auto indptr_type) {
    using indptr_t = decltype(indptr_type);
    const indptr_t* begin = indptr.const_data_ptr<indptr_t>();
    indptr_t* out = out_indptr.mutable_data_ptr<indptr_t>();
    STD_TORCH_CHECK(count_masked(begin, data, n, num_edges, threads, out), op,
                    ": 'indptr' must ascend from 0 to the ", num_edges,
                    " elements of 'mask'");
    edge = pooled_vector(out[n]);
    select_masked(begin, data, n, out, threads,
                  edge.mutable_data_ptr<int64_t>());
  };
  narrow ? call(int32_t{}) : call(int64_t{});
  return {out_indptr, edge};
}

// The row slice of each batch, in its columns.
struct RowSliceArgs {
  const char* op;
  const Tensor& indptr;
  const Tensor& indices;
  int64_t num_rows;
  const int64_t* rows;
  const int64_t* cols;  // or null: all columns of a batch
  const Batches& rows_of;
  const Batches& cols_of;
  bool whole;  // each batch has all columns of the matrix
  int threads;
};

template <typename indptr_t, typename index_t>
std::tuple<Tensor, Tensor, Tensor> slice_rows(const RowSliceArgs& args,
                                              indptr_t,
                                              index_t) {
  const Batches &rows = args.rows_of, &cols = args.cols_of;
  const int64_t batches = rows.count, all_cols = args.indptr.numel() - 1;
  // A single batch runs on all threads and writes its pointers in place; of
  // several batches, each has one thread and its own array.
  const bool alone = batches == 1;
  Tensor out_indptr = pooled_like(args.indptr, cols.start[batches] + 1);
  indptr_t* to = out_indptr.mutable_data_ptr<indptr_t>();
  std::vector<Matrix<indptr_t, index_t>> matrix;
  std::vector<RowSlice<indptr_t, index_t>> slice;
  std::vector<std::vector<indptr_t>> begin(batches);
  matrix.reserve(batches);
  slice.reserve(batches);
  for (int64_t b = 0; b < batches; ++b) {
    matrix.push_back({args.indptr.const_data_ptr<indptr_t>() +
                          (args.whole ? 0 : cols.start[b]),
                      args.indices.const_data_ptr<index_t>(), args.num_rows,
                      args.whole ? all_cols : cols.size(b),
                      args.indices.numel()});
    slice.emplace_back(matrix[b], args.rows + rows.start[b], rows.size(b),
                       args.cols ? args.cols + cols.start[b] : nullptr,
                       cols.size(b), alone ? args.threads : 1);
  }
  const auto pointers = [&](int64_t b) { return alone ? to : begin[b].data(); };
  std::atomic<bool> interrupted{false}, valid{true};
  parallel_items(batches, args.threads, [&](int64_t b) {
    if (!alone)
      begin[b].resize(cols.size(b) + 1);
    const Status status = slice[b].find(pointers(b));
    interrupted = interrupted || status == Status::kInterrupted;
    valid = valid && status != Status::kFault;
  });
  STD_TORCH_CHECK(!interrupted, args.op, ": interrupted");
  std::vector<int64_t> before(batches + 1);
  for (int64_t b = 0; valid && b < batches; ++b)
    before[b + 1] = before[b] + pointers(b)[cols.size(b)];
  constexpr indptr_t kMost = std::numeric_limits<indptr_t>::max();
  STD_TORCH_CHECK(
      valid && before[batches] <= static_cast<int64_t>(kMost), args.op,
      ": 'cols' must be in [0, ", all_cols,
      "), 'indptr' must ascend from 0 to the number of edges and be "
      "able to count the edges of the slice");
  Tensor indices = pooled_like(args.indices, before[batches]);
  Tensor edge = pooled_vector(before[batches]);
  index_t* index = indices.mutable_data_ptr<index_t>();
  int64_t* edges = edge.mutable_data_ptr<int64_t>();
  to[0] = 0;
  parallel_items(batches, args.threads, [&](int64_t b) {
    slice[b].write(pointers(b), index + before[b], edges + before[b]);
    for (size_t v = 1; v < begin[b].size(); ++v)
      to[cols.start[b] + v] =
          static_cast<indptr_t>(before[b] + static_cast<int64_t>(begin[b][v]));
    for (int64_t i = before[b]; rows.start[b] != 0 && i < before[b + 1]; ++i)
      index[i] += static_cast<index_t>(rows.start[b]);
  });
  return {out_indptr, indices, edge};
}

std::tuple<Tensor, Tensor, Tensor> slice_rows_op(Tensor indptr,
                                                 Tensor indices,
                                                 int64_t num_rows,
                                                 Tensor rows,
                                                 std::optional<Tensor> cols,
                                                 std::optional<Tensor> row_ptr,
                                                 std::optional<Tensor> col_ptr,
                                                 bool whole,
                                                 int64_t num_threads) {
  const char* op = "slice_rows";
  check_matrix(op, indptr, indices);
  const int64_t n = rows.numel(), all_cols = indptr.numel() - 1;
  STD_TORCH_CHECK(n <= INT32_MAX, op,
                  ": 'rows' must have less than 2^31 elements (got ", n, ")");
  const int64_t batches = check_slices(op, row_ptr, cols, col_ptr, whole);
  const int64_t num_cols = cols    ? cols->numel()
                           : whole ? multiply_sizes(all_cols, batches)
                                   : all_cols;
  const int64_t* wanted = int64_vector(op, "rows", rows, n);
  for (int64_t i = 0; i < n; ++i)
    STD_TORCH_CHECK(wanted[i] >= 0 && wanted[i] < num_rows, op,
                    ": 'rows' must be in [0, ", num_rows, ") (got ", wanted[i],
                    " at position ", i, ")");
  const Batches rows_of(op, "row_ptr", row_ptr, n);
  const Batches cols_of(op, "col_ptr", col_ptr, num_cols);
  const int64_t* wanted_cols = int64_vector(op, "cols", cols, num_cols);
  for (int64_t b = 0; whole && !cols && b < batches; ++b)
    STD_TORCH_CHECK(cols_of.start[b] == b * all_cols, op,
                    ": 'col_ptr' must assign all columns to each batch");
  const RowSliceArgs args{
      op,          indptr,  indices, num_rows, wanted,
      wanted_cols, rows_of, cols_of, whole,    threads_of(num_threads)};
  return dispatch_graph(op, indptr.scalar_type(), indices.scalar_type(),
                        [&](auto indptr_type, auto index_type) {
                          return slice_rows(args, indptr_type, index_type);
                        });
}

Tensor has_edges_op(Tensor indptr,
                    Tensor indices,
                    Tensor ptr,
                    Tensor rows,
                    std::optional<Tensor> cols,
                    std::optional<int64_t> num_rows,
                    int64_t num_threads) {
  const char* op = "has_edges";
  check_matrix(op, indptr, indices);
  const int64_t num_cols = indptr.numel() - 1;
  const int64_t n = cols ? cols->numel() : num_cols;
  check_vector(op, "ptr", ptr, indptr.scalar_type());
  check_size(op, "ptr", ptr, n + 1);
  check_vector(op, "rows", rows, indices.scalar_type());
  const int64_t* wanted = int64_vector(op, "cols", cols, n);
  Tensor out = pooled_tensor({rows.numel()}, ScalarType::Bool, sizeof(bool));
  dispatch_graph(
      op, indptr.scalar_type(), indices.scalar_type(),
      [&](auto indptr_type, auto index_type) {
        using indptr_t = decltype(indptr_type);
        using index_t = decltype(index_type);
        const HasEdgesArgs<indptr_t, index_t> args{
            {indptr.const_data_ptr<indptr_t>(),
             indices.const_data_ptr<index_t>(), num_rows.value_or(0), num_cols,
             indices.numel()},
            num_rows.has_value(),
            wanted,
            n,
            ptr.const_data_ptr<indptr_t>(),
            rows.const_data_ptr<index_t>(),
            rows.numel(),
            threads_of(num_threads)};
        const Status status = has_edges(args, out.mutable_data_ptr<bool>());
        STD_TORCH_CHECK(status != Status::kInterrupted, op, ": interrupted");
        STD_TORCH_CHECK(
            status == Status::kDone, op, ": 'cols' must be in [0, ", num_cols,
            "), all rows in [0, ", num_rows.value_or(INT64_MAX),
            "), and 'indptr' and 'ptr' must ascend from 0 to the numbers of "
            "edges and of 'rows'");
      });
  return out;
}

// Uniform doubles in [0, 1): the high 53 bits of each id's draw.
Tensor random_uniform_op(Tensor id, Tensor key, int64_t call_id) {
  const char* op = "random_uniform";
  const int64_t n = id.numel();
  const int64_t* ids = int64_vector(op, "id", id, n);
  const uint64_t stream = read_stream(op, key, call_id, kRandomUniform);
  Tensor out = pooled_tensor({n}, ScalarType::Double, sizeof(double));
  double* to = out.mutable_data_ptr<double>();
  constexpr int kBlock = 256;
  parallel_ranges(n, 4096, max_threads(), [&](int64_t begin, int64_t end) {
    const uint64_t root[kBlock] = {};
    uint64_t id[kBlock] = {}, draw[2 * kBlock];
    for (int64_t i = begin; i < end; i += kBlock) {
      const int lanes = static_cast<int>(std::min<int64_t>(kBlock, end - i));
      std::copy(ids + i, ids + i + lanes, id);
      draw_lanes(stream, root, id, lanes, 1, kBlock, draw);
      for (int lane = 0; lane < lanes; ++lane)
        to[i + lane] = unit_interval(draw[lane]);
    }
  });
  return out;
}

// Draws (seed, 0, 0) from torch's default generator. `state` only tells
// compilers that a call has a side effect: threads share it, so nothing is
// written to it.
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
  m.impl("mask_columns", TORCH_BOX(&mask_columns_op));
  m.impl("slice_rows", TORCH_BOX(&slice_rows_op));
  m.impl("has_edges", TORCH_BOX(&has_edges_op));
  m.impl("random_uniform", TORCH_BOX(&random_uniform_op));
  m.impl("next_key", TORCH_BOX(&next_key_op));
}

}  // namespace gsample
