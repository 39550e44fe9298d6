// The operators neighbor_sample and hetero_neighbor_sample on a GPU, padded or
// not: arguments, capacities and memory around cuda/neighbor_sample.h.
#include "../cuda/neighbor_sample.h"

#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "../cuda/pad_sample.h"
#include "device_cuda.h"
#include "list_cache_cuda.h"
#include "neighbor_fault_cuda.h"
#include "neighbor_sample_padded.h"
#include "relation_edges_cuda.h"
#include "sample_memory_cuda.h"

namespace gsample {

namespace {

constexpr int64_t kReportWords = sizeof(Report) / sizeof(int64_t);

[[noreturn]] void raise(const HeteroInputs& in, const Report& report) {
  raise_input(in, report);
  STD_TORCH_CHECK(false, in.op,
                  ": a sample must have less than 2^31 edges (this one has ",
                  report.value, "); use fewer seeds or smaller fan-outs");
  throw 0;  // not reached
}

// Memory of a call, and the kernel's view of it.
template <typename indptr_t, typename index_t>
class Call {
 public:
  Call(const HeteroInputs& in, const Tensor& key, const SampleOptions& options)
      : in_(in),
        like_(in.seeds.empty() ? key : in.seeds[0]),
        scope_(in.op, like_),
        types_(read_types(in, options)),
        relations_(read_relations<indptr_t, index_t>(in, options.num_hops)) {
    args_.options = options;
    args_.num_relations = static_cast<int>(relations_.size());
    args_.num_types = static_cast<int>(types_.size());
    if (on_device_of(key, like_) && key.is_cuda())
      args_.device_key = device_key(key);
    else
      args_.options.key = read_key(in.op, key);
    check_devices();
    int64_t num_trees = 0;
    for (const NodeType& type : types_) {
      sampled_.push_back(
          {type, num_trees, args_.num_nodes, nullptr, nullptr, 0});
      num_trees += type.num_seeds;
      args_.num_nodes += type.num_nodes;
    }
    num_trees_ = num_trees;
    STD_TORCH_CHECK(!options.disjoint || num_trees == 0 ||
                        args_.num_nodes < INT64_MAX / num_trees,
                    in.op, ": too many seeds (", num_trees, ")");
    for (const auto& relation : relations_)
      args_.weighted |= relation.cum_weight != nullptr;
  }

  HeteroOutputs run() {
    Capacity capacity = first_capacity(relations_, types_, args_.options);
    for (;;) {
      sample(capacity);
      const bool retry =
          report_.fault == Report::kOverflow && report_.value <= kMaxEdges;
      if (report_.fault == Report::kNone)
        return outputs();
      if (!retry)
        raise(in_, report_);
      capacity = capacity_for(
          types_, args_.options.disjoint,
          std::min(std::max(report_.value, 2 * capacity.edges), kMaxEdges));
    }
  }

  // Nothing waits: a CUDA graph may hold it.
  PaddedOutputs run_padded(const std::vector<int64_t>& max_edges) {
    max_edges_ = max_edges;
    start({sum(max_edges),
           most_nodes(in_, types_, args_.options.disjoint, max_edges)});
    RelationOutputs edges;
    for (const int64_t most : max_edges)
      if (args_.num_relations == 1)
        edges.add(row_, col_, edge_);
      else
        edges.add(like_, most, in_.return_edge_id);
    const auto matrix = [&](const char* what, int64_t rows, int64_t cols) {
      return device_tensor(what, like_, {rows, cols}, ScalarType::Long, 8);
    };
    const int hops = args_.options.num_hops, types = args_.num_types;
    Tensor num_nodes = matrix("num_nodes", types, hops + 1);
    Tensor num_edges = matrix("num_edges", args_.num_relations, hops);
    Tensor fault = device_vector("fault", like_, 4), arguments;
    pad_sample(
        {args_.report, edges.split(args_, like_, &arguments, scope_.stream()),
         args_.node_end, args_.types, types,
         num_nodes.mutable_data_ptr<int64_t>(),
         num_edges.mutable_data_ptr<int64_t>(),
         fault.mutable_data_ptr<int64_t>()},
        scope_.stream());
    return {edges.row, edges.col, node_,     edges.edge,
            batch_,    num_nodes, num_edges, fault};
  }

 private:
  // Seeds and their times are on the device. It reads the graph there or in
  // pinned memory.
  void check_devices() {
    for (const Tensors* tensors : {&in_.seeds, &in_.seed_time})
      for (const Tensor& tensor : *tensors)
        check_device(in_.op, "seeds' and 'seed_time", tensor, like_,
                     "seeds[0]");
    for (size_t r = 0; r < relations_.size(); ++r) {
      auto& relation = relations_[r];
      relation.indptr = graph_data<indptr_t>(in_.indptr[r]);
      relation.indices = graph_data<index_t>(in_.indices[r]);
      if (relation.cum_weight != nullptr)
        relation.cum_weight = graph_data<int64_t>(in_.cum_weight[r]);
      if (relation.edge_time != nullptr)
        relation.edge_time = graph_data<int64_t>(in_.edge_time[r]);
    }
  }

