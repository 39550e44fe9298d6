// The operators induce_subgraph and the synthetic graphs on the CPU.
#include <torch/csrc/stable/library.h>

#include <cmath>
#include <tuple>
#include <vector>

#include "../cpu/buffer.h"
#include "../cpu/induce_subgraph.h"
#include "../cpu/synthetic.h"
#include "check.h"
#include "output_pool.h"

namespace gsample {

namespace {

Tensor concatenate(const std::vector<InducedEdges>& parts,
                   int64_t InducedEdge::* field) {
  int64_t size = 0;
  for (const InducedEdges& part : parts)
    size += static_cast<int64_t>(part.size());
  Tensor out = pooled_vector(size);
  int64_t* to = out.mutable_data_ptr<int64_t>();
  for (const InducedEdges& part : parts)
    for (const InducedEdge& edge : part)
      *to++ = edge.*field;
  return out;
}

std::tuple<Tensor, Tensor, Tensor> induce_subgraph_op(
    Tensor indptr,
    Tensor indices,
    int64_t num_rows,
    Tensor row_nodes,
    Tensor col_nodes,
    std::optional<Tensor> row_batch,
    std::optional<Tensor> col_batch,
    int64_t num_threads) {
  const char* op = "induce_subgraph";
  check_matrix(op, indptr, indices);
  STD_TORCH_CHECK(row_batch.has_value() == col_batch.has_value(), op,
                  ": 'row_batch' and 'col_batch' must be given together");
  const int64_t n = row_nodes.numel(), m = col_nodes.numel();
  const int64_t* rows = int64_vector(op, "row_nodes", row_nodes, n);
  const int64_t* cols = int64_vector(op, "col_nodes", col_nodes, m);
  const int64_t* row_tree = int64_vector(op, "row_batch", row_batch, n);
  const int64_t* col_tree = int64_vector(op, "col_batch", col_batch, m);
  std::vector<InducedEdges> parts;
  const Status status =
      dispatch_graph(op, indptr.scalar_type(), indices.scalar_type(),
                     [&](auto indptr_type, auto index_type) {
                       using indptr_t = decltype(indptr_type);
                       using index_t = decltype(index_type);
                       return induce_subgraph<indptr_t, index_t>(
                           {indptr.const_data_ptr<indptr_t>(),
                            indices.const_data_ptr<index_t>(), rows, cols,
                            row_tree, col_tree, num_rows, indptr.numel() - 1,
                            indices.numel(), n, m, threads_of(num_threads)},
                           &parts);
                     });
  STD_TORCH_CHECK(status != Status::kFault, op, ": 'col_nodes' must be in [0, ",
                  indptr.numel() - 1,
                  ") and 'indptr' must ascend from 0 to the number of edges");
  STD_TORCH_CHECK(status != Status::kInterrupted, op, ": interrupted");
  return {concatenate(parts, &InducedEdge::row),
          concatenate(parts, &InducedEdge::col),
          concatenate(parts, &InducedEdge::edge)};
}

Tensor configuration_model_op(Tensor indptr, int64_t seed, bool wide_indices) {
  const char* op = "configuration_model";
  check_vector(op, "indptr", indptr, indptr.scalar_type());
  STD_TORCH_CHECK(indptr.numel() > 0, op, ": 'indptr' must not be empty");
  const ScalarType dtype = wide_indices ? ScalarType::Long : ScalarType::Int;
  Tensor indices;
  dispatch_graph(
      op, indptr.scalar_type(), dtype, [&](auto indptr_type, auto index_type) {
        using indptr_t = decltype(indptr_type);
        using index_t = decltype(index_type);
        const indptr_t* begin = indptr.const_data_ptr<indptr_t>();
        const int64_t n = indptr.numel() - 1;
        STD_TORCH_CHECK(begin[0] == 0, op, ": 'indptr' must start at 0");
        for (int64_t v = 0; v < n; ++v)
          STD_TORCH_CHECK(begin[v] <= begin[v + 1], op,
                          ": 'indptr' must ascend");
        indices = empty_vector(begin[n], dtype);
        advise_huge_pages(indices.mutable_data_ptr(),
                          begin[n] * sizeof(index_t));
        configuration_model(begin, n, static_cast<uint64_t>(seed),
                            indices.mutable_data_ptr<index_t>());
      });
  return indices;
}

std::tuple<Tensor, Tensor> rmat_edges_op(int64_t scale,
                                         int64_t num_edges,
                                         std::vector<double> quadrants,
                                         int64_t seed) {
  const char* op = "rmat_edges";
  STD_TORCH_CHECK(scale >= 0 && scale <= 40, op,
                  ": 'scale' must be in [0, 40] (got ", scale, ")");
  STD_TORCH_CHECK(num_edges >= 0, op, ": 'num_edges' must not be negative");
  check_rows_fit(op, "num_edges", num_edges, sizeof(int64_t));
  STD_TORCH_CHECK(quadrants.size() == 4, op,
                  ": 'quadrants' must be four probabilities");
  double sum = 0;
  uint32_t cumulative[3];
  for (int i = 0; i < 4; ++i) {
    STD_TORCH_CHECK(quadrants[i] >= 0 && quadrants[i] <= 1, op,
                    ": 'quadrants' must be probabilities");
    sum += quadrants[i];
    if (i < 3)
      cumulative[i] = static_cast<uint32_t>(std::lround(sum * 65536));
  }
  STD_TORCH_CHECK(std::abs(sum - 1) < 1e-6, op, ": 'quadrants' must sum to 1");
  const ScalarType dtype = scale < 31 ? ScalarType::Int : ScalarType::Long;
  Tensor row = empty_vector(num_edges, dtype);
  Tensor col = empty_vector(num_edges, dtype);
  const auto call = [&](auto index_type) {
    using index_t = decltype(index_type);
    rmat_edges(static_cast<int>(scale), num_edges, cumulative,
               static_cast<uint64_t>(seed), row.mutable_data_ptr<index_t>(),
               col.mutable_data_ptr<index_t>());
  };
  scale < 31 ? call(int32_t{}) : call(int64_t{});
  return {row, col};
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gsample, CPU, m) {
  m.impl("induce_subgraph", TORCH_BOX(&induce_subgraph_op));
  m.impl("configuration_model", TORCH_BOX(&configuration_model_op));
}

// No tensor argument selects the device: these are CPU operators for all
// callers.
STABLE_TORCH_LIBRARY_IMPL(gsample, CompositeExplicitAutograd, m) {
  m.impl("rmat_edges", TORCH_BOX(&rmat_edges_op));
}

}  // namespace gsample
