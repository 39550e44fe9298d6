// The operator sample_neighbors on the CPU: arguments and allocation around
// cpu/sample_hops.h.
#include "sample_neighbors.h"

#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <vector>

#include "../cpu/sample_hops.h"
#include "neighbor_fault.h"
#include "output_pool.h"

namespace gsample {

namespace {

// One field of all relations (types), in consecutive parts.
class Field {
 public:
  Field(int64_t size, bool wanted)
      : tensor(pooled_vector(wanted ? size : 0)),
        next_(wanted ? tensor.mutable_data_ptr<int64_t>() : nullptr) {}

  // The next part, with `items` items and capacity for `room`.
  int64_t* take(int64_t items, int64_t room) {
    if (next_ == nullptr)
      return nullptr;
    int64_t* const part = next_;
    next_ += room;
    std::fill(part + items, next_, -1);
    return part;
  }

  Tensor tensor;

 private:
  int64_t* next_;
};

// Appends the counts of each hop, and returns their sum.
int64_t append_counts(const Ints& counts, int64_t** to) {
  *to = std::copy(counts.begin(), counts.end(), *to);
  return sum(counts);
}

template <typename sampler_t>
NeighborOutputs write_outputs(const NeighborInputs& in,
                              const std::vector<NodeType>& types,
                              sampler_t& sample,
                              bool disjoint) {
  Tensor counts = pooled_vector(num_counts(in));
  int64_t* count = counts.mutable_data_ptr<int64_t>();
  Ints num_nodes, num_edges;
  for (size_t t = 0; t < in.num_types(); ++t)
    num_nodes.push_back(append_counts(sample.hop_nodes(t), &count));
  for (size_t r = 0; r < in.num_relations(); ++r) {
    num_edges.push_back(append_counts(sample.hop_edges(r), &count));
    STD_TORCH_CHECK(
        !in.is_padded() || num_edges[r] <= (*in.max_edges)[r], in.op,
        ": a sample has more than 'max_edges' = ", (*in.max_edges)[r],
        " edges (at least ", num_edges[r], ") of relation ", r);
  }
  Ints padded_nodes;
  if (in.is_padded()) {
    padded_nodes = most_nodes(in, types, disjoint);
    std::fill(count, count + kFaultWords, 0);
  }
  const Ints& node_room = in.is_padded() ? padded_nodes : num_nodes;
  const Ints& edge_room = in.is_padded() ? *in.max_edges : num_edges;
  const int64_t all_nodes = sum(node_room), all_edges = sum(edge_room);
  Field row(all_edges, true), col(all_edges, true);
  Field edge(all_edges, in.return_edge_id);
  Field node(all_nodes, true), batch(all_nodes, disjoint);
  std::vector<NodeOutput> nodes;
  std::vector<EdgeOutput> edges;
  for (size_t t = 0; t < in.num_types(); ++t)
    nodes.push_back({node.take(num_nodes[t], node_room[t]),
                     batch.take(num_nodes[t], node_room[t])});
  for (size_t r = 0; r < in.num_relations(); ++r)
    edges.push_back({row.take(num_edges[r], edge_room[r]),
                     col.take(num_edges[r], edge_room[r]),
                     edge.take(num_edges[r], edge_room[r])});
  sample.write(nodes.data(), edges.data());
  return {row.tensor,  col.tensor,   node.tensor,
          edge.tensor, batch.tensor, counts};
}

NeighborOutputs sample_cpu(const NeighborInputs& in,
                           const Tensor& key,
                           SampleOptions options) {
  options.key = read_key(in.op, key);
  const std::vector<NodeType> types = read_types(in, options.disjoint);
  return dispatch_graph(in, [&](auto indptr, auto index) {
    using indptr_t = decltype(indptr);
    using index_t = decltype(index);
    const auto relations = read_relations<indptr_t, index_t>(
        in, in.fanouts, options.num_hops, cpu_address);
    const NeighborSampleArgs<indptr_t, index_t> args{
        relations.data(), types.data(), static_cast<int>(relations.size()),
        static_cast<int>(types.size()), options};
    const auto sampler = make_hop_sampler(args);
    const Status status = sampler->run();
    check_status(in, status, sampler->fault());
    return write_outputs(in, types, *sampler, options.disjoint);
  });
}

struct Cpu {
  static constexpr auto sample = sample_cpu;
  static constexpr auto sample_batches = sample_each<sample_cpu>;
};

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gsample, CPU, m) {
  m.impl("sample_neighbors", TORCH_BOX(&sample_neighbors<Cpu>));
}

}  // namespace gsample
