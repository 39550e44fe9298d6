// The operator neighbor_sample on a GPU: checks, capacities and memory around
// cuda/neighbor_sample.h.
#include "../cuda/neighbor_sample.h"

#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "device_cuda.h"

namespace gsample {

namespace {

constexpr const char* kOp = "neighbor_sample";
constexpr int64_t kMaxEdges = INT32_MAX - 1;  // positions have 31 bits
constexpr int64_t kFirstTry = int64_t{1} << 24;

using Outputs =
    std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

struct Inputs {
  const Tensor& indptr;
  const Tensor& indices;
  const Tensor& seeds;
  const std::vector<int64_t>& fanouts;
  const Tensor& key;
  int64_t call_id;
  const std::optional<Tensor>& cum_weight;
  const std::optional<Tensor>& edge_time;
  const std::optional<Tensor>& seed_time;
  std::optional<int64_t> time_window;
  bool last;
  bool replace;
  bool disjoint;
  bool return_edge_id;

  int64_t num_nodes() const { return indptr.numel() - 1; }
};

void check_optional(const char* name,
                    const std::optional<Tensor>& tensor,
                    const Inputs& in,
                    int64_t size) {
  if (!tensor.has_value())
    return;
  int64_vector(kOp, name, *tensor, size);
  check_device(kOp, name, *tensor, in.indptr);
}

void check(const Inputs& in) {
  STD_TORCH_CHECK(in.indptr.dim() == 1 && in.indptr.numel() > 0, kOp,
                  ": 'indptr' must be a vector of at least one element");
  check_vector(kOp, "indptr", in.indptr, in.indptr.scalar_type());
  check_vector(kOp, "indices", in.indices, in.indices.scalar_type());
  check_vector(kOp, "seeds", in.seeds, ScalarType::Long);
  check_device(kOp, "indices", in.indices, in.indptr);
  check_device(kOp, "seeds", in.seeds, in.indptr);
  const int64_t hops = static_cast<int64_t>(in.fanouts.size());
  STD_TORCH_CHECK(hops <= kMaxHops, kOp, ": at most ", kMaxHops,
                  " hops on a GPU (got ", hops, ")");
  STD_TORCH_CHECK(
      in.call_id >= 0 && in.call_id + hops <= kMaxCalls, kOp,
      ": 'call_id' plus the number of hops must be in [0, 65536] (got ",
      in.call_id, ")");
  check_optional("cum_weight", in.cum_weight, in,
                 cum_weight_size(in.indices.numel(), in.num_nodes()));
  check_optional("edge_time", in.edge_time, in, in.indices.numel());
  check_optional("seed_time", in.seed_time, in, in.seeds.numel());
  STD_TORCH_CHECK(in.edge_time.has_value() == in.seed_time.has_value(), kOp,
                  ": 'edge_time' and 'seed_time' must be given together");
  STD_TORCH_CHECK(!in.edge_time.has_value() || in.disjoint, kOp,
                  ": temporal sampling needs 'disjoint' trees");
  STD_TORCH_CHECK(!in.time_window.has_value() || *in.time_window >= 0, kOp,
                  ": 'time_window' must not be negative");
  const int64_t num_seeds = in.seeds.numel();
  STD_TORCH_CHECK(
      num_seeds < INT32_MAX &&
          (!in.disjoint ||
           num_seeds <= INT64_MAX / std::max<int64_t>(in.num_nodes(), 1)),
      kOp, ": too many seeds (", num_seeds, ")");
}

// Room to try first. Fan-outs bound the edges of a sample; where they do not
// (or say little), a second try with what the sample asked for is cheaper than
// memory for the worst case.
int64_t first_capacity(const Inputs& in) {
  const int64_t degree =
      in.indices.numel() / std::max<int64_t>(in.num_nodes(), 1) + 1;
  int64_t frontier = in.seeds.numel(), total = 0;
  bool bounded = true;
  for (const int64_t fanout : in.fanouts) {
    bounded &= fanout >= 0;
    const int64_t k = fanout >= 0 ? fanout : degree;
    if (frontier > 0 && k > kFirstTry / frontier)
      return kFirstTry;
    frontier *= k;
    total += frontier;
    if (!in.disjoint)
      frontier = std::min(frontier, in.num_nodes());
  }
  constexpr int64_t kSpare = 4096;
  return std::min(bounded ? total : 2 * total + kSpare, kFirstTry);
}

[[noreturn]] void raise(const Inputs& in, const SampleReport& report) {
  const int64_t value = report.value, where = report.where;
  switch (report.fault) {
    case SampleReport::kSeed:
      STD_TORCH_CHECK(false, kOp, ": 'seeds' must be in [0, ", in.num_nodes(),
                      ") (got ", value, " at position ", where, ")");
    case SampleReport::kIndptr:
      STD_TORCH_CHECK(false, kOp, ": 'indptr' must ascend from 0 to the ",
                      value, " edges (it does not at column ", where, ")");
    case SampleReport::kIndices:
      STD_TORCH_CHECK(false, kOp, ": 'indices' must be in [0, ", value,
                      ") (it is not at edge ", where, ")");
    default:
      STD_TORCH_CHECK(false, kOp,
                      ": a sample must have less than 2^31 edges "
                      "(this one has ",
                      value, "); use fewer seeds or smaller fan-outs");
  }
  throw 0;  // not reached
}

Tensor host_vector(const int64_t* values, int64_t size) {
  Tensor out = empty_vector(size);
  std::copy(values, values + size, out.mutable_data_ptr<int64_t>());
  return out;
}

// Memory of a call, and the kernel's view of it.
template <typename indptr_t, typename index_t>
class Call {
 public:
  explicit Call(const Inputs& in) : in_(in), scope_(kOp, in.indptr) {
    args_.indptr = in.indptr.const_data_ptr<indptr_t>();
    args_.indices = in.indices.const_data_ptr<index_t>();
    args_.num_nodes = in.num_nodes();
    args_.num_edges = in.indices.numel();
    args_.seeds = in.seeds.const_data_ptr<int64_t>();
    args_.num_seeds = in.seeds.numel();
    std::copy(in.fanouts.begin(), in.fanouts.end(), args_.fanouts);
    args_.num_hops = static_cast<int>(in.fanouts.size());
    args_.cum_weight = pointer(in.cum_weight);
    args_.edge_time = pointer(in.edge_time);
    args_.seed_time = pointer(in.seed_time);
    args_.last = in.last;
    args_.has_window = in.time_window.has_value();
    args_.window = in.time_window.value_or(0);
    args_.replace = in.replace;
    args_.disjoint = in.disjoint;
    args_.call_id = static_cast<uint32_t>(in.call_id);
    if (on_device_of(in.key, in.indptr))
      args_.device_key = device_key(in.key);
    else
      args_.key = read_key(kOp, in.key);
  }

