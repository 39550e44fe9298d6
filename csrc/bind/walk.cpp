// The walk operators on the CPU.
#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "../cpu/forest_fire.h"
#include "../cpu/frontier_walk.h"
#include "../cpu/node2vec_walk.h"
#include "../cpu/random_walk.h"
#include "output_pool.h"
#include "walk.h"

namespace gsample {

namespace {

using Walks = std::tuple<Tensor, Tensor>;

const int64_t* read_seeds(const char* op,
                          const Tensor& seeds,
                          int64_t num_cols) {
  const int64_t n = seeds.numel();
  const int64_t* seed = int64_vector(op, "seeds", seeds, n);
  for (int64_t i = 0; i < n; ++i)
    if (seed[i] < 0 || seed[i] >= num_cols)
      raise_seed(op, num_cols, seed[i], i);
  return seed;
}

// Checks the arguments of all walks, and allocates nodes and edges.
Walks empty_walks(const char* op,
                  const Tensor& seeds,
                  int64_t length,
                  int64_t num_cols) {
  check_length(op, length);
  const int64_t n = seeds.numel();
  read_seeds(op, seeds, num_cols);
  const int64_t nodes[] = {n, length + 1}, edges[] = {n, length};
  return {pooled_tensor({nodes, 2}, ScalarType::Long, sizeof(int64_t)),
          pooled_tensor({edges, 2}, ScalarType::Long, sizeof(int64_t))};
}

template <typename indptr_t, typename index_t>
void check_status(const char* op,
                  Status status,
                  const WalkFault& fault,
                  const WalkGraph<indptr_t, index_t>* graphs) {
  STD_TORCH_CHECK(status != Status::kInterrupted, op, ": interrupted");
  if (status == Status::kDone)
    return;
  const WalkGraph<indptr_t, index_t>& graph = graphs[fault.graph];
  if (!fault.at_edge)
    raise_column(op, graph.num_edges, fault.where, fault.graph);
  raise_edge(op, graph.indices[fault.where], fault.where, fault.graph);
}

Walks random_walk_op(Tensor indptr,
                     Tensor indices,
                     Tensor seeds,
                     int64_t length,
                     Tensor key,
                     int64_t call_id,
                     double restart,
                     std::optional<Tensor> cum_weight,
                     int64_t num_threads) {
  const char* op = "random_walk";
  check_matrix(op, indptr, indices);
  Walks out = empty_walks(op, seeds, length, indptr.numel() - 1);
  dispatch_graph(
      op, indptr.scalar_type(), indices.scalar_type(),
      [&](auto indptr_type, auto index_type) {
        using indptr_t = decltype(indptr_type);
        using index_t = decltype(index_type);
        const auto graph =
            walk_graph<indptr_t, index_t>(op, indptr, indices, cum_weight);
        WalkFault fault{};
        const Status status = random_walk<indptr_t, index_t>(
            {&graph, nullptr, seeds.const_data_ptr<int64_t>(), seeds.numel(),
             length, read_stream(op, key, call_id, kWalk),
             check_restart(op, restart), threads_of(num_threads)},
            std::get<0>(out).mutable_data_ptr<int64_t>(),
            std::get<1>(out).mutable_data_ptr<int64_t>(), &fault);
        check_status(op, status, fault, &graph);
      });
  return out;
}

Walks node2vec_walk_op(Tensor indptr,
                       Tensor indices,
                       Tensor seeds,
                       int64_t length,
                       double p,
                       double q,
                       Tensor key,
                       int64_t call_id,
                       bool is_sorted,
                       std::optional<Tensor> cum_weight,
                       int64_t num_threads,
                       std::optional<Tensor> ascending) {
  const char* op = "node2vec_walk";
  check_matrix(op, indptr, indices);
  const auto entries = ascending_entries(op, indices, is_sorted, ascending);
  Walks out = empty_walks(op, seeds, length, indptr.numel() - 1);
  dispatch_graph(
      op, indptr.scalar_type(), indices.scalar_type(),
      [&](auto indptr_type, auto index_type) {
        using indptr_t = decltype(indptr_type);
        using index_t = decltype(index_type);
        const auto graph =
            walk_graph<indptr_t, index_t>(op, indptr, indices, cum_weight);
        WalkFault fault{};
        const Status status = node2vec_walk<indptr_t, index_t>(
            {graph, entries ? entries->const_data_ptr<index_t>() : nullptr,
             seeds.const_data_ptr<int64_t>(), seeds.numel(), length,
             read_stream(op, key, call_id, kWalk), check_law(op, p, q),
             threads_of(num_threads)},
            std::get<0>(out).mutable_data_ptr<int64_t>(),
            std::get<1>(out).mutable_data_ptr<int64_t>(), &fault);
        check_status(op, status, fault, &graph);
      });
  return out;
}

Walks metapath_walk_op(std::vector<Tensor> indptr,
                       std::vector<Tensor> indices,
                       std::vector<int64_t> path,
                       Tensor seeds,
                       Tensor key,
                       int64_t call_id,
                       double restart,
                       int64_t num_threads) {
  const char* op = "metapath_walk";
  const int64_t num_cols = check_path(op, indptr, indices, path);
  const int64_t length = static_cast<int64_t>(path.size());
  Walks out = empty_walks(op, seeds, length, num_cols);
  dispatch_graph(
      op, indptr[0].scalar_type(), indices[0].scalar_type(),
      [&](auto indptr_type, auto index_type) {
        using indptr_t = decltype(indptr_type);
        using index_t = decltype(index_type);
        std::vector<WalkGraph<indptr_t, index_t>> graphs;
        for (size_t i = 0; i < indptr.size(); ++i)
          graphs.push_back(walk_graph<indptr_t, index_t>(
              op, indptr[i], indices[i], std::nullopt));
        WalkFault fault{};
        const Status status = random_walk<indptr_t, index_t>(
            {graphs.data(), path.data(), seeds.const_data_ptr<int64_t>(),
             seeds.numel(), length, read_stream(op, key, call_id, kWalk),
             check_restart(op, restart), threads_of(num_threads)},
            std::get<0>(out).mutable_data_ptr<int64_t>(),
            std::get<1>(out).mutable_data_ptr<int64_t>(), &fault);
        check_status(op, status, fault, graphs.data());
      });
  return out;
}

Walks frontier_walk_op(Tensor indptr,
                       Tensor indices,
                       Tensor seeds,
                       int64_t length,
                       Tensor key,
                       int64_t call_id) {
  const char* op = "frontier_walk";
  check_matrix(op, indptr, indices);
  check_length(op, length);
  const int64_t* seed = read_seeds(op, seeds, indptr.numel() - 1);
  Walks out = {empty_vector(length), empty_vector(length)};
  dispatch_graph(op, indptr.scalar_type(), indices.scalar_type(),
                 [&](auto indptr_type, auto index_type) {
                   using indptr_t = decltype(indptr_type);
                   using index_t = decltype(index_type);
                   const auto graph = walk_graph<indptr_t, index_t>(
                       op, indptr, indices, std::nullopt);
                   WalkFault fault{};
                   const Status status = frontier_walk<indptr_t, index_t>(
                       {graph, seed, seeds.numel(), length,
                        read_stream(op, key, call_id, kWalk)},
                       std::get<0>(out).mutable_data_ptr<int64_t>(),
                       std::get<1>(out).mutable_data_ptr<int64_t>(), &fault);
                   check_status(op, status, fault, &graph);
                 });
  return out;
}

// The nodes that burn, in ascending order.
Tensor forest_fire_op(Tensor indptr,
                      Tensor indices,
                      Tensor seeds,
                      double p,
                      Tensor key,
                      int64_t call_id) {
  const char* op = "forest_fire";
  check_matrix(op, indptr, indices);
  check_burning(op, p);
  const int64_t* seed = read_seeds(op, seeds, indptr.numel() - 1);
  std::vector<int64_t> burnt(seed, seed + seeds.numel());
  std::sort(burnt.begin(), burnt.end());
  burnt.erase(std::unique(burnt.begin(), burnt.end()), burnt.end());
  dispatch_graph(op, indptr.scalar_type(), indices.scalar_type(),
                 [&](auto indptr_type, auto index_type) {
                   using indptr_t = decltype(indptr_type);
                   using index_t = decltype(index_type);
                   const auto graph = walk_graph<indptr_t, index_t>(
                       op, indptr, indices, std::nullopt);
                   WalkFault fault{};
                   const Status status = forest_fire(
                       graph, p, read_stream(op, key, call_id, kForestFire),
                       &burnt, &fault);
                   check_status(op, status, fault, &graph);
                 });
  std::sort(burnt.begin(), burnt.end());
  Tensor out = empty_vector(static_cast<int64_t>(burnt.size()));
  std::copy(burnt.begin(), burnt.end(), out.mutable_data_ptr<int64_t>());
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gsample, CPU, m) {
  m.impl("random_walk", TORCH_BOX(&random_walk_op));
  m.impl("node2vec_walk", TORCH_BOX(&node2vec_walk_op));
  m.impl("metapath_walk", TORCH_BOX(&metapath_walk_op));
  m.impl("frontier_walk", TORCH_BOX(&frontier_walk_op));
  m.impl("forest_fire", TORCH_BOX(&forest_fire_op));
}

}  // namespace gsample
