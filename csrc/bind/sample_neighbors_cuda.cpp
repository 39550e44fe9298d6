// The operator sample_neighbors on a GPU: arguments, capacities and memory
// around cuda/neighbor_sample.h.
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
#include "sample_memory_cuda.h"
#include "sample_neighbors.h"
#include "seed_batches_cuda.h"

namespace gsample {

namespace {

constexpr int64_t kReportWords = sizeof(Report) / sizeof(int64_t);

[[noreturn]] void raise(const NeighborInputs& in, const Report& report) {
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
  Call(const NeighborInputs& in,
       const Tensor& key,
       const SampleOptions& options,
       SeedBatchesCuda batches = {})
      : in_(in),
        batches_(std::move(batches)),
        in_trees_(options.disjoint || batches_.many()),
        like_(in.seeds.empty() ? key : in.seeds[0]),
        scope_(in.op, like_),
        types_(read_types(in, options.disjoint)),
        relations_(read_relations<indptr_t, index_t>(
            in,
            in.fanouts,
            options.num_hops,
            [&](const Tensor& tensor) {
              return readable(in.op, tensor, like_, "seeds");
            })) {
    args_.options = options;
    args_.num_relations = static_cast<int>(relations_.size());
    args_.num_types = static_cast<int>(types_.size());
    if (on_device_of(key, like_) && key.is_cuda())
      args_.device_key = device_key(key);
    else if (!batches_.many())
      args_.options.key = read_key(in.op, key);
    check_devices();
    for (const NodeType& type : types_) {
      sampled_.push_back(
          {type, num_trees_, args_.num_nodes, nullptr, nullptr, 0});
      num_trees_ += type.num_seeds;
      args_.num_nodes += type.num_nodes;
    }
    STD_TORCH_CHECK(
        !in_trees_ || args_.num_nodes <
                          INT64_MAX / std::max(num_trees_, batches_.count()),
        in.op, ": too many seeds (", num_trees_, ")");
    for (const auto& relation : relations_)
      args_.weighted |= relation.cum_weight != nullptr;
  }

  NeighborOutputs run() {
    Capacity capacity =
        first_capacity(relations_, types_, in_trees_, args_.options.num_hops);
    for (;;) {
      start(capacity);
      read_back();
      const bool retry =
          report_.fault == Report::kOverflow && report_.value <= kMaxEdges;
      if (report_.fault == Report::kNone)
        return batches_.many() ? batch_outputs() : outputs();
      if (report_.fault == Report::kId)
        report_.where = batches_.in_batch(report_.relation, report_.where);
      if (!retry)
        raise(in_, report_);
      capacity = capacity_for(
          types_, in_trees_,
          std::min(std::max(report_.value, 2 * capacity.edges), kMaxEdges));
    }
  }

  // Never synchronises: a CUDA graph may capture it.
  NeighborOutputs run_padded() {
    const Ints& most = *in_.max_edges;
    start({sum(most), most_nodes(in_, types_, args_.options.disjoint)});
    Outputs out(*this, most);
    Tensor counts = device_vector("counts", like_, num_counts(in_));
    int64_t* const num_nodes = counts.mutable_data_ptr<int64_t>();
    int64_t* const num_edges =
        num_nodes + args_.num_types * (args_.options.num_hops + 1);
    pad_sample({args_.report, out.split(), args_.node_end, args_.types,
                args_.num_types, num_nodes, num_edges,
                num_edges + args_.num_relations * args_.options.num_hops},
               scope_.stream());
    return {out.row, out.col, node_, out.edge, batch_, counts};
  }

 private:
  // Memory of the edges by relation, with fixed slots per relation.
  class Outputs {
   public:
    Outputs(const Call& call, const Ints& sizes) : call_(call), first_{0} {
      for (const int64_t size : sizes)
        first_.push_back(first_.back() + size);
      const int64_t size = first_.back();
      const int64_t ids = call.in_.return_edge_id ? size : 0;
      if (sizes.size() == 1) {  // they stay in place
        row = first_items(call.row_, size);
        col = first_items(call.col_, size);
        edge = first_items(call.edge_, ids);
      } else {
        row = device_vector("row", call.like_, size);
        col = device_vector("col", call.like_, size);
        edge = device_vector("edge", call.like_, ids);
      }
    }

    // Arguments of the kernel that splits the sample by relation.
    SplitEdgesCuda split() {
      const auto& args = call_.args_;
      const int64_t words = static_cast<int64_t>(first_.size());
      arguments_ = device_vector("arguments", call_.like_, words);
      int64_t* first = arguments_.mutable_data_ptr<int64_t>();
      store_arguments(first, first_.data(), words, call_.scope_.stream());
      const bool ids = call_.in_.return_edge_id;
      return {args.row,
              args.col,
              args.edge,
              args.edge_end,
              args.options.num_hops,
              args.num_relations,
              first,
              first_.back(),
              row.mutable_data_ptr<int64_t>(),
              col.mutable_data_ptr<int64_t>(),
              ids ? edge.mutable_data_ptr<int64_t>() : nullptr};
    }

    Tensor row, col, edge;

   private:
    const Call& call_;
    Ints first_;
    Tensor arguments_;
  };

  // Seeds and their times are on the device.
  void check_devices() const {
    const auto check = [&](const Tensors& tensors) {
      for (const Tensor& tensor : tensors)
        check_device(in_.op, "seeds' and 'seed_time", tensor, like_,
                     "seeds[0]");
    };
    check(in_.seeds);
    if (in_.is_temporal())
      check(*in_.seed_time);
  }

  // A key that the kernel reads when it runs: each replay of a CUDA graph may
  // have a different key.
  const int64_t* device_key(const Tensor& key) const {
    STD_TORCH_CHECK(key.scalar_type() == ScalarType::Long && key.dim() == 2 &&
                        key.size(0) == 1 && key.size(1) == 3 &&
                        key.is_contiguous(),
                    in_.op, ": 'key' must be a contiguous int64 tensor [1, 3]");
    return key.const_data_ptr<int64_t>();
  }

  // Memory, or null for zero elements.
  int64_t* vector(const char* what, Tensor* tensor, int64_t size) const {
    *tensor = device_vector(what, like_, size);
    return size == 0 ? nullptr : tensor->mutable_data_ptr<int64_t>();
  }

  void start(const Capacity& capacity) {
    try {
      allocate(capacity);
    } catch (const NoMemory& error) {
      throw in_all(error, capacity);
    }
    neighbor_sample(args_, shape_, scope_.stream());
  }

  void allocate(const Capacity& capacity) {
    row_ = col_ = edge_ = node_ = batch_ = scratch_ = Tensor();
    args_.max_edges = capacity.edges;
    args_.row = vector("row", &row_, capacity.edges);
    args_.col = vector("col", &col_, capacity.edges);
    args_.edge =
        vector("edge", &edge_, in_.return_edge_id ? capacity.edges : 0);
    const int64_t nodes = capacity.all_nodes();
    int64_t* node = vector("node", &node_, nodes);
    int64_t* batch = vector("batch", &batch_, in_trees_ ? nodes : 0);
    for (size_t t = 0; t < types_.size(); ++t) {
      const int64_t size = capacity.nodes[t];
      sampled_[t].node = node;
      sampled_[t].batch = batch;
      sampled_[t].max_nodes = size;
      node += size;
      batch += batch == nullptr ? 0 : size;
    }
    shape_ = neighbor_sample_shape(args_);
    const uint64_t entries = NodeTable::capacity_for(nodes);
    const bool in_turn = args_.weighted && !args_.options.replace;
    GraphWords graph = graph_words();
    int64_t *counts, *arguments, *firsts;
    Scratch scratch;
    scratch.add(&args_.table.entry, NodeTable::kEntryWords * entries);
    scratch.add(&args_.taken, in_turn ? 2 * capacity.edges : 0);
    scratch.add(&args_.tree_time, in_.is_temporal() ? num_trees_ : 0);
    scratch.add(&args_.totals, 2 * relations_.size() * shape_.blocks);
    scratch.add(&counts, kReportWords + num_ends() + batches_.num_begins());
    scratch.add(&arguments, graph.words.size());
    scratch.add(&firsts, batches_.num_firsts());
    scratch_ = scratch.allocate(like_);
    args_.table.capacity = entries;
    args_.report = reinterpret_cast<Report*>(counts);
    args_.node_end = counts + kReportWords;
    args_.edge_end = args_.node_end + num_node_ends();
    store_graph(&graph, arguments);
    args_.batches =
        batches_.view(arguments, counts + kReportWords + num_ends(), firsts);
  }

  NoMemory in_all(const NoMemory& error, const Capacity& capacity) const {
    const int64_t nodes = capacity.all_nodes();
    const int64_t of_edge = 2 + in_.return_edge_id + 2 * args_.weighted;
    const int64_t of_node = 1 + in_trees_;
    const int64_t words =
        capacity.edges * of_edge + nodes * of_node +
        NodeTable::capacity_for(nodes) * NodeTable::kEntryWords;
    return error.in_all(capacity.edges, "edges", nodes, "nodes", words);
  }

  std::vector<SampledRelation<indptr_t, index_t>> relations() const {
    std::vector<SampledRelation<indptr_t, index_t>> out;
    for (size_t r = 0; r < relations_.size(); ++r) {
      out.push_back({with_cache(relations_[r], in_.at(r, GraphInputs::kIndptr),
                                in_.at(r, GraphInputs::kIndices)),
                     in_.is_padded() ? (*in_.max_edges)[r] : -1});
    }
    return out;
  }

  // Relations, types and fan-outs, as the kernel reads them.
  struct GraphWords {
    Words words;
    std::vector<SampledRelation<indptr_t, index_t>> placed;
    size_t fanouts, relations, types;
  };

  GraphWords graph_words() {
    GraphWords graph;
    graph.placed = relations();
    graph.fanouts = graph.words.add(in_.fanouts);
    graph.relations = graph.words.add(graph.placed);
    graph.types = graph.words.add(sampled_);
    batches_.add_words(&graph.words);
    return graph;
  }

  void store_graph(GraphWords* graph, int64_t* to) {
    using Placed = SampledRelation<indptr_t, index_t>;
    for (size_t r = 0; r < graph->placed.size(); ++r)
      graph->placed[r].fanouts =
          to + graph->fanouts + r * args_.options.num_hops;
    graph->words.set(graph->relations, graph->placed);
    if (graph->placed.size() == 1 && sampled_.size() == 1) {
      args_.relation = graph->placed[0];
      args_.type = sampled_[0];
    }
    graph->words.store(to, scope_.stream());
    args_.relations = reinterpret_cast<const Placed*>(to + graph->relations);
    args_.types = reinterpret_cast<const SampledType*>(to + graph->types);
  }

  int64_t num_node_ends() const {
    return (int64_t{args_.options.num_hops} + 2) * args_.num_types;
  }
  int64_t num_ends() const {
    return num_node_ends() +
           int64_t{args_.options.num_hops} * args_.num_relations + 1;
  }

  // Report and counts are adjacent: one copy reads both.
  void read_back() {
    std::vector<int64_t> back(kReportWords + num_ends() +
                              batches_.num_begins());
    copy_to_host(back.data(), args_.report, back.size() * sizeof(int64_t),
                 scope_.stream());
    std::memcpy(&report_, back.data(), sizeof report_);
    const auto first = back.begin() + kReportWords;
    node_end_.assign(first, first + num_node_ends());
    edge_end_.assign(first + num_node_ends(), first + num_ends());
    begins_.assign(first + num_ends(), back.end());
  }

  NeighborOutputs outputs() const {
    const int hops = args_.options.num_hops, types = args_.num_types;
    Tensor counts = empty_vector(num_counts(in_));
    int64_t* count = counts.mutable_data_ptr<int64_t>();
    const int64_t num_nodes = sum(
        count_hops(node_end_.data() + types, types, hops + 1, types, &count));
    Outputs out(*this, count_hops(edge_end_.data() + 1, 1, hops,
                                  args_.num_relations, &count));
    Tensor node = node_, batch = batch_;
    const int64_t in_batch = args_.options.disjoint ? num_nodes : 0;
    if (types == 1) {
      node = first_items(node, num_nodes);
      batch = first_items(batch, in_batch);
    } else {
      node = device_vector("node", like_, num_nodes);
      batch = device_vector("batch", like_, in_batch);
    }
    if (types > 1 || args_.num_relations > 1)
      split_sample({out.split(), args_.node_end + (int64_t{hops} + 1) * types,
                    args_.types, types,
                    types > 1 ? node.mutable_data_ptr<int64_t>() : nullptr,
                    args_.options.disjoint ? batch.mutable_data_ptr<int64_t>()
                                           : nullptr},
                   scope_.stream());
    return {out.row, out.col, node, out.edge, batch, counts};
  }

  NeighborOutputs batch_outputs() const {
    return split_outputs(in_, args_, batches_, begins_, node_end_, edge_end_,
                         like_, scope_.stream());
  }

  const NeighborInputs& in_;
  SeedBatchesCuda batches_;
  const bool in_trees_;  // nodes have the tree of a seed, or of a batch
  const Tensor& like_;
  const DeviceScope scope_;
  const std::vector<NodeType> types_;
  std::vector<Relation<indptr_t, index_t>> relations_;
  std::vector<SampledType> sampled_;
  int64_t num_trees_ = 0;
  NeighborSampleCuda<indptr_t, index_t> args_{};
  LaunchShape shape_;
  Tensor row_, col_, edge_, node_, batch_, scratch_;
  Report report_;
  std::vector<int64_t> node_end_, edge_end_, begins_;
};

NeighborOutputs sample_cuda(const NeighborInputs& in,
                            const Tensor& key,
                            SampleOptions options) {
  return dispatch_graph(in, [&](auto indptr, auto index) {
    Call<decltype(indptr), decltype(index)> call(in, key, options);
    return in.is_padded() ? call.run_padded() : call.run();
  });
}

NeighborOutputs sample_batches_cuda(const NeighborInputs& in,
                                    const SeedBatches& batches,
                                    const Tensor& key,
                                    SampleOptions options) {
  return dispatch_graph(in, [&](auto indptr, auto index) {
    return Call<decltype(indptr), decltype(index)>(
               in, key, options, SeedBatchesCuda(in, batches, key, options))
        .run();
  });
}

struct Cuda {
  static constexpr auto sample = sample_cuda;
  static constexpr auto sample_batches = sample_batches_cuda;
};

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(GSAMPLE_CUDA_LIBRARY, GSAMPLE_CUDA_KEY, m) {
  m.impl("sample_neighbors", TORCH_BOX(&sample_neighbors<Cuda>));
}

}  // namespace gsample
