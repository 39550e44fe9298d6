// The operator sample_layers on the CPU: arguments and allocation around
// cpu/sample_hops.h.
#include "sample_layers.h"

#include <torch/csrc/stable/library.h>

#include <cstring>
#include <limits>
#include <vector>

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

// An output of all batches, one after another.
template <size_t kField>
Tensor join(const std::vector<Layers>& batches, size_t i) {
  int64_t size = 0;
  for (const Layers& batch : batches)
    size += std::get<kField>(batch)[i].numel();
  const Tensor& like = std::get<kField>(batches[0])[i];
  Tensor all = pooled_like(like, size);
  char* to = static_cast<char*>(all.mutable_data_ptr());
  for (const Layers& batch : batches) {
    const Tensor& part = std::get<kField>(batch)[i];
    const size_t bytes = part.numel() * part.element_size();
    if (bytes > 0)
      std::memcpy(to, part.const_data_ptr(), bytes);
    to += bytes;
  }
  return all;
}

// Where the edges of the columns of all batches begin.
template <typename indptr_t>
Tensor join_pointers(const LayerInputs& in,
                     const std::vector<Layers>& batches,
                     size_t i) {
  int64_t columns = 0, edges = 0;
  for (const Layers& batch : batches) {
    columns += std::get<0>(batch)[i].numel() - 1;
    edges += std::get<1>(batch)[i].numel();
  }
  STD_TORCH_CHECK(edges <= std::numeric_limits<indptr_t>::max(), in.op,
                  ": a hop has ", edges,
                  " edges or nodes, more than it can count; use fewer seeds or "
                  "smaller fan-outs");
  Tensor all = pooled_like(std::get<0>(batches[0])[i], columns + 1);
  indptr_t* to = all.template mutable_data_ptr<indptr_t>();
  *to = 0;
  for (const Layers& batch : batches) {
    const Tensor& part = std::get<0>(batch)[i];
    const indptr_t* from = part.template const_data_ptr<indptr_t>();
    const indptr_t first = *to;
    for (int64_t c = 1; c < part.numel(); ++c)
      *++to = static_cast<indptr_t>(first + from[c]);
  }
  return all;
}

// Where the columns of each batch begin.
Tensor begins(const std::vector<Layers>& batches, size_t i) {
  Tensor ptr = pooled_vector(static_cast<int64_t>(batches.size()) + 1);
  int64_t* to = ptr.mutable_data_ptr<int64_t>();
  *to = 0;
  for (const Layers& batch : batches) {
    to[1] = to[0] + std::get<3>(batch)[i].numel();
    ++to;
  }
  return ptr;
}

// Batch by batch: the threads of a batch share its misses.
Layers sample_each(const LayerInputs& in) {
  std::vector<const int64_t*> ptr;
  for (size_t t = 0; t < in.num_types(); ++t)
    ptr.push_back(read_ptr(in.op, "ptr", (*in.ptr)[t], in.seeds[t].numel()));
  std::vector<Layers> batches;
  for (int64_t b = 0; b < in.num_batches(); ++b) {
    Tensors seeds;
    for (size_t t = 0; t < in.num_types(); ++t)
      seeds.push_back(part_of(in.seeds[t], ptr[t][b], ptr[t][b + 1]));
    const std::optional<Tensors> none;
    batches.push_back(sample_cpu(
        {{{in.op, in.tensors, in.ends, in.num_nodes}, seeds, none, in.fanouts},
         in.options,
         in.keys_of(b),
         in.call_id,
         in.frontier,
         in.sorted,
         in.return_frontier,
         none}));
  }
  Layers out;
  auto& [indptrs, rows, edges, nodes, begin] = out;
  dispatch_graph(in, [&](auto indptr, auto) {
    for (size_t i = 0; i < std::get<0>(batches[0]).size(); ++i) {
      indptrs.push_back(join_pointers<decltype(indptr)>(in, batches, i));
      rows.push_back(join<1>(batches, i));
      edges.push_back(join<2>(batches, i));
    }
  });
  for (size_t i = 0; i < std::get<3>(batches[0]).size(); ++i) {
    nodes.push_back(join<3>(batches, i));
    begin.push_back(begins(batches, i));
  }
  return out;
}

Layers sample(const LayerInputs& in) {
  return in.ptr.has_value() ? sample_each(in) : sample_cpu(in);
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gsample, CPU, m) {
  m.impl("sample_layers", TORCH_BOX(&sample_layers<sample>));
}

}  // namespace gsample
