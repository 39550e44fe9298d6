// The operator hetero_sample_hops on the CPU: arguments and allocation around
// cpu/hetero_sample_hops.h.
#include "hetero_sample_hops.h"

#include <torch/csrc/stable/library.h>

#include "../cpu/hetero_sample_hops.h"
#include "neighbor_fault.h"
#include "output_pool.h"

namespace gsample {

namespace {

void check(const HeteroInputs& in, Status status, const Fault& fault) {
  STD_TORCH_CHECK(fault.kind.load() != Fault::kOverflow, in.op, ": a hop has ",
                  fault.value,
                  " edges or nodes, more than it can count; use fewer seeds or "
                  "smaller fan-outs");
  check_status(in, status, fault);
}

Tensor pooled_like(const Tensor& like, int64_t size) {
  return pooled_tensor({size}, like.scalar_type(), like.element_size());
}

// One hop. Outputs are appended to `out`.
template <typename indptr_t, typename index_t>
void sample_hop(const LayerInputs& in,
                int hop,
                HeteroHopSampler<indptr_t, index_t>& sampler,
                HeteroHops* out) {
  const HeteroInputs& graph = in.graph;
  auto& [indptrs, rows, edges, nodes, batches] = *out;
  const auto run = [&](Status status) {
    check(graph, status, sampler.fault());
  };
  std::vector<indptr_t*> begin;
  for (size_t r = 0; r < graph.indptr.size(); ++r) {
    const int64_t n = sampler.num_columns(static_cast<int>(graph.dst[r]));
    indptrs.push_back(pooled_like(graph.indptr[r], n + 1));
    begin.push_back(indptrs.back().template mutable_data_ptr<indptr_t>());
  }
  run(sampler.count(hop, begin.data()));
  std::vector<LayerOutput<index_t>> to;
  for (size_t r = 0; r < graph.indptr.size(); ++r) {
    const int64_t n = sampler.num_columns(static_cast<int>(graph.dst[r]));
    edges.push_back(pooled_vector(begin[r][n]));
    rows.push_back(pooled_like(graph.indices[r], begin[r][n]));
    to.push_back({edges.back().template mutable_data_ptr<int64_t>(),
                  rows.back().template mutable_data_ptr<index_t>()});
  }
  const bool next = in.has_frontier(hop);
  run(sampler.select(in.keys[hop], static_cast<uint32_t>(in.call_id[hop]),
                     to.data(), next));
  for (size_t t = 0; next && t < graph.num_nodes.size(); ++t) {
    const bool disjoint = in.options.disjoint;
    const int64_t n = sampler.num_columns(static_cast<int>(t));
    nodes.push_back(pooled_vector(n));
    batches.push_back(pooled_vector(disjoint ? n : 0));
    sampler.columns(
        static_cast<int>(t), nodes.back().template mutable_data_ptr<int64_t>(),
        disjoint ? batches.back().template mutable_data_ptr<int64_t>()
                 : nullptr);
  }
}

HeteroHops sample_cpu(const LayerInputs& in) {
  const HeteroInputs& graph = in.graph;
  SampleOptions options = in.options;
  options.num_threads = threads_of(options.num_threads);
  const std::vector<NodeType> types = read_types(graph, options);
  const ScalarType kInt = ScalarType::Int;
  const bool none = graph.indptr.empty();
  return dispatch_graph(
      graph.op, none ? kInt : graph.indptr[0].scalar_type(),
      none ? kInt : graph.indices[0].scalar_type(),
      [&](auto indptr, auto index) {
        using indptr_t = decltype(indptr);
        using index_t = decltype(index);
        const auto relations =
            read_relations<indptr_t, index_t>(graph, options.num_hops);
        const NeighborSampleArgs<indptr_t, index_t> args{
            relations.data(), types.data(), static_cast<int>(relations.size()),
            static_cast<int>(types.size()), options};
        HeteroHopSampler<indptr_t, index_t> sampler(
            args, in.frontier == Frontier::kNodes);
        HeteroHops out;
        check(graph, sampler.begin(), sampler.fault());
        for (int hop = 0; hop < in.num_hops(); ++hop)
          sample_hop(in, hop, sampler, &out);
        return out;
      });
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gsample, CPU, m) {
  m.impl("hetero_sample_hops", TORCH_BOX(&hetero_sample_hops<sample_cpu>));
}

}  // namespace gsample
