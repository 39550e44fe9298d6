// The walk operators on a GPU.
#include <torch/csrc/stable/library.h>

#include <tuple>
#include <vector>

#include "../cuda/forest_fire.h"
#include "../cuda/node2vec_walk.h"
#include "../cuda/random_walk.h"
#include "device_cuda.h"
#include "walk.h"

namespace gsample {

namespace {

using Walks = std::tuple<Tensor, Tensor>;

// The graph at addresses that the seeds' device can read.
template <typename indptr_t, typename index_t>
WalkGraph<indptr_t, index_t> readable_graph(
    const char* op,
    const Tensor& indptr,
    const Tensor& indices,
    const std::optional<Tensor>& cum_weight,
    const Tensor& seeds) {
  auto graph = walk_graph<indptr_t, index_t>(op, indptr, indices, cum_weight);
  graph.indptr = readable<indptr_t>(op, indptr, seeds, "seeds");
  graph.indices = readable<index_t>(op, indices, seeds, "seeds");
  if (cum_weight.has_value())
    graph.cum_weight = readable<int64_t>(op, *cum_weight, seeds, "seeds");
  return graph;
}

// Checks the arguments of all walks, and allocates nodes and edges.
Walks empty_walks(const char* op, const Tensor& seeds, int64_t length) {
  check_length(op, length);
  check_vector(op, "seeds", seeds, ScalarType::Long);
  const int64_t n = seeds.numel();
  const ScalarType dtype = ScalarType::Long;
  return {device_tensor("nodes", seeds, {n, length + 1}, dtype, 8),
          device_tensor("edges", seeds, {n, length}, dtype, 8)};
}

void check_report(const char* op, const Report& report, int64_t num_cols) {
  switch (report.fault) {
    case Report::kNone:
      return;
    case Report::kId:
      raise_seed(op, num_cols, report.value, report.where);
    case Report::kIndptr:
      raise_column(op, report.value, report.where, report.relation);
    default:
      raise_edge(op, report.value, report.where, report.relation);
  }
}

// Walks of `args`, which define the steps.
template <typename args_t>
Walks run(const char* op,
          args_t args,
          const Tensor& seeds,
          int64_t num_cols,
          Walks out,
          const DeviceScope& scope,
          void (*start)(const args_t&, StreamHandle)) {
  DeviceReport report(seeds);
  args.seeds = seeds.const_data_ptr<int64_t>();
  args.num_seeds = seeds.numel();
  args.nodes = std::get<0>(out).mutable_data_ptr<int64_t>();
  args.edges = std::get<1>(out).mutable_data_ptr<int64_t>();
  args.report = report.get();
  start(args, scope.stream());
  check_report(op, report.read(scope), num_cols);
  return out;
}

Walks random_walk_cuda(Tensor indptr,
                       Tensor indices,
                       Tensor seeds,
                       int64_t length,
                       Tensor key,
                       int64_t call_id,
                       double restart,
                       std::optional<Tensor> cum_weight,
                       int64_t) {
  const char* op = "random_walk";
  check_matrix(op, indptr, indices);
  const DeviceScope scope(op, seeds);
  const Walks out = empty_walks(op, seeds, length);
  return dispatch_graph(op, indptr.scalar_type(), indices.scalar_type(),
                        [&](auto indptr_type, auto index_type) {
                          using indptr_t = decltype(indptr_type);
                          using index_t = decltype(index_type);
                          RandomWalkCuda<indptr_t, index_t> args{};
                          args.graph = readable_graph<indptr_t, index_t>(
                              op, indptr, indices, cum_weight, seeds);
                          args.num_cols = args.graph.num_cols;
                          args.length = length;
                          args.stream = read_stream(op, key, call_id, kWalk);
                          args.restart = check_restart(op, restart);
                          return run(op, args, seeds, args.num_cols, out, scope,
                                     &random_walk<indptr_t, index_t>);
                        });
}

Walks node2vec_walk_cuda(Tensor indptr,
                         Tensor indices,
                         Tensor seeds,
                         int64_t length,
                         double p,
                         double q,
                         Tensor key,
                         int64_t call_id,
                         bool is_sorted,
                         std::optional<Tensor> cum_weight,
                         int64_t,
                         std::optional<Tensor> ascending) {
  const char* op = "node2vec_walk";
  check_matrix(op, indptr, indices);
  const auto entries = ascending_entries(op, indices, is_sorted, ascending);
  const DeviceScope scope(op, seeds);
  const Walks out = empty_walks(op, seeds, length);
  return dispatch_graph(op, indptr.scalar_type(), indices.scalar_type(),
                        [&](auto indptr_type, auto index_type) {
                          using indptr_t = decltype(indptr_type);
                          using index_t = decltype(index_type);
                          Node2vecCuda<indptr_t, index_t> args{};
                          args.graph = readable_graph<indptr_t, index_t>(
                              op, indptr, indices, cum_weight, seeds);
                          if (entries)
                            args.ascending =
                                readable<index_t>(op, *entries, seeds, "seeds");
                          args.length = length;
                          args.stream = read_stream(op, key, call_id, kWalk);
                          args.law = check_law(op, p, q);
                          return run(op, args, seeds, args.graph.num_cols, out,
                                     scope, &node2vec_walk<indptr_t, index_t>);
                        });
}

// A copy of host items in device memory.
template <typename item_t>
Tensor to_device(const std::vector<item_t>& items,
                 const Tensor& like,
                 const DeviceScope& scope) {
  static_assert(sizeof(item_t) % sizeof(int64_t) == 0, "whole words");
  const int64_t words = sizeof(item_t) / sizeof(int64_t);
  Tensor out = device_vector("arguments", like,
                             words * static_cast<int64_t>(items.size()));
  copy_to_device(out.mutable_data_ptr(), items.data(),
                 items.size() * sizeof(item_t), scope.stream());
  return out;
}

Walks metapath_walk_cuda(std::vector<Tensor> indptr,
                         std::vector<Tensor> indices,
                         std::vector<int64_t> path,
                         Tensor seeds,
                         Tensor key,
                         int64_t call_id,
                         double restart,
                         int64_t) {
  const char* op = "metapath_walk";
  const int64_t num_cols = check_path(op, indptr, indices, path);
  const DeviceScope scope(op, seeds);
  const int64_t length = static_cast<int64_t>(path.size());
  const Walks out = empty_walks(op, seeds, length);
  return dispatch_graph(
      op, indptr[0].scalar_type(), indices[0].scalar_type(),
      [&](auto indptr_type, auto index_type) {
        using indptr_t = decltype(indptr_type);
        using index_t = decltype(index_type);
        using Graph = WalkGraph<indptr_t, index_t>;
        std::vector<Graph> graphs;
        for (size_t i = 0; i < indptr.size(); ++i)
          graphs.push_back(readable_graph<indptr_t, index_t>(
              op, indptr[i], indices[i], std::nullopt, seeds));
        const Tensor graph = to_device(graphs, seeds, scope);
        const Tensor steps = to_device(path, seeds, scope);
        RandomWalkCuda<indptr_t, index_t> args{};
        args.graphs = static_cast<const Graph*>(graph.const_data_ptr());
        args.path = steps.const_data_ptr<int64_t>();
        args.num_cols = num_cols;
        args.length = length;
        args.stream = read_stream(op, key, call_id, kWalk);
        args.restart = check_restart(op, restart);
        return run(op, args, seeds, num_cols, out, scope,
                   &random_walk<indptr_t, index_t>);
      });
}

template <typename indptr_t, typename index_t>
Tensor burn(const char* op,
            ForestFireCuda<indptr_t, index_t> args,
            const Tensor& like,
            const DeviceScope& scope) {
  const int64_t num_cols = args.graph.num_cols;
  Tensor burnt = device_vector("burnt", like, num_cols),
         tail = device_vector("tail", like, 1);
  Tensor caught = device_vector("caught", like, args.words());
  Tensor burning = device_vector("burning", like, args.words());
  DeviceReport report(like);
  args.burnt = burnt.mutable_data_ptr<int64_t>();
  args.tail = tail.mutable_data_ptr<int64_t>();
  args.caught = static_cast<uint64_t*>(caught.mutable_data_ptr());
  args.burning = static_cast<uint64_t*>(burning.mutable_data_ptr());
  args.report = report.get();
  const LaunchShape shape = forest_fire_shape(args);
  Tensor totals = device_vector("totals", like, shape.blocks);
  args.totals = totals.mutable_data_ptr<int64_t>();
  forest_fire(args, shape, scope.stream());
  const Report found = report.read(scope);
  check_report(op, found, num_cols);
  return device_clone("burnt", burnt, found.size);
}

Tensor forest_fire_cuda(Tensor indptr,
                        Tensor indices,
                        Tensor seeds,
                        double p,
                        Tensor key,
                        int64_t call_id) {
  const char* op = "forest_fire";
  check_matrix(op, indptr, indices);
  check_burning(op, p);
  check_vector(op, "seeds", seeds, ScalarType::Long);
  const DeviceScope scope(op, seeds);
  return dispatch_graph(op, indptr.scalar_type(), indices.scalar_type(),
                        [&](auto indptr_type, auto index_type) {
                          using indptr_t = decltype(indptr_type);
                          using index_t = decltype(index_type);
                          ForestFireCuda<indptr_t, index_t> args{};
                          args.graph = readable_graph<indptr_t, index_t>(
                              op, indptr, indices, std::nullopt, seeds);
                          args.seeds = seeds.const_data_ptr<int64_t>();
                          args.num_seeds = seeds.numel();
                          args.p = p;
                          args.stream =
                              read_stream(op, key, call_id, kForestFire);
                          return burn(op, args, seeds, scope);
                        });
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(GSAMPLE_CUDA_LIBRARY, GSAMPLE_CUDA_KEY, m) {
  m.impl("random_walk", TORCH_BOX(&random_walk_cuda));
  m.impl("node2vec_walk", TORCH_BOX(&node2vec_walk_cuda));
  m.impl("metapath_walk", TORCH_BOX(&metapath_walk_cuda));
  m.impl("forest_fire", TORCH_BOX(&forest_fire_cuda));
}

}  // namespace gsample
