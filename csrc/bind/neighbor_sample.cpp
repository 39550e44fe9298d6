// The operators neighbor_sample and hetero_neighbor_sample on the CPU, padded
// or not: arguments and allocation around cpu/neighbor_sample.h.
#include "../cpu/neighbor_sample.h"

#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <vector>

#include "neighbor_fault.h"
#include "neighbor_sample_padded.h"
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

PaddedOutputs sample_padded(const HeteroInputs& in,
                            const Tensor& key,
                            SampleOptions options,
                            const std::vector<int64_t>& max_edges) {
  const HeteroOutputs from = sample(in, key, options);
  const std::vector<int64_t> max_nodes =
      most_nodes(in, read_types(in, options), options.disjoint, max_edges);
  const int64_t types = max_nodes.size(), relations = max_edges.size();
  constexpr int64_t kNone[4] = {0, 0, 0, 0};
  PaddedOutputs out{
      {},
      {},
      {},
      {},
      {},
      to_tensor(from.num_nodes.data(), types, options.num_hops + 1),
      to_tensor(from.num_edges.data(), relations, options.num_hops),
      torch::stable::select(to_tensor(kNone, 1, 4), 0, 0)};
  for (int64_t r = 0; r < relations; ++r) {
    const int64_t size = from.row[r].numel(), most = max_edges[r];
    STD_TORCH_CHECK(size <= most, in.op,
                    ": a sample has more than 'max_edges' = ", most,
                    " edges (at least ", size, ") of relation ", r);
    out.row.push_back(padded(from.row[r], most));
    out.col.push_back(padded(from.col[r], most));
    out.edge.push_back(padded(from.edge[r], in.return_edge_id ? most : 0));
  }
  for (int64_t t = 0; t < types; ++t) {
    const int64_t most = max_nodes[t];
    out.node.push_back(padded(from.node[t], most));
    out.batch.push_back(padded(from.batch[t], options.disjoint ? most : 0));
  }
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gsample, CPU, m) {
  m.impl("neighbor_sample", TORCH_BOX(&neighbor_sample<sample>));
  m.impl("neighbor_sample_padded",
         TORCH_BOX(&neighbor_sample_padded<sample_padded>));
  m.impl("hetero_neighbor_sample", TORCH_BOX(&hetero_neighbor_sample<sample>));
  m.impl("hetero_neighbor_sample_padded",
         TORCH_BOX(&hetero_neighbor_sample_padded<sample_padded>));
}

}  // namespace gsample
