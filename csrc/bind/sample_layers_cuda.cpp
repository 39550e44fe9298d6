// The operator sample_layers on a GPU: arguments around hop_call_cuda.h. A
// homogeneous graph has its own kernels.
#include "../cuda/hetero_sample_hops.h"

#include <torch/csrc/stable/library.h>

#include "hop_call_cuda.h"
#include "list_cache_cuda.h"
#include "neighbor_fault_cuda.h"
#include "sample_layers.h"

namespace gsample {

namespace {

// A tensor like the seeds, or like the graph if there are none.
const Tensor& like_of(const LayerInputs& in) {
  return in.seeds.empty() ? in.tensors[0] : in.seeds[0];
}

// The graph on the device or in pinned memory; seeds and times on the device.
template <typename indptr_t, typename index_t>
std::vector<Relation<indptr_t, index_t>> read_device_relations(
    const LayerInputs& in,
    const Tensor& like) {
  const auto check = [&](const Tensors& tensors) {
    for (const Tensor& tensor : tensors)
      check_device(in.op, "seeds' and 'seed_time", tensor, like, "seeds[0]");
  };
  check(in.seeds);
  if (in.is_temporal())
    check(*in.seed_time);
  return read_relations<indptr_t, index_t>(
      in, in.fanouts, in.options.num_hops, [&](const Tensor& tensor) {
        return readable(in.op, tensor, like, "seeds");
      });
}

// The keys of the draws, [hops][relations][batches].
std::vector<uint64_t> streams_of(const LayerInputs& in) {
  std::vector<uint64_t> out;
  for (int hop = 0; hop < in.options.num_hops; ++hop)
    for (const uint64_t stream : in.streams(hop))
      out.push_back(stream);
  return out;
}

template <typename args_t>
Layers outputs_of(const LayerInputs& in, HopCall<args_t>& call) {
  Ints dst;
  for (size_t r = 0; r < in.num_relations(); ++r)
    dst.push_back(in.dst(r));
  auto [indptr, row, edge, node, batch] = call.outputs(
      dst, in.dtype(GraphInputs::kIndptr), in.dtype(GraphInputs::kIndices));
  return {indptr, row, edge, node, batch};
}

template <typename indptr_t, typename index_t>
Layers sample_plain(const LayerInputs& in) {
  const Tensor& like = like_of(in);
  const DeviceScope scope(in.op, like);
  const std::vector<NodeType> types = read_types(in, false);
  const auto relations = read_device_relations<indptr_t, index_t>(in, like);
  SampleHopsCuda<indptr_t, index_t> args{};
  args.graph = with_cache(relations[0], in.at(0, GraphInputs::kIndptr),
                          in.at(0, GraphInputs::kIndices));
  args.num_nodes = types[0].num_nodes;
  args.seeds = types[0].seeds;
  args.num_seeds = types[0].num_seeds;
  args.options = in.options;
  args.frontier = in.frontier;
  args.sorted = in.sorted;
  args.next = in.return_frontier;
  args.weighted = relations[0].cum_weight != nullptr;
  if (args.num_nodes == 0 && args.num_seeds > 0) {
    int64_t seed;
    copy_to_host(&seed, args.seeds, sizeof seed, scope.stream());
    Report report{};
    report.fault = Report::kId;
    report.value = seed;
    raise_input(in, report);
  }
  const HopCapacity capacity =
      first_hop_capacity(relations, types, args.options, in.frontier);
  HopCall call(in.op, scope, like, args);
  Words words;
  const size_t fanouts = words.add(in.fanouts);
  const size_t streams = words.add(streams_of(in));
  Tensor arguments, bits;
  int64_t* to = call.words_of("arguments", &arguments, words.size());
  words.store(to, scope.stream());
  args.graph.fanouts = to + fanouts;
  args.streams = reinterpret_cast<const uint64_t*>(to + streams);
  args.bits = reinterpret_cast<uint64_t*>(
      call.words_of("bits", &bits, in.sorted ? args.num_nodes / 64 + 1 : 0));
  raise_input(in, call.run(capacity));
  return outputs_of(in, call);
}

// Arguments of a heterogeneous call, and the kernel's view of them.
template <typename indptr_t, typename index_t>
class LayerCall {
 public:
  explicit LayerCall(const LayerInputs& in)
      : in_(in),
        like_(like_of(in)),
        scope_(in.op, like_),
        types_(read_types(in, in.options.disjoint)),
        relations_(read_device_relations<indptr_t, index_t>(in, like_)) {
    args_.options = in.options;
    args_.frontier = in.frontier;
    args_.next = in.return_frontier;
    args_.batches = in.ptr.has_value() ? in.num_batches() : 0;
    args_.relation_count = static_cast<int>(relations_.size());
    args_.type_count = static_cast<int>(types_.size());
    for (const auto& relation : relations_)
      args_.weighted |= relation.cum_weight != nullptr;
    count_keys();
  }

  Layers run() {
    const HopCapacity capacity = first_hop_capacity(
        relations_, types_, args_.options, in_.frontier, in_.num_batches());
    Hops call(in_.op, scope_, like_, args_);
    Tensor arguments, times;
    store_graph(call, &arguments);
    args_.time_of_tree =
        call.words_of("tree_time", &times, in_.is_temporal() ? num_trees_ : 0);
    raise_input(in_, call.run(capacity));
    return outputs_of(in_, call);
  }

 private:
  using HopGraph = HopRelation<indptr_t, index_t>;
  using Hops = HopCall<HeteroHopsCuda<indptr_t, index_t>>;

