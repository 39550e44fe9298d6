// The operator sample_hops on the CPU: checks, arguments and allocation around
// cpu/sample_hops.h.
#include "../cpu/sample_hops.h"

#include <torch/csrc/stable/library.h>

#include "output_pool.h"
#include "sample_hops.h"

namespace gsample {

namespace {

constexpr const char* kOp = kSampleHops;

void check(Status status, const Fault& fault) {
  STD_TORCH_CHECK(status != Status::kInterrupted, kOp, ": interrupted");
  if (status == Status::kDone)
    return;
  switch (fault.kind.load()) {
    case Fault::kSeed:
      STD_TORCH_CHECK(false, kOp, ": 'seeds' must be nodes of the graph (got ",
                      fault.value, " at position ", fault.node, ")");
    case Fault::kIndptr:
      STD_TORCH_CHECK(false, kOp, ": 'indptr' must ascend from 0 to the ",
                      fault.value, " edges (it does not at a column near ",
                      fault.node, ")");
    case Fault::kIndices:
      STD_TORCH_CHECK(false, kOp, ": 'indices' must be in [0, ", fault.value,
                      ") (they are not near edge ", fault.node, ")");
    default:
      STD_TORCH_CHECK(false, kOp, ": a hop has ", fault.value,
                      " edges or nodes, more than it can count; use fewer "
                      "seeds or smaller fan-outs");
  }
}

template <typename indptr_t, typename index_t>
Hops sample(const SampleHopsArgs<indptr_t, index_t>& args,
            const HopInputs& in) {
  Tensors indptrs, rows, edges, nodes;
  HopSampler<indptr_t, index_t> sampler(args);
  const auto run = [&](Status status) { check(status, sampler.fault()); };
  run(sampler.begin(in.seeds.const_data_ptr<int64_t>(), in.seeds.numel()));
  for (int hop = 0; hop < args.num_hops; ++hop) {
    const int64_t n = sampler.num_columns();
    const auto pooled = [](const Tensor& like, int64_t size) {
      return pooled_tensor({size}, like.scalar_type(), like.element_size());
    };
    indptrs.push_back(pooled(in.indptr, n + 1));
    indptr_t* begin = indptrs.back().template mutable_data_ptr<indptr_t>();
    run(sampler.count(hop, begin));
    const bool next = in.return_frontier || hop + 1 < args.num_hops;
    edges.push_back(pooled_vector(begin[n]));
    rows.push_back(pooled(in.indices, begin[n]));
    run(sampler.select(in.streams[hop],
                       edges.back().template mutable_data_ptr<int64_t>(),
                       rows.back().template mutable_data_ptr<index_t>(), next));
    if (next) {
      nodes.push_back(pooled_vector(sampler.num_columns()));
      sampler.columns(nodes.back().template mutable_data_ptr<int64_t>());
    }
  }
  return {indptrs, rows, edges, nodes};
}

Hops sample_hops_cpu(const HopInputs& in) {
  return dispatch_graph(kOp, in.indptr.scalar_type(), in.indices.scalar_type(),
                        [&](auto indptr_type, auto index_type) {
                          using indptr_t = decltype(indptr_type);
                          using index_t = decltype(index_type);
                          const SampleHopsArgs<indptr_t, index_t> args{
                              in.relation<indptr_t, index_t>(),
                              in.num_nodes(),
                              static_cast<int>(in.fanouts.size()),
                              in.frontier,
                              in.sorted,
                              in.replace,
                              threads_of(in.num_threads)};
                          return sample(args, in);
                        });
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gsample, CPU, m) {
  m.impl("sample_hops", TORCH_BOX(&sample_hops<sample_hops_cpu>));
}

}  // namespace gsample
