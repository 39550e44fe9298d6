// The operators that match rows within columns on a GPU: slices and induced
// subgraphs.
#include <torch/csrc/stable/library.h>

#include <tuple>
#include <utility>

#include "../cuda/match_rows.h"
#include "aten_cuda.h"
#include "matrix_cuda.h"

namespace gsample {

namespace {

using Slice = std::tuple<Tensor, Tensor, Tensor>;

// The batch or tree of rows or columns: `batch` has one entry each, or `ptr`
// [batches + 1] is the start of each batch. Null: one batch.
struct BatchOf {
  const int64_t* batch = nullptr;
  const int64_t* ptr = nullptr;
  int64_t batches = 0;
};

// A list of rows and the names of arguments, for errors.
struct RowList {
  const char* op;
  const char* name;
  const char* cols_name;
  Tensor rows;
  BatchOf of;
};

void check_match(const RowList& list,
                 const Report& report,
                 int64_t num_rows,
                 int64_t num_cols) {
  STD_TORCH_CHECK(report.fault != Report::kRow, list.op, ": '", list.name,
                  "' must be in [0, ", num_rows, ") (got ", report.value,
                  " at position ", report.where, ")");
  STD_TORCH_CHECK(report.fault != Report::kPtr, list.op,
                  ": 'row_ptr' and 'col_ptr' must ascend from 0 to the numbers "
                  "of rows and columns, of which a batch has all if 'cols' is "
                  "not given (they do not at position ",
                  report.where, ")");
  check_report(list.op, report, list.cols_name, num_cols);
}

// Columns of a matrix in which rows are matched.
struct Columns {
  const Tensor& indptr;
  const Tensor& indices;
  int64_t num_rows;
  const int64_t* cols;  // or null: all columns, in each batch
  int64_t num_cols;
  BatchOf of;
  bool whole = false;  // each batch has all columns
};

// Sorted keys of a list of rows, and their positions in the list.
std::pair<Tensor, Tensor> sort_rows(const RowList& list,
                                    int64_t num_rows,
                                    DeviceReport& report,
                                    const DeviceScope& scope) {
  const int64_t n = list.rows.numel();
  Tensor key = device_vector("key", list.rows, n);
  row_keys({list.rows.const_data_ptr<int64_t>(), n, num_rows, list.of.batch,
            list.of.ptr, list.of.batches, key.mutable_data_ptr<int64_t>(),
            report.get()},
           scope.stream());
  return stable_sort(key, scope);
}

// Calls write(args, size) for the matches; args lack outputs.
template <typename indptr_t, typename index_t, typename row_t, typename write_t>
void match_rows(const Columns& columns,
                const RowList& list,
                bool repeats,
                indptr_t* out_indptr,
                const DeviceScope& scope,
                const write_t& write) {
  const Tensor& like = list.rows;
  DeviceReport report(like);
  const auto [key, place] = sort_rows(list, columns.num_rows, report, scope);
  MatchRowsCuda<indptr_t, index_t, row_t> args{};
  args.indptr = readable<indptr_t>(list.op, columns.indptr, like, list.name);
  args.indices = readable<index_t>(list.op, columns.indices, like, list.name);
  args.num_rows = columns.num_rows;
  args.all_cols = columns.indptr.numel() - 1;
  args.num_edges = columns.indices.numel();
  args.cols = columns.cols;
  args.num_cols = columns.num_cols;
  args.batch = columns.of.batch;
  args.ptr = columns.of.ptr;
  args.batches = columns.of.batches;
  args.key = key.const_data_ptr<int64_t>();
  args.place = place.const_data_ptr<int64_t>();
  args.num_keys = key.numel();
  args.whole = columns.whole;
  args.repeats = repeats;
  args.out_indptr = out_indptr;
  args.report = report.get();
  Tensor begin = device_vector("begin", like, columns.num_cols + 1);
  args.begin = begin.mutable_data_ptr<int64_t>();
  const LaunchShape shape = match_rows_shape(args);
  Tensor totals = device_vector("totals", like, shape.blocks);
  args.totals = totals.mutable_data_ptr<int64_t>();
  match_rows_count(args, shape, scope.stream());
  const Report found = report.read(scope);
  check_match(list, found, columns.num_rows, args.all_cols);
  write(args, found.size);
  match_rows_write(args, shape, scope.stream());
}

Slice slice(const Columns& columns, const RowList& list) {
  const Tensor& like = list.rows;
  const DeviceScope scope(list.op, like);
  const Tensor& indptr = columns.indptr;
  const Tensor& indices = columns.indices;
  STD_TORCH_CHECK(list.rows.numel() <= INT32_MAX, list.op,
                  ": 'rows' must have less than 2^31 elements (got ",
                  list.rows.numel(), ")");
  Tensor out_indptr =
      device_vector("indptr", like, columns.num_cols + 1, indptr.scalar_type());
  Tensor row, edge;
  dispatch_graph(
      list.op, indptr.scalar_type(), indices.scalar_type(),
      [&](auto indptr_type, auto index_type) {
        using indptr_t = decltype(indptr_type);
        using index_t = decltype(index_type);
        match_rows<indptr_t, index_t, index_t>(
            columns, list, true, out_indptr.mutable_data_ptr<indptr_t>(), scope,
            [&](auto& args, int64_t size) {
              row = device_vector("row", like, size, indices.scalar_type());
              edge = device_vector("edge", like, size);
              args.row = row.template mutable_data_ptr<index_t>();
              args.edge = edge.template mutable_data_ptr<int64_t>();
            });
      });
  return {out_indptr, row, edge};
}

Slice slice_rows_cuda(Tensor indptr,
                      Tensor indices,
                      int64_t num_rows,
                      Tensor rows,
                      std::optional<Tensor> cols,
                      std::optional<Tensor> row_ptr,
                      std::optional<Tensor> col_ptr,
                      bool whole,
                      int64_t) {
  const char* op = "slice_rows";
  check_matrix(op, indptr, indices);
  const int64_t n = rows.numel(), all_cols = indptr.numel() - 1;
  const int64_t batches = check_slices(op, row_ptr, cols, col_ptr, whole);
  int64_vector(op, "rows", rows, n);
  const int64_t num_cols = cols    ? cols->numel()
                           : whole ? all_cols * batches
                                   : all_cols;
  const int64_t* wanted =
      device_int64(op, "cols", cols, num_cols, rows, "rows");
  const auto of = [&](const char* name, const auto& ptr, int64_t size) {
    return ptr ? BatchOf{nullptr,
                         device_ptr(op, name, *ptr, size, rows, "rows"),
                         batches}
               : BatchOf{};
  };
  const BatchOf row_of = of("row_ptr", row_ptr, n),
                col_of = of("col_ptr", col_ptr, num_cols);
  return slice({indptr, indices, num_rows, wanted, num_cols, col_of,
                whole && row_ptr && !cols.has_value()},
               {op, "rows", "cols", rows, row_of});
}

Slice induce_subgraph_cuda(Tensor indptr,
                           Tensor indices,
                           int64_t num_rows,
                           Tensor row_nodes,
                           Tensor col_nodes,
                           std::optional<Tensor> row_batch,
                           std::optional<Tensor> col_batch,
                           int64_t) {
  const char* op = "induce_subgraph";
  check_matrix(op, indptr, indices);
  STD_TORCH_CHECK(row_batch.has_value() == col_batch.has_value(), op,
                  ": 'row_batch' and 'col_batch' must be given together");
  const int64_t n = row_nodes.numel(), m = col_nodes.numel();
  int64_vector(op, "row_nodes", row_nodes, n);
  const auto there = [&](const char* name, const auto& tensor, int64_t size) {
    return device_int64(op, name, tensor, size, row_nodes, "row_nodes");
  };
  const int64_t* wanted = there("col_nodes", col_nodes, m);
  const BatchOf row_of{there("row_batch", row_batch, n)};
  const BatchOf col_of{there("col_batch", col_batch, m)};
  const RowList list{op, "row_nodes", "col_nodes", row_nodes, row_of};
  const Columns columns{indptr, indices, num_rows, wanted, m, col_of};
  const DeviceScope scope(op, row_nodes);
  Tensor row, col, edge;
  dispatch_graph(op, indptr.scalar_type(), indices.scalar_type(),
                 [&](auto indptr_type, auto index_type) {
                   using indptr_t = decltype(indptr_type);
                   using index_t = decltype(index_type);
                   indptr_t* const none = nullptr;
                   match_rows<indptr_t, index_t, int64_t>(
                       columns, list, false, none, scope,
                       [&](auto& args, int64_t size) {
                         row = device_vector("row", row_nodes, size);
                         col = device_vector("col", row_nodes, size);
                         edge = device_vector("edge", row_nodes, size);
                         args.row = row.template mutable_data_ptr<int64_t>();
                         args.col = col.template mutable_data_ptr<int64_t>();
                         args.edge = edge.template mutable_data_ptr<int64_t>();
                       });
                 });
  return {row, col, edge};
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(GSAMPLE_CUDA_LIBRARY, GSAMPLE_CUDA_KEY, m) {
  m.impl("slice_rows", TORCH_BOX(&slice_rows_cuda));
  m.impl("induce_subgraph", TORCH_BOX(&induce_subgraph_cuda));
}

}  // namespace gsample