  // A task at any hop, and the one after the last, must fit 63 bits.
  void count_keys() {
    for (const NodeType& type : types_) {
      num_trees_ += type.num_seeds;
      args_.num_nodes += type.num_nodes;
    }
    const int64_t trees = in_.options.disjoint
                              ? std::max<int64_t>(num_trees_, 1)
                              : in_.num_batches();
    const int64_t hops = in_.options.num_hops + 1;
    STD_TORCH_CHECK(
        args_.num_nodes <= INT64_MAX / hops / trees, in_.op,
        in_.options.disjoint ? ": too many seeds (" : ": too many batches (",
        trees, ") for trees of ", args_.num_nodes, " nodes and ", hops - 1,
        " hops");
    args_.num_keys = trees * args_.num_nodes;
  }

  // Lists the relations into and out of each type. `to` is the address of the
  // lists, which are concatenated by type.
  void link(std::vector<HopGraph>* graphs,
            std::vector<HopType>* types,
            std::vector<int64_t>* lists,
            const int64_t* to) {
    int64_t trees = 0, nodes = 0;
    for (size_t t = 0; t < types_.size(); ++t) {
      HopType type{types_[t],          trees,   nodes, seed_ptr(t),
                   to + lists->size(), nullptr, 0,     0};
      for (size_t r = 0; r < relations_.size(); ++r)
        if (relations_[r].dst == static_cast<int>(t)) {
          (*graphs)[r].slot = type.num_into++;
          lists->push_back(static_cast<int64_t>(r));
        }
      type.from = to + lists->size();
      for (size_t r = 0; r < relations_.size(); ++r)
        if (relations_[r].src == static_cast<int>(t)) {
          ++type.num_from;
          lists->push_back(static_cast<int64_t>(r));
        }
      args_.most_into =
          std::max(args_.most_into, static_cast<int>(type.num_into));
      types->push_back(type);
      trees += types_[t].num_seeds;
      nodes += types_[t].num_nodes;
    }
  }

  // Where the seeds of a type begin, of each batch; the kernel checks it.
  const int64_t* seed_ptr(size_t t) const {
    if (!in_.ptr.has_value())
      return nullptr;
    const Tensor& ptr = (*in_.ptr)[t];
    check_vector(in_.op, "ptr", ptr, ScalarType::Long);
    check_device(in_.op, "seeds' and 'ptr", ptr, like_, "seeds[0]");
    return ptr.const_data_ptr<int64_t>();
  }

  std::vector<int64_t> draw_by_tree() const {
    std::vector<int64_t> out;
    for (int hop = 0; hop < in_.options.num_hops; ++hop)
      out.push_back(in_.options.disjoint &&
                    in_.first_key(hop).batch != kEpochScope);
    return out;
  }

  // Copies everything of variable length to where the kernel reads it.
  void store_graph(const Hops& call, Tensor* memory) {
    std::vector<HopGraph> graphs;
    for (size_t r = 0; r < relations_.size(); ++r)
      graphs.push_back(
          {with_cache(relations_[r], in_.at(r, GraphInputs::kIndptr),
                      in_.at(r, GraphInputs::kIndices)),
           0});
    std::vector<HopType> types(types_.size());
    std::vector<int64_t> lists(2 * relations_.size());
    Words words;
    const size_t first_graph = words.add(graphs);
    const size_t first_type = words.add(types);
    const size_t first_list = words.add(lists);
    const size_t first_stream = words.add(streams_of(in_));
    const size_t first_by_tree = words.add(draw_by_tree());
    const size_t first_fanout = words.add(in_.fanouts);
    int64_t* to = call.words_of("arguments", memory, words.size());
    types.clear();
    lists.clear();
    link(&graphs, &types, &lists, to + first_list);
    for (size_t r = 0; r < graphs.size(); ++r)
      graphs[r].fanouts = to + first_fanout + r * in_.options.num_hops;
    words.set(first_graph, graphs);
    words.set(first_type, types);
    words.set(first_list, lists);
    words.store(to, scope_.stream());
    args_.all_relations = reinterpret_cast<const HopGraph*>(to + first_graph);
    args_.types = reinterpret_cast<const HopType*>(to + first_type);
    args_.streams = reinterpret_cast<const uint64_t*>(to + first_stream);
    args_.draw_by_tree = to + first_by_tree;
  }

  const LayerInputs& in_;
  const Tensor& like_;
  const DeviceScope scope_;
  const std::vector<NodeType> types_;
  std::vector<Relation<indptr_t, index_t>> relations_;
  int64_t num_trees_ = 0;
  HeteroHopsCuda<indptr_t, index_t> args_{};
};

Layers sample_cuda(const LayerInputs& in) {
  STD_TORCH_CHECK(!keeps_order(in.frontier), in.op,
                  ": the frontiers 'edges' and 'walk' need a graph on the CPU");
  STD_TORCH_CHECK(!in.sorted || in.is_plain(), in.op,
                  ": 'sorted' needs one node type and one relation on a GPU");
  const bool many = in.ptr.has_value();
  STD_TORCH_CHECK(
      !many || (!in.sorted && (in.frontier == Frontier::kRow ||
                               in.frontier == Frontier::kNodes)),
      in.op,
      ": 'ptr' needs the frontiers 'row' or 'nodes' on a GPU, not sorted");
  return dispatch_graph(in, [&](auto indptr, auto index) {
    using indptr_t = decltype(indptr);
    using index_t = decltype(index);
    return in.is_plain() && !many ? sample_plain<indptr_t, index_t>(in)
                                  : LayerCall<indptr_t, index_t>(in).run();
  });
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(GSAMPLE_CUDA_LIBRARY, GSAMPLE_CUDA_KEY, m) {
  m.impl("sample_layers", TORCH_BOX(&sample_layers<sample_cuda>));
}

}  // namespace gsample
