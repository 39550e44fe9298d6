// The operators neighbor_sample_padded and hetero_neighbor_sample_padded on any
// device: the homogeneous one is that of one type and one relation.
#pragma once

#include <numeric>
#include <optional>
#include <tuple>
#include <vector>

#include "neighbor_sample.h"

namespace gsample {

// A sample in tensors of fixed sizes.
struct PaddedOutputs {
  Tensors row, col, node, edge, batch;
  Tensor num_nodes;  // [types, hops + 1]
  Tensor num_edges;  // [relations, hops]
  Tensor fault;      // [4] kind, where, value, relation or node type
};

// Samples on a device, with room for so many edges of each relation.
using PaddedFunction = PaddedOutputs (*)(const HeteroInputs& in,
                                         const Tensor& key,
                                         SampleOptions options,
                                         const std::vector<int64_t>& max_edges);

inline int64_t sum(const std::vector<int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), int64_t{0});
}

// The most nodes of each type.
inline std::vector<int64_t> most_nodes(const HeteroInputs& in,
                                       const std::vector<NodeType>& types,
                                       bool disjoint,
                                       const std::vector<int64_t>& max_edges) {
  std::vector<int64_t> edges(types.size()), nodes;
  for (size_t r = 0; r < max_edges.size(); ++r)
    edges[in.src[r]] += max_edges[r];
  for (size_t t = 0; t < types.size(); ++t)
    nodes.push_back(most_nodes(types[t], disjoint, edges[t]));
  return nodes;
}

inline void check_max_edges(const HeteroInputs& in,
                            const std::vector<int64_t>& max_edges) {
  const size_t relations = in.indptr.size();
  STD_TORCH_CHECK(max_edges.size() == relations, in.op,
                  ": 'max_edges' must have one item for each of ", relations,
                  " relations (got ", max_edges.size(), ")");
  for (const int64_t most : max_edges)
    STD_TORCH_CHECK(0 <= most && most < INT32_MAX, in.op,
                    ": 'max_edges' must be in [0, 2^31 - 1) (got ", most, ")");
  STD_TORCH_CHECK(sum(max_edges) < INT32_MAX, in.op,
                  ": 'max_edges' must sum to less than 2^31 - 1 (got ",
                  sum(max_edges), ")");
}

template <PaddedFunction sample>
std::tuple<Tensors, Tensors, Tensors, Tensors, Tensors, Tensor, Tensor, Tensor>
hetero_neighbor_sample_padded(Tensors indptr,
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
                              std::vector<int64_t> max_edges,
                              int64_t call_id,
                              std::optional<int64_t> time_window,
                              int64_t temporal_strategy,
                              bool replace,
                              bool disjoint,
                              bool return_edge_id,
                              int64_t num_threads) {
  const HeteroInputs in{"hetero_neighbor_sample_padded",
                        indptr,
                        indices,
                        cum_weight,
                        edge_time,
                        src,
                        dst,
                        num_nodes,
                        seeds,
                        seed_time,
                        fanouts,
                        return_edge_id};
  check_lists(in);
  check_max_edges(in, max_edges);
  const PaddedOutputs out =
      sample(in, key,
             read_options(in, call_id, time_window, temporal_strategy, replace,
                          disjoint, num_threads),
             max_edges);
  return {out.row,   out.col,       out.node,      out.edge,
          out.batch, out.num_nodes, out.num_edges, out.fault};
}

using PaddedSample =
    std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

// A homogeneous sample. Its fault names no relation, [3].
inline PaddedSample first_of_each(PaddedOutputs out) {
  return {out.row[0],
          out.col[0],
          out.node[0],
          out.edge[0],
          out.batch[0],
          torch::stable::select(out.num_nodes, 0, 0),
          torch::stable::select(out.num_edges, 0, 0),
          torch::stable::narrow(out.fault, 0, 0, 3)};
}

template <PaddedFunction sample>
PaddedSample neighbor_sample_padded(Tensor indptr,
                                    Tensor indices,
                                    Tensor seeds,
                                    std::vector<int64_t> fanouts,
                                    Tensor key,
                                    int64_t max_edges,
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
      "neighbor_sample_padded", indptr, indices, seeds, fanouts, cum_weight,
      edge_time, seed_time, return_edge_id, [&](const HeteroInputs& in) {
        check_max_edges(in, {max_edges});
        return first_of_each(
            sample(in, key,
                   read_options(in, call_id, time_window, temporal_strategy,
                                replace, disjoint, num_threads),
                   {max_edges}));
      });
}

}  // namespace gsample
