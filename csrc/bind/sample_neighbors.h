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
  // Per relation: makes the sizes of outputs independent of the sample.
  const std::optional<Ints>& max_edges;

  bool is_padded() const { return max_edges.has_value(); }
};

// Several batches of seeds; `ptr` is the start of each batch per type.
struct SeedBatches {
  int64_t count;
  std::vector<const int64_t*> ptr;  // [types][count + 1]
};

// Edges of all relations and nodes of all types: row, col, node, edge, batch;
// and their counts [types, hops + 1] and [relations, hops], concatenated.
// Padded outputs end with the fault [4]: kind, position, value, relation or
// type.
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

inline SeedBatches read_batches(const NeighborInputs& in,
                                const Tensors& ptr,
                                const Tensor& key) {
  STD_TORCH_CHECK(!in.is_padded(), in.op,
                  ": 'seed_ptr' and 'max_edges' must not be given together");
  STD_TORCH_CHECK(!ptr.empty() && ptr.size() == in.num_types(), in.op,
                  ": 'seed_ptr' must have one item for each node type");
  SeedBatches batches{ptr[0].numel() - 1, {}};
  for (size_t t = 0; t < ptr.size(); ++t) {
    STD_TORCH_CHECK(
        !ptr[t].is_cuda() && ptr[t].numel() == batches.count + 1 &&
            batches.count > 0,
        in.op,
        ": 'seed_ptr' must be on the CPU and have an element more than "
        "batches, of which there is one or more");
    batches.ptr.push_back(
        read_ptr(in.op, "seed_ptr", ptr[t], in.seeds[t].numel()));
  }
  read_keys(in.op, key, batches.count);
  return batches;
}

// One output of all batches.
inline Tensor join(const std::vector<NeighborOutputs>& outputs,
                   const Tensor& (*field)(const NeighborOutputs&)) {
  int64_t size = 0;
  for (const NeighborOutputs& out : outputs)
    size += field(out).numel();
  Tensor all = empty_vector(size);
  int64_t next = 0;
  for (const NeighborOutputs& out : outputs) {
    const int64_t first = next;
    next += field(out).numel();
    Tensor part = part_of(all, first, next);
    torch::stable::copy_(part, field(out));
  }
  return all;
}

template <size_t i>
const Tensor& output(const NeighborOutputs& out) {
  return std::get<i>(out);
}

// Samples the batches one by one, on the CPU.
template <SampleFunction sample>
NeighborOutputs sample_each(const NeighborInputs& in,
                            const SeedBatches& batches,
                            const Tensor& key,
                            SampleOptions options) {
  std::vector<NeighborOutputs> outputs;
  for (int64_t b = 0; b < batches.count; ++b) {
    Tensors seeds;
    std::optional<Tensors> time;
    if (in.is_temporal())
      time.emplace();
    for (size_t t = 0; t < in.num_types(); ++t) {
      const int64_t* ptr = batches.ptr[t] + b;
      seeds.push_back(part_of(in.seeds[t], ptr[0], ptr[1]));
      if (time)
        time->push_back(part_of((*in.seed_time)[t], ptr[0], ptr[1]));
    }
    const NeighborInputs one{
        {{in.op, in.tensors, in.ends, in.num_nodes}, seeds, time, in.fanouts},
        in.return_edge_id,
        in.max_edges};
    outputs.push_back(sample(one, part_of(key, b, b + 1), options));
  }
  return {join(outputs, output<0>), join(outputs, output<1>),
          join(outputs, output<2>), join(outputs, output<3>),
          join(outputs, output<4>), join(outputs, output<5>)};
}

// `device_t` has sample(in, key, options) and sample_batches(in, batches, key,
// options), where the key has one row per batch and each output concatenates
// the outputs of single batches.
template <typename device_t>
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
                                 std::optional<Ints> max_edges,
                                 std::optional<Tensors> seed_ptr) {
  const NeighborInputs in{
      {{"sample_neighbors", graph, ends, num_nodes}, seeds, seed_time, fanouts},
      return_edge_id,
      max_edges};
  in.check();
  if (in.is_padded())
    check_max_edges(in);
  const SampleOptions options = read_options(in, call_id, replace, disjoint,
                                             last, time_window, num_threads);
  if (!seed_ptr.has_value())
    return device_t::sample(in, key, options);
  const SeedBatches batches = read_batches(in, *seed_ptr, key);
  if (batches.count == 1)
    return device_t::sample(in, key, options);
  return device_t::sample_batches(in, batches, key, options);
}

}  // namespace gsample