  template <typename item_t>
  const item_t* graph_data(const Tensor& tensor) const {
    return readable<item_t>(in_.op, tensor, like_, "seeds");
  }

  // A key that the kernel reads when it runs: in a CUDA graph, each replay may
  // have another.
  const int64_t* device_key(const Tensor& key) const {
    STD_TORCH_CHECK(key.scalar_type() == ScalarType::Long && key.dim() == 2 &&
                        key.size(0) == 1 && key.size(1) == 3 &&
                        key.is_contiguous(),
                    in_.op, ": 'key' must be a contiguous int64 tensor [1, 3]");
    return key.const_data_ptr<int64_t>();
  }

  // Memory that is null if it has no elements.
  int64_t* vector(const char* what, Tensor* tensor, int64_t size) const {
    *tensor = device_vector(what, like_, size);
    return size == 0 ? nullptr : tensor->mutable_data_ptr<int64_t>();
  }

  void sample(const Capacity& capacity) {
    start(capacity);
    read_back();
  }

  void start(const Capacity& capacity) {
    try {
      allocate(capacity);
    } catch (const NoMemory& error) {
      throw in_all(error, capacity);
    }
    const LaunchShape shape = neighbor_sample_shape(args_);
    args_.totals =
        vector("totals", &totals_, 2 * relations_.size() * shape.blocks);
    store_graph(&arguments_);
    int64_t* counts = vector("counts", &counts_, kReportWords + num_ends());
    args_.report = reinterpret_cast<Report*>(counts);
    args_.node_end = counts + kReportWords;
    args_.edge_end = args_.node_end + num_node_ends();
    neighbor_sample(args_, shape, scope_.stream());
  }

  void allocate(const Capacity& capacity) {
    row_ = col_ = edge_ = table_key_ = table_value_ = taken_ = Tensor();
    node_.assign(types_.size(), Tensor());
    batch_ = node_;
    const bool disjoint = args_.options.disjoint;
    args_.max_edges = capacity.edges;
    args_.row = vector("row", &row_, capacity.edges);
    args_.col = vector("col", &col_, capacity.edges);
    args_.edge =
        vector("edge", &edge_, in_.return_edge_id ? capacity.edges : 0);
    for (size_t t = 0; t < types_.size(); ++t) {
      const int64_t size = capacity.nodes[t];
      sampled_[t].node = vector("node", &node_[t], size);
      sampled_[t].batch = vector("batch", &batch_[t], disjoint ? size : 0);
      sampled_[t].max_nodes = size;
    }
    const uint64_t entries = NodeTable::capacity_for(capacity.all_nodes());
    args_.table.capacity = entries;
    args_.table.key =
        reinterpret_cast<uint64_t*>(vector("table_key", &table_key_, entries));
    table_value_ =
        device_vector("table_value", like_, entries, ScalarType::Int);
    args_.table.value =
        reinterpret_cast<uint32_t*>(table_value_.mutable_data_ptr<int32_t>());
    const bool in_turn = args_.weighted && !args_.options.replace;
    args_.taken = reinterpret_cast<TakenWeight*>(
        vector("taken", &taken_, in_turn ? 2 * capacity.edges : 0));
    args_.tree_time = vector("tree_time", &tree_time_,
                             in_.edge_time.empty() ? 0 : num_trees_);
  }

  NoMemory in_all(const NoMemory& error, const Capacity& capacity) const {
    const int64_t nodes = capacity.all_nodes();
    const int64_t of_edge = 2 + in_.return_edge_id + 2 * args_.weighted;
    const int64_t of_node = 1 + args_.options.disjoint;
    const int64_t words = capacity.edges * of_edge + nodes * of_node +
                          NodeTable::capacity_for(nodes) * 3 / 2;
    return error.in_all(capacity.edges, "edges", nodes, "nodes", words);
  }

  std::vector<SampledRelation<indptr_t, index_t>> relations() const {
    std::vector<SampledRelation<indptr_t, index_t>> out;
    for (size_t r = 0; r < relations_.size(); ++r) {
      out.push_back({with_cache(relations_[r], in_.indptr[r], in_.indices[r]),
                     max_edges_.empty() ? -1 : max_edges_[r]});
    }
    return out;
  }

  // Relations, types and fan-outs, as the kernel finds them.
  void store_graph(Tensor* memory) {
    Words words;
    const size_t fanouts = words.add(in_.fanouts);
    std::vector<SampledRelation<indptr_t, index_t>> placed = relations();
    const size_t relations = words.add(placed);
    const size_t types = words.add(sampled_);
    int64_t* to = vector("arguments", memory, words.size());
    for (size_t r = 0; r < placed.size(); ++r)
      placed[r].fanouts = to + fanouts + r * args_.options.num_hops;
    words.set(relations, placed);
    words.store(to, scope_.stream());
    args_.relations =
        reinterpret_cast<const SampledRelation<indptr_t, index_t>*>(to +
                                                                    relations);
    args_.types = reinterpret_cast<const SampledType*>(to + types);
  }

