// The operator sample_layers on the CPU: arguments and allocation around
// cpu/sample_hops.h.
#include "sample_layers.h"

#include <torch/csrc/stable/library.h>

#include "../cpu/sample_hops.h"
#include "neighbor_fault.h"
#include "output_pool.h"

namespace gsample {

namespace {

void check(const LayerInputs& in, Status status, const Fault& fault) {
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
                HopSampler<indptr_t, index_t>& sampler,
                Layers* out) {
  auto& [indptrs, rows, edges, nodes, batches] = *out;
  const auto run = [&](Status status) { check(in, status, sampler.fault()); };
  std::vector<indptr_t*> begin;
  for (size_t r = 0; r < in.num_relations(); ++r) {
    const int64_t n = sampler.num_columns(static_cast<int>(in.dst(r)));
    indptrs.push_back(pooled_like(in.at(r, GraphInputs::kIndptr), n + 1));
    begin.push_back(indptrs.back().template mutable_data_ptr<indptr_t>());
  }
  run(sampler.count(hop, begin.data()));
  std::vector<HopOutput<index_t>> to;
  for (size_t r = 0; r < in.num_relations(); ++r) {
    const int64_t n = sampler.num_columns(static_cast<int>(in.dst(r)));
    edges.push_back(pooled_vector(begin[r][n]));
    rows.push_back(pooled_like(in.at(r, GraphInputs::kIndices), begin[r][n]));
    to.push_back({edges.back().template mutable_data_ptr<int64_t>(),
                  rows.back().template mutable_data_ptr<index_t>()});
  }
  const bool next = in.has_frontier(hop);
  run(sampler.select(in.streams(hop), in.first_key(hop).batch != kEpochScope,
                     to.data(), next));
  for (size_t t = 0; next && t < in.num_types(); ++t) {
    const int64_t n = sampler.num_columns(static_cast<int>(t));
    nodes.push_back(pooled_vector(n));
    int64_t* tree = nullptr;
    if (in.options.disjoint) {
      batches.push_back(pooled_vector(n));
      tree = batches.back().template mutable_data_ptr<int64_t>();
    }
    sampler.columns(static_cast<int>(t),
                    nodes.back().template mutable_data_ptr<int64_t>(), tree);
  }
}

Layers sample_cpu(const LayerInputs& in) {
  const SampleOptions& options = in.options;
  const std::vector<NodeType> types = read_types(in, options.disjoint);
  return dispatch_graph(in, [&](auto indptr, auto index) {
    using indptr_t = decltype(indptr);
    using index_t = decltype(index);
    const auto relations = read_relations<indptr_t, index_t>(
        in, in.fanouts, options.num_hops, cpu_address);
    const NeighborSampleArgs<indptr_t, index_t> args{
        relations.data(), types.data(), static_cast<int>(relations.size()),
        static_cast<int>(types.size()), options};
    const auto sampler = make_hop_sampler(args, in.frontier, in.sorted);
    Layers out;
    check(in, sampler->begin(), sampler->fault());
    for (int hop = 0; hop < options.num_hops; ++hop)
      sample_hop(in, hop, *sampler, &out);
    return out;
  });
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gsample, CPU, m) {
  m.impl("sample_layers", TORCH_BOX(&sample_layers<sample_cpu>));
}

}  // namespace gsample
