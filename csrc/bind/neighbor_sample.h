// The operators neighbor_sample and hetero_neighbor_sample on any device: the
// homogeneous one is that of one type and one relation. What is read here has
// pointers to the tensors' memory, wherever it is.
#pragma once

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "check.h"

namespace gsample {

using Tensors = std::vector<Tensor>;

struct HeteroInputs {
  const char* op;
  const Tensors& indptr;      // a relation each
  const Tensors& indices;     //
  const Tensors& cum_weight;  // empty, or a relation each
  const Tensors& edge_time;   //
  const std::vector<int64_t>& src;
  const std::vector<int64_t>& dst;
  const std::vector<int64_t>& num_nodes;  // a node type each
  const Tensors& seeds;                   //
  const Tensors& seed_time;               // empty, or a node type each
  const std::vector<int64_t>& fanouts;    // [relations * hops]
  bool return_edge_id;
};

struct HeteroOutputs {
  Tensors row, col, node, edge, batch;
  std::vector<int64_t> num_nodes, num_edges;
};

// Samples on a device. The options lack the key, which may be there.
using SampleFunction = HeteroOutputs (*)(const HeteroInputs& in,
                                         const Tensor& key,
                                         SampleOptions options);

inline void check_lists(const HeteroInputs& in) {
  const size_t r = in.indptr.size(), t = in.num_nodes.size();
  STD_TORCH_CHECK(
      in.indices.size() == r && in.src.size() == r && in.dst.size() == r, in.op,
      ": 'indptr', 'indices', 'src' and 'dst' must have one item "
      "for each relation");
  STD_TORCH_CHECK((in.cum_weight.empty() || in.cum_weight.size() == r) &&
                      (in.edge_time.empty() || in.edge_time.size() == r),
                  in.op,
                  ": 'cum_weight' and 'edge_time' must be empty or have "
                  "one item for each relation");
  STD_TORCH_CHECK(
      in.seeds.size() == t &&
          (in.seed_time.empty() || in.seed_time.size() == t),
      in.op, ": 'seeds' and 'seed_time' must have one item for each node type");
}

inline const int64_t* optional_item(const HeteroInputs& in,
                                    const char* name,
                                    const Tensors& tensors,
                                    size_t i,
                                    int64_t size) {
  if (tensors.empty() || (tensors[i].numel() == 0 && size > 0))
    return nullptr;
  return int64_vector(in.op, name, tensors[i], size);
}

inline SampleOptions read_options(const HeteroInputs& in,
                                  int64_t call_id,
                                  const std::optional<int64_t>& time_window,
                                  int64_t temporal_strategy,
                                  bool replace,
                                  bool disjoint,
                                  int64_t num_threads) {
  const size_t relations = in.indptr.size();
  STD_TORCH_CHECK(relations == 0 || in.fanouts.size() % relations == 0, in.op,
                  ": 'fanouts' must have the same number of hops for each of ",
                  relations, " relations (got ", in.fanouts.size(),
                  " numbers)");
  const int64_t hops =
      relations == 0 ? 0 : static_cast<int64_t>(in.fanouts.size() / relations);
  STD_TORCH_CHECK(
      call_id >= 0 && call_id <= kMaxCalls - hops, in.op,
      ": 'call_id' plus the number of hops must be in [0, 65536] (got ",
      call_id, ")");
  for (const int64_t fanout : in.fanouts)
    check_fanout(in.op, fanout, replace);
  STD_TORCH_CHECK(relations <= kMaxRelations, in.op,
                  ": at most 65280 relations (got ", relations, ")");
  const bool last = takes_last(in.op, temporal_strategy);
  STD_TORCH_CHECK(!time_window.has_value() || *time_window >= 0, in.op,
                  ": 'time_window' must not be negative");
  STD_TORCH_CHECK(in.edge_time.empty() == in.seed_time.empty(), in.op,
                  ": 'edge_time' and 'seed_time' must be given together");
  STD_TORCH_CHECK(in.edge_time.empty() || disjoint, in.op,
                  ": temporal sampling needs 'disjoint' trees");
  return {Key{},
          static_cast<uint32_t>(call_id),
          static_cast<int>(hops),
          replace,
          disjoint,
          !in.edge_time.empty() && last,
          time_window.has_value(),
          time_window.value_or(0),
          static_cast<int>(num_threads)};
}

template <typename indptr_t, typename index_t>
std::vector<Relation<indptr_t, index_t>> read_relations(const HeteroInputs& in,
                                                        int num_hops) {
  const int64_t types = static_cast<int64_t>(in.num_nodes.size());
  std::vector<Relation<indptr_t, index_t>> relations;
  for (size_t r = 0; r < in.indptr.size(); ++r) {
    STD_TORCH_CHECK(0 <= in.src[r] && in.src[r] < types && 0 <= in.dst[r] &&
                        in.dst[r] < types,
                    in.op, ": 'src' and 'dst' must name one of ", types,
                    " node types");
    check_vector(in.op, "indptr", in.indptr[r], in.indptr[0].scalar_type());
    check_vector(in.op, "indices", in.indices[r], in.indices[0].scalar_type());
    check_size(in.op, "indptr", in.indptr[r],
               add_sizes(in.num_nodes[in.dst[r]], 1));
    const int64_t num_edges = in.indices[r].numel();
    relations.push_back(
        {in.indptr[r].const_data_ptr<indptr_t>(),
         in.indices[r].const_data_ptr<index_t>(),
         optional_item(in, "cum_weight", in.cum_weight, r,
                       cum_weight_size(num_edges, in.indptr[r].numel() - 1)),
         optional_item(in, "edge_time", in.edge_time, r, num_edges),
         in.fanouts.data() + r * num_hops, num_edges,
         static_cast<int>(in.src[r]), static_cast<int>(in.dst[r])});
  }
  return relations;
}

inline std::vector<NodeType> read_types(const HeteroInputs& in,
                                        const SampleOptions& options) {
  std::vector<NodeType> types;
  int64_t num_seeds = 0;
  for (size_t t = 0; t < in.num_nodes.size(); ++t) {
    STD_TORCH_CHECK(in.num_nodes[t] >= 0, in.op,
                    ": 'num_nodes' must not be negative (got ", in.num_nodes[t],
                    ")");
    check_vector(in.op, "seeds", in.seeds[t], ScalarType::Long);
    const int64_t n = in.seeds[t].numel();
    const int64_t* time = optional_item(in, "seed_time", in.seed_time, t, n);
    STD_TORCH_CHECK(in.edge_time.empty() || n == 0 || time != nullptr, in.op,
                    ": temporal sampling needs 'seed_time' for all seeds");
    types.push_back(
        {in.num_nodes[t], in.seeds[t].const_data_ptr<int64_t>(), time, n});
    num_seeds += n;
  }
  for (const NodeType& type : types)  // (tree, node) is one number of 64 bits
    STD_TORCH_CHECK(
        num_seeds < INT32_MAX &&
            (!options.disjoint || type.num_nodes == 0 ||
             num_seeds <= INT64_MAX / std::max<int64_t>(type.num_nodes, 1)),
        in.op, ": too many seeds (", num_seeds, ")");
  return types;
}

// The operators, by what samples.
template <SampleFunction sample>
std::tuple<Tensors, Tensors, Tensors, Tensors, Tensors, Tensor, Tensor>
hetero_neighbor_sample(Tensors indptr,
                       Tensors indices,
                       std::vector<int64_t> src,
                       std::vector<int64_t> dst,
                       std::vector<int64_t> num_nodes,
                       Tensors seeds,
                       std::vector<int64_t> fanouts,
                       Tensors cum_weight,
                       Tensors edge_time,
                       Tensors seed_time,
                       Tensor key,
                       int64_t call_id,
                       std::optional<int64_t> time_window,
                       int64_t temporal_strategy,
                       bool replace,
                       bool disjoint,
                       bool return_edge_id,
                       int64_t num_threads) {
  const char* op = "hetero_neighbor_sample";
  const HeteroInputs in{op,        indptr,    indices, cum_weight,
                        edge_time, src,       dst,     num_nodes,
                        seeds,     seed_time, fanouts, return_edge_id};
  check_lists(in);
  const SampleOptions options =
      read_options(in, call_id, time_window, temporal_strategy, replace,
                   disjoint, num_threads);
  HeteroOutputs out = sample(in, key, options);
  const int64_t hops = options.num_hops;
  return {out.row,
          out.col,
          out.node,
          out.edge,
          out.batch,
          to_tensor(out.num_nodes.data(), num_nodes.size(), hops + 1),
          to_tensor(out.num_edges.data(), indptr.size(), hops)};
}

// Calls function(inputs) for a graph of one node type and one relation.
template <typename function_t>
auto with_one_relation(const char* op,
                       const Tensor& indptr,
                       const Tensor& indices,
                       const Tensor& seeds,
                       const std::vector<int64_t>& fanouts,
                       const std::optional<Tensor>& cum_weight,
                       const std::optional<Tensor>& edge_time,
                       const std::optional<Tensor>& seed_time,
                       bool return_edge_id,
                       const function_t& function) {
  STD_TORCH_CHECK(indptr.dim() == 1 && indptr.numel() > 0, op,
                  ": 'indptr' must be a vector of at least one element");
  const auto list = [](const std::optional<Tensor>& tensor) {
    return tensor.has_value() ? Tensors{*tensor} : Tensors{};
  };
  const Tensors indptrs{indptr}, all_indices{indices}, all_seeds{seeds};
  const Tensors weights = list(cum_weight), times = list(edge_time);
  const Tensors seed_times = list(seed_time);
  const std::vector<int64_t> zero{0}, num_nodes{indptr.numel() - 1};
  return function(HeteroInputs{op, indptrs, all_indices, weights, times, zero,
                               zero, num_nodes, all_seeds, seed_times, fanouts,
                               return_edge_id});
}

using Sample =
    std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

inline Sample first_of_each(const HeteroOutputs& out) {
  const auto counts = [](const std::vector<int64_t>& values) {
    Tensor tensor = empty_vector(static_cast<int64_t>(values.size()));
    std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<int64_t>());
    return tensor;
  };
  return {out.row[0],           out.col[0],   out.node[0],
          out.edge[0],          out.batch[0], counts(out.num_nodes),
          counts(out.num_edges)};
}

template <SampleFunction sample>
Sample neighbor_sample(Tensor indptr,
                       Tensor indices,
                       Tensor seeds,
                       std::vector<int64_t> fanouts,
                       Tensor key,
                       int64_t call_id,
                       std::optional<Tensor> cum_weight,
                       std::optional<Tensor> edge_time,
                       std::optional<Tensor> seed_time,
                       std::optional<int64_t> time_window,
                       int64_t temporal_strategy,
                       bool replace,
                       bool disjoint,
                       bool return_edge_id,
                       int64_t num_threads) {
  return with_one_relation(
      "neighbor_sample", indptr, indices, seeds, fanouts, cum_weight, edge_time,
      seed_time, return_edge_id, [&](const HeteroInputs& in) {
        return first_of_each(
            sample(in, key,
                   read_options(in, call_id, time_window, temporal_strategy,
                                replace, disjoint, num_threads)));
      });
}

// The most nodes of a type in a sample of so many edges. A faulty edge has a
// place, too.
inline int64_t most_nodes(const NodeType& type, bool disjoint, int64_t edges) {
  return type.num_seeds +
         (disjoint ? edges
                   : std::min(edges, std::max<int64_t>(type.num_nodes, 1)));
}

}  // namespace gsample