  Outputs run() {
    for (int64_t capacity = first_capacity(in_);;) {
      const SampleReport report = sample(capacity);
      const bool retry =
          report.fault == SampleReport::kCapacity && report.value <= kMaxEdges;
      if (report.fault == SampleReport::kNone)
        return outputs(report);
      if (!retry)
        raise(in_, report);
      capacity = std::min(std::max(report.value, 2 * capacity), kMaxEdges);
    }
  }

 private:
  SampleReport sample(int64_t max_edges) {
    row_ = col_ = edge_ = node_ = batch_ = key_ = value_ = taken_ = Tensor();
    const int64_t seeds = args_.num_seeds;
    const int64_t distinct =
        in_.disjoint ? max_edges : std::min(max_edges, args_.num_nodes);
    args_.max_edges = max_edges;
    args_.max_nodes = seeds + distinct;
    args_.row = vector(&row_, max_edges);
    args_.col = vector(&col_, max_edges);
    args_.edge = vector(&edge_, in_.return_edge_id ? max_edges : 0);
    args_.node = vector(&node_, args_.max_nodes);
    args_.batch = vector(&batch_, in_.disjoint ? args_.max_nodes : 0);
    const uint64_t capacity = NodeTable::capacity_for(args_.max_nodes);
    args_.table.capacity = capacity;
    args_.table.key = reinterpret_cast<uint64_t*>(vector(&key_, capacity));
    value_ = device_vector(in_.seeds, capacity, ScalarType::Int);
    args_.table.value =
        reinterpret_cast<uint32_t*>(value_.mutable_data_ptr<int32_t>());
    const bool in_turn = in_.cum_weight.has_value() && !in_.replace;
    args_.taken = reinterpret_cast<TakenWeight*>(
        vector(&taken_, in_turn ? 2 * max_edges : 0));
    const LaunchShape shape = neighbor_sample_shape(args_);
    Tensor totals, memory;
    args_.totals = vector(&totals, 2 * shape.blocks);
    args_.report = reinterpret_cast<SampleReport*>(
        vector(&memory, sizeof(SampleReport) / sizeof(int64_t)));
    neighbor_sample(args_, shape, scope_.stream());
    SampleReport report;
    copy_to_host(&report, args_.report, sizeof report, scope_.stream());
    return report;
  }

