// The operators of sparse matrices on a GPU. Where a kernel decides the length
// of an output, one copy of its report brings it to the host.
#include <torch/csrc/stable/library.h>

#include <tuple>

#include "../cuda/random_uniform.h"
#include "../cuda/slice_cols.h"
#include "matrix_cuda.h"

namespace gsample {

namespace {

std::tuple<Tensor, Tensor, Tensor> slice_cols_cuda(Tensor indptr,
                                                   Tensor indices,
                                                   Tensor cols,
                                                   int64_t) {
  const char* op = "slice_cols";
  check_matrix(op, indptr, indices);
  const int64_t n = cols.numel(), num_cols = indptr.numel() - 1;
  const int64_t* wanted = int64_vector(op, "cols", cols, n);
  const DeviceScope scope(op, cols);
  Tensor out_indptr =
      device_vector("indptr", cols, n + 1, indptr.scalar_type());
  Tensor out_indices, edge;
  dispatch_graph(op, indptr.scalar_type(), indices.scalar_type(),
                 [&](auto indptr_type, auto index_type) {
                   using indptr_t = decltype(indptr_type);
                   using index_t = decltype(index_type);
                   SliceColsCuda<indptr_t, index_t> args{};
                   args.indptr = readable<indptr_t>(op, indptr, cols, "cols");
                   args.indices = readable<index_t>(op, indices, cols, "cols");
                   args.num_cols = num_cols;
                   args.num_edges = indices.numel();
                   args.cols = wanted;
                   args.n = n;
                   args.out_indptr = out_indptr.mutable_data_ptr<indptr_t>();
                   DeviceReport report(cols);
                   args.report = report.get();
                   const LaunchShape shape = slice_cols_shape(args);
                   Tensor totals = device_vector("totals", cols, shape.blocks);
                   args.totals = totals.mutable_data_ptr<int64_t>();
                   slice_cols_indptr(args, shape, scope.stream());
                   const Report found = report.read(scope);
                   check_report(op, found, "cols", num_cols);
                   args.size = found.size;
                   out_indices = device_vector("indices", cols, found.size,
                                               indices.scalar_type());
                   edge = device_vector("edge", cols, found.size);
                   args.out_indices = out_indices.mutable_data_ptr<index_t>();
                   args.edge = edge.mutable_data_ptr<int64_t>();
                   slice_cols_edges(args, scope.stream());
                 });
  return {out_indptr, out_indices, edge};
}

Tensor random_uniform_cuda(Tensor id, Tensor key, int64_t call_id) {
  const char* op = "random_uniform";
  const int64_t n = id.numel();
  const int64_t* ids = int64_vector(op, "id", id, n);
  const DeviceScope scope(op, id);
  Tensor out = device_vector("out", id, n, ScalarType::Double);
  random_uniform({ids, n, read_stream(op, key, call_id, kRandomUniform),
                  out.mutable_data_ptr<double>()},
                 scope.stream());
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(GSAMPLE_CUDA_LIBRARY, GSAMPLE_CUDA_KEY, m) {
  m.impl("slice_cols", TORCH_BOX(&slice_cols_cuda));
  m.impl("random_uniform", TORCH_BOX(&random_uniform_cuda));
}

}  // namespace gsample
