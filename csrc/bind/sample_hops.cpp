// The operator sample_hops on the CPU: checks, arguments and allocation around
// cpu/sample_hops.h.
#include "../cpu/sample_hops.h"

#include <torch/csrc/stable/library.h>

#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "check.h"
#include "output_pool.h"

namespace gsample {

namespace {

using Tensors = std::vector<Tensor>;
using Hops = std::tuple<Tensors, Tensors, Tensors, Tensors>;

constexpr const char* kOp = "sample_hops";

Frontier read_frontier(const std::string& name) {
  const std::array<const char*, 4> names{"row", "nodes", "new", "unseen"};
  for (size_t i = 0; i < names.size(); ++i)
    if (name == names[i])
      return static_cast<Frontier>(i);
  STD_TORCH_CHECK(false, kOp,
                  ": 'frontier' must be 'row', 'nodes', 'new' or 'unseen' "
                  "(got '",
                  name, "')");
  throw 0;  // not reached
}

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
            const Tensor& indptr,
            const Tensor& indices,
            const Tensor& seeds,
            const std::vector<uint64_t>& keys,
            bool return_frontier) {
  Tensors indptrs, rows, edges, nodes;
  HopSampler<indptr_t, index_t> sampler(args);
  const auto run = [&](Status status) { check(status, sampler.fault()); };
  run(sampler.begin(int64_vector(kOp, "seeds", seeds, seeds.numel()),
                    seeds.numel()));
  for (int hop = 0; hop < args.num_hops; ++hop) {
    const int64_t n = sampler.num_columns();
    const auto pooled = [](const Tensor& like, int64_t size) {
      return pooled_tensor({size}, like.scalar_type(), like.element_size());
    };
    indptrs.push_back(pooled(indptr, n + 1));
    indptr_t* begin = indptrs.back().template mutable_data_ptr<indptr_t>();
    run(sampler.count(hop, begin));
    const bool next = return_frontier || hop + 1 < args.num_hops;
    edges.push_back(pooled_vector(begin[n]));
    rows.push_back(pooled(indices, begin[n]));
    run(sampler.select(keys[hop],
                       edges.back().template mutable_data_ptr<int64_t>(),
                       rows.back().template mutable_data_ptr<index_t>(), next));
    if (next) {
      nodes.push_back(pooled_vector(sampler.num_columns()));
      sampler.columns(nodes.back().template mutable_data_ptr<int64_t>());
    }
  }
  return {indptrs, rows, edges, nodes};
}

Hops sample_hops(Tensor indptr,
                 Tensor indices,
                 Tensor seeds,
                 std::vector<int64_t> fanouts,
                 Tensors key,
                 std::vector<int64_t> call_id,
                 std::optional<Tensor> cum_weight,
                 std::string frontier,
                 bool sorted,
                 bool replace,
                 bool return_frontier,
                 int64_t num_threads) {
  check_matrix(kOp, indptr, indices);
  const size_t hops = fanouts.size();
  STD_TORCH_CHECK(key.size() == hops && call_id.size() == hops, kOp,
                  ": 'key' and 'call_id' must have one item for each of ", hops,
                  " hops (got ", key.size(), " and ", call_id.size(), ")");
  std::vector<uint64_t> keys;
  for (size_t hop = 0; hop < hops; ++hop) {
    STD_TORCH_CHECK(
        fanouts[hop] >= -1 && (!replace || fanouts[hop] <= INT32_MAX), kOp,
        ": 'fanouts' must be -1 or more, and less than 2^31 with replacement "
        "(got ",
        fanouts[hop], ")");
    keys.push_back(read_stream(kOp, key[hop], call_id[hop], 0));
  }
  const int64_t num_nodes = indptr.numel() - 1, num_edges = indices.numel();
  const int64_t* weight = int64_vector(kOp, "cum_weight", cum_weight,
                                       cum_weight_size(num_edges, num_nodes));
  return dispatch_graph(kOp, indptr.scalar_type(), indices.scalar_type(),
                        [&](auto indptr_type, auto index_type) {
                          using indptr_t = decltype(indptr_type);
                          using index_t = decltype(index_type);
                          const SampleHopsArgs<indptr_t, index_t> args{
                              {indptr.const_data_ptr<indptr_t>(),
                               indices.const_data_ptr<index_t>(), weight,
                               nullptr, fanouts.data(), num_edges, 0, 0},
                              num_nodes,
                              static_cast<int>(hops),
                              read_frontier(frontier),
                              sorted,
                              replace,
                              threads_of(num_threads)};
                          return sample(args, indptr, indices, seeds, keys,
                                        return_frontier);
                        });
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gsample, CPU, m) {
  m.impl("sample_hops", TORCH_BOX(&sample_hops));
}

}  // namespace gsample