  static const int64_t* pointer(const std::optional<Tensor>& tensor) {
    return tensor.has_value() ? tensor->const_data_ptr<int64_t>() : nullptr;
  }

  // A key that the kernel reads when it runs: in a CUDA graph, each replay may
  // have another.
  static const int64_t* device_key(const Tensor& key) {
    STD_TORCH_CHECK(key.scalar_type() == ScalarType::Long && key.dim() == 2 &&
                        key.size(0) == 1 && key.size(1) == 3 &&
                        key.is_contiguous(),
                    kOp, ": 'key' must be a contiguous int64 tensor [1, 3]");
    return key.const_data_ptr<int64_t>();
  }

  // Memory that is null if it has no elements.
  int64_t* vector(Tensor* tensor, int64_t size) {
    *tensor = device_vector(in_.seeds, size);
    return size == 0 ? nullptr : tensor->mutable_data_ptr<int64_t>();
  }

  Outputs outputs(const SampleReport& report) const {
    const int hops = args_.num_hops;
    int64_t nodes = report.hop_nodes[0], edges = 0;
    for (int hop = 0; hop < hops; ++hop) {
      nodes += report.hop_nodes[hop + 1];
      edges += report.hop_edges[hop];
    }
    return {first_items(row_, edges),
            first_items(col_, edges),
            first_items(node_, nodes),
            first_items(edge_, in_.return_edge_id ? edges : 0),
            first_items(batch_, in_.disjoint ? nodes : 0),
            host_vector(report.hop_nodes, hops + 1),
            host_vector(report.hop_edges, hops)};
  }

  const Inputs& in_;
  const DeviceScope scope_;
  NeighborSampleCuda<indptr_t, index_t> args_{};
  Tensor row_, col_, edge_, node_, batch_, key_, value_, taken_;
};

Outputs neighbor_sample_cuda(Tensor indptr,
                             Tensor indices,
                             Tensor seeds,
                             std::vector<int64_t> fanouts,
                             Tensor key,
                             int64_t call_id,
                             std::optional<Tensor> cum_weight,
                             std::optional<Tensor> edge_time,
                             std::optional<Tensor> seed_time,
                             std::optional<int64_t> time_window,
                             std::string temporal_strategy,
                             bool replace,
                             bool disjoint,
                             bool return_edge_id,
                             int64_t) {
  STD_TORCH_CHECK(temporal_strategy == "uniform" || temporal_strategy == "last",
                  kOp,
                  ": 'temporal_strategy' must be 'uniform' or 'last' (got '",
                  temporal_strategy, "')");
  const Inputs in{indptr,
                  indices,
                  seeds,
                  fanouts,
                  key,
                  call_id,
                  cum_weight,
                  edge_time,
                  seed_time,
                  time_window,
                  temporal_strategy == "last",
                  replace,
                  disjoint,
                  return_edge_id};
  check(in);
  return dispatch_graph(
      kOp, indptr.scalar_type(), indices.scalar_type(),
      [&](auto indptr_item, auto index_item) {
        return Call<decltype(indptr_item), decltype(index_item)>(in).run();
      });
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(GSAMPLE_CUDA_LIBRARY, GSAMPLE_CUDA_KEY, m) {
  m.impl("neighbor_sample", TORCH_BOX(&neighbor_sample_cuda));
}

}  // namespace gsample
