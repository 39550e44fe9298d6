// The operator sample_hops on a GPU: arguments around hop_call_cuda.h.
#include <torch/csrc/stable/library.h>

#include "hop_call_cuda.h"
#include "list_cache_cuda.h"
#include "sample_hops.h"

namespace gsample {

namespace {

constexpr const char* kOp = kSampleHops;

[[noreturn]] void raise_seed(const HopInputs& in,
                             int64_t where,
                             int64_t value) {
  STD_TORCH_CHECK(false, kOp, ": 'seeds' must be in [0, ", in.num_nodes(),
                  ") (got ", value, " at position ", where, ")");
  throw 0;  // not reached
}

void raise_input(const HopInputs& in, const Report& report) {
  switch (report.fault) {
    case Report::kId:
      raise_seed(in, report.where, report.value);
    case Report::kIndptr:
      STD_TORCH_CHECK(false, kOp, ": 'indptr' must ascend from 0 to the ",
                      report.value, " edges (it does not at column ",
                      report.where, ")");
    case Report::kIndices:
      STD_TORCH_CHECK(false, kOp, ": 'indices' must be in [0, ", report.value,
                      ") (it is not at edge ", report.where, ")");
    default:
      break;
  }
}

// The kernel's view of the arguments.
template <typename indptr_t, typename index_t>
SampleHopsCuda<indptr_t, index_t> read_arguments(const HopInputs& in) {
  SampleHopsCuda<indptr_t, index_t> args{};
  args.graph =
      with_cache(in.relation<indptr_t, index_t>(), in.indptr, in.indices);
  args.graph.indptr = readable<indptr_t>(kOp, in.indptr, in.seeds, "seeds");
  args.graph.indices = readable<index_t>(kOp, in.indices, in.seeds, "seeds");
  if (in.cum_weight)
    args.graph.cum_weight =
        readable<int64_t>(kOp, *in.cum_weight, in.seeds, "seeds");
  args.num_nodes = in.num_nodes();
  args.seeds = in.seeds.const_data_ptr<int64_t>();
  args.num_seeds = in.seeds.numel();
  args.options.num_hops = static_cast<int>(in.fanouts.size());
  args.options.replace = in.replace;
  args.frontier = in.frontier;
  args.sorted = in.sorted;
  args.next = in.return_frontier;
  args.weighted = in.cum_weight.has_value();
  return args;
}

template <typename indptr_t, typename index_t>
Hops sample(const HopInputs& in) {
  const DeviceScope scope(kOp, in.seeds);
  auto args = read_arguments<indptr_t, index_t>(in);
  if (args.num_nodes == 0 && args.num_seeds > 0) {
    int64_t seed;
    copy_to_host(&seed, args.seeds, sizeof seed, scope.stream());
    raise_seed(in, 0, seed);
  }
  const NodeType nodes{args.num_nodes, args.seeds, nullptr, args.num_seeds};
  const HopCapacity capacity = first_hop_capacity(
      std::vector{args.graph}, {nodes}, args.options, in.frontier);
  HopCall call(kOp, scope, in.seeds, args);
  Words words;
  const size_t fanouts = words.add(in.fanouts);
  const size_t streams = words.add(in.streams);
  Tensor arguments, bits;
  int64_t* to = call.words_of("arguments", &arguments, words.size());
  words.store(to, scope.stream());
  args.graph.fanouts = to + fanouts;
  args.streams = reinterpret_cast<const uint64_t*>(to + streams);
  args.bits = reinterpret_cast<uint64_t*>(
      call.words_of("bits", &bits, in.sorted ? args.num_nodes / 64 + 1 : 0));
  raise_input(in, call.run(capacity));
  const auto [indptr, row, edge, node, batch] =
      call.outputs({0}, in.indptr.scalar_type(), in.indices.scalar_type());
  return {indptr, row, edge, node};
}

Hops sample_hops_cuda(const HopInputs& in) {
  return dispatch_graph(
      kOp, in.indptr.scalar_type(), in.indices.scalar_type(),
      [&](auto indptr_type, auto index_type) {
        return sample<decltype(indptr_type), decltype(index_type)>(in);
      });
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(GSAMPLE_CUDA_LIBRARY, GSAMPLE_CUDA_KEY, m) {
  m.impl("sample_hops", TORCH_BOX(&sample_hops<sample_hops_cuda>));
}

}  // namespace gsample
