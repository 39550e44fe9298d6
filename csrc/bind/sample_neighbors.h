// The operator sample_neighbors on any device.
#pragma once

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>
#include <vector>

#include "graph.h"

namespace gsample {

struct NeighborInputs : SampleInputs {
  bool return_edge_id;
  // Of each relation: outputs have sizes that do not depend on the sample.
  const std::optional<Ints>& max_edges;

  bool is_padded() const { return max_edges.has_value(); }
};

// Edges of all relations, nodes of all types: row, col, node, edge, batch; and
// their counts [types, hops + 1] and [relations, hops], one after the other.
// Padded ones end with the fault [4]: kind, where, value, relation or type.
using NeighborOutputs =
    std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

constexpr int64_t kFaultWords = 4;

// Samples on a device. The options lack the key, which may be there.
using SampleFunction = NeighborOutputs (*)(const NeighborInputs& in,
                                           const Tensor& key,
                                           SampleOptions options);

inline int64_t sum(const Ints& values) {
  return std::accumulate(values.begin(), values.end(), int64_t{0});
}

inline int64_t num_counts(const NeighborInputs& in) {
  const int64_t types = in.num_types(), relations = in.num_relations();
  return types * (in.num_hops() + 1) + relations * in.num_hops() +
         (in.is_padded() ? kFaultWords : 0);
}

inline void check_max_edges(const NeighborInputs& in) {
  const Ints& max_edges = *in.max_edges;
  STD_TORCH_CHECK(max_edges.size() == in.num_relations(), in.op,
                  ": 'max_edges' must have one item for each of ",
                  in.num_relations(), " relations (got ", max_edges.size(),
                  ")");
  for (const int64_t most : max_edges)
    STD_TORCH_CHECK(0 <= most && most < INT32_MAX, in.op,
                    ": 'max_edges' must be in [0, 2^31 - 1) (got ", most, ")");
  STD_TORCH_CHECK(sum(max_edges) < INT32_MAX, in.op,
                  ": 'max_edges' must sum to less than 2^31 - 1 (got ",
                  sum(max_edges), ")");
}

// The most nodes of each type in a padded sample.
inline Ints most_nodes(const NeighborInputs& in,
                       const std::vector<NodeType>& types,
                       bool disjoint) {
  Ints edges(types.size()), nodes;
  for (size_t r = 0; r < in.num_relations(); ++r)
    edges[in.src(r)] += (*in.max_edges)[r];
  for (size_t t = 0; t < types.size(); ++t)
    nodes.push_back(most_nodes(types[t], disjoint, edges[t]));
  return nodes;
}

template <SampleFunction sample>
NeighborOutputs sample_neighbors(Tensors graph,
                                 Ints ends,
                                 Ints num_nodes,
                                 Tensors seeds,
                                 Ints fanouts,
                                 Tensor key,
                                 int64_t call_id,
                                 bool replace,
                                 bool disjoint,
                                 bool last,
                                 std::optional<int64_t> time_window,
                                 bool return_edge_id,
                                 int64_t num_threads,
                                 std::optional<Tensors> seed_time,
                                 std::optional<Ints> max_edges) {
  const NeighborInputs in{
      {{"sample_neighbors", graph, ends, num_nodes}, seeds, seed_time, fanouts},
      return_edge_id,
      max_edges};
  in.check();
  if (in.is_padded())
    check_max_edges(in);
  return sample(in, key,
                read_options(in, call_id, replace, disjoint, last, time_window,
                             num_threads));
}

}  // namespace gsample
