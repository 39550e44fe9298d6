// The operators neighbor_sample and hetero_neighbor_sample on the CPU:
// arguments and allocation around cpu/neighbor_sample.h.
#include "../cpu/neighbor_sample.h"

#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <vector>

#include "neighbor_fault.h"
#include "neighbor_sample.h"
#include "output_pool.h"

namespace gsample {

namespace {

int64_t append_counts(const std::vector<int64_t>& counts,
                      std::vector<int64_t>* all) {
  int64_t sum = 0;
  for (const int64_t count : counts) {
    all->push_back(count);
    sum += count;
  }
  return sum;
}

HeteroOutputs write_outputs(const HeteroInputs& in,
                            NeighborSample& sample,
                            bool disjoint) {
  HeteroOutputs out;
  std::vector<NodeOutput> nodes;
  std::vector<EdgeOutput> edges;
  const auto add = [](Tensors& tensors, int64_t size, bool wanted) {
    tensors.push_back(pooled_vector(wanted ? size : 0));
    return wanted ? tensors.back().mutable_data_ptr<int64_t>() : nullptr;
  };
  for (size_t t = 0; t < in.num_nodes.size(); ++t) {
    const int64_t n = append_counts(sample.hop_nodes(t), &out.num_nodes);
    nodes.push_back({add(out.node, n, true), add(out.batch, n, disjoint)});
  }
  for (size_t r = 0; r < in.indptr.size(); ++r) {
    const int64_t n = append_counts(sample.hop_edges(r), &out.num_edges);
    edges.push_back({add(out.row, n, true), add(out.col, n, true),
                     add(out.edge, n, in.return_edge_id)});
  }
  sample.write(nodes.data(), edges.data());
  return out;
}

HeteroOutputs sample(const HeteroInputs& in,
                     const Tensor& key,
                     SampleOptions options) {
  options.key = read_key(in.op, key);
  const std::vector<NodeType> types = read_types(in, options);
  const ScalarType kInt = ScalarType::Int;
  const bool none = in.indptr.empty();
  return dispatch_graph(
      in.op, none ? kInt : in.indptr[0].scalar_type(),
      none ? kInt : in.indices[0].scalar_type(), [&](auto indptr, auto index) {
        using indptr_t = decltype(indptr);
        using index_t = decltype(index);
        const auto relations =
            read_relations<indptr_t, index_t>(in, options.num_hops);
        const NeighborSampleArgs<indptr_t, index_t> args{
            relations.data(), types.data(), static_cast<int>(relations.size()),
            static_cast<int>(types.size()), options};
        const auto sample = make_neighbor_sample(args);
        const Status status = sample->run();
        check_status(in, status, sample->fault());
        return write_outputs(in, *sample, options.disjoint);
      });
}

// The items of a vector, and -1 up to a size.
Tensor padded(const Tensor& items, int64_t size) {
  Tensor out = empty_vector(size);
  const int64_t* from = items.const_data_ptr<int64_t>();
  int64_t* to = out.mutable_data_ptr<int64_t>();
  std::fill(std::copy(from, from + items.numel(), to), to + size, -1);
  return out;
}

PaddedSample sample_padded(const HeteroInputs& in,
                           const Tensor& key,
                           SampleOptions options,
                           int64_t max_edges) {
  const NodeType type = read_types(in, options)[0];
  const auto [row, col, node, edge, batch, num_nodes, num_edges] =
      first_of_each(sample(in, key, options));
  STD_TORCH_CHECK(row.numel() <= max_edges, in.op,
                  ": a sample has more than 'max_edges' = ", max_edges,
                  " edges (at least ", row.numel(), ")");
  const int64_t max_nodes = most_nodes(type, options.disjoint, max_edges);
  const int64_t none[3] = {0, 0, 0};
  Tensor fault = empty_vector(3);
  std::copy(none, none + 3, fault.mutable_data_ptr<int64_t>());
  return {padded(row, max_edges),
          padded(col, max_edges),
          padded(node, max_nodes),
          padded(edge, in.return_edge_id ? max_edges : 0),
          padded(batch, options.disjoint ? max_nodes : 0),
          num_nodes,
          num_edges,
          fault};
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gsample, CPU, m) {
  m.impl("neighbor_sample", TORCH_BOX(&neighbor_sample<sample>));
  m.impl("neighbor_sample_padded",
         TORCH_BOX(&neighbor_sample_padded<sample_padded>));
  m.impl("hetero_neighbor_sample", TORCH_BOX(&hetero_neighbor_sample<sample>));
}

}  // namespace gsample