  int64_t num_node_ends() const {
    return (int64_t{args_.options.num_hops} + 2) * args_.num_types;
  }
  int64_t num_ends() const {
    return num_node_ends() +
           int64_t{args_.options.num_hops} * args_.num_relations + 1;
  }

  // Report and counts are next to each other: one copy brings them back.
  void read_back() {
    std::vector<int64_t> back(kReportWords + num_ends());
    copy_to_host(back.data(), args_.report, back.size() * sizeof(int64_t),
                 scope_.stream());
    std::memcpy(&report_, back.data(), sizeof report_);
    const auto first = back.begin() + kReportWords;
    node_end_.assign(first, first + num_node_ends());
    edge_end_.assign(first + num_node_ends(), back.end());
  }

  HeteroOutputs outputs() const {
    HeteroOutputs out;
    const int hops = args_.options.num_hops;
    for (int t = 0; t < args_.num_types; ++t) {
      const int64_t* end = node_end_.data() + t;
      for (int hop = 0; hop <= hops; ++hop, end += args_.num_types)
        out.num_nodes.push_back(end[args_.num_types] - end[0]);
      out.node.push_back(first_items(node_[t], *end));
      out.batch.push_back(
          first_items(batch_[t], args_.options.disjoint ? *end : 0));
    }
    for (int r = 0; r < args_.num_relations; ++r)
      for (int hop = 0; hop < hops; ++hop) {
        const int64_t* end =
            edge_end_.data() + int64_t{hop} * args_.num_relations + r;
        out.num_edges.push_back(end[1] - end[0]);
      }
    if (args_.num_relations == 1) {
      const int64_t n = edge_end_.back();
      out.row = {first_items(row_, n)};
      out.col = {first_items(col_, n)};
      out.edge = {first_items(edge_, in_.return_edge_id ? n : 0)};
    } else if (args_.num_relations > 0) {
      split(&out);
    }
    return out;
  }

  void split(HeteroOutputs* out) const {
    const int hops = args_.options.num_hops;
    RelationOutputs edges;
    for (int r = 0; r < args_.num_relations; ++r) {
      const auto of_hops = out->num_edges.begin() + int64_t{r} * hops;
      edges.add(like_, std::accumulate(of_hops, of_hops + hops, int64_t{0}),
                in_.return_edge_id);
    }
    Tensor arguments;
    split_edges(edges.split(args_, like_, &arguments, scope_.stream()),
                scope_.stream());
    out->row = edges.row;
    out->col = edges.col;
    out->edge = edges.edge;
  }

  const HeteroInputs& in_;
  const Tensor& like_;
  const DeviceScope scope_;
  const std::vector<NodeType> types_;
  std::vector<Relation<indptr_t, index_t>> relations_;
  std::vector<SampledType> sampled_;
  std::vector<int64_t> max_edges_;  // of each relation, or empty
  int64_t num_trees_ = 0;
  NeighborSampleCuda<indptr_t, index_t> args_{};
  Tensor row_, col_, edge_, counts_;
  Tensor totals_, arguments_;
  Tensor table_key_, table_value_, taken_, tree_time_;
  Tensors node_, batch_;
  Report report_;
  std::vector<int64_t> node_end_, edge_end_;
};

// Calls function(call) for the types of a graph.
template <typename function_t>
auto with_call(const HeteroInputs& in,
               const Tensor& key,
               const SampleOptions& options,
               const function_t& function) {
  const ScalarType kInt = ScalarType::Int;
  const bool none = in.indptr.empty();
  return dispatch_graph(
      in.op, none ? kInt : in.indptr[0].scalar_type(),
      none ? kInt : in.indices[0].scalar_type(), [&](auto indptr, auto index) {
        Call<decltype(indptr), decltype(index)> call(in, key, options);
        return function(call);
      });
}

HeteroOutputs sample_cuda(const HeteroInputs& in,
                          const Tensor& key,
                          SampleOptions options) {
  return with_call(in, key, options, [](auto& call) { return call.run(); });
}

PaddedOutputs sample_padded_cuda(const HeteroInputs& in,
                                 const Tensor& key,
                                 SampleOptions options,
                                 const std::vector<int64_t>& max_edges) {
  return with_call(in, key, options,
                   [&](auto& call) { return call.run_padded(max_edges); });
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(GSAMPLE_CUDA_LIBRARY, GSAMPLE_CUDA_KEY, m) {
  m.impl("neighbor_sample", TORCH_BOX(&neighbor_sample<sample_cuda>));
  m.impl("neighbor_sample_padded",
         TORCH_BOX(&neighbor_sample_padded<sample_padded_cuda>));
  m.impl("hetero_neighbor_sample",
         TORCH_BOX(&hetero_neighbor_sample<sample_cuda>));
  m.impl("hetero_neighbor_sample_padded",
         TORCH_BOX(&hetero_neighbor_sample_padded<sample_padded_cuda>));
}

}  // namespace gsample
