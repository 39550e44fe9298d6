// The operator hetero_sample_hops on a GPU: arguments around hop_call_cuda.h.
#include "../cuda/hetero_sample_hops.h"

#include <torch/csrc/stable/library.h>

#include "hetero_sample_hops.h"
#include "hop_call_cuda.h"
#include "list_cache_cuda.h"
#include "neighbor_fault_cuda.h"

namespace gsample {

namespace {

// Arguments of a call, and the kernel's view of them.
template <typename indptr_t, typename index_t>
class LayerCall {
 public:
  explicit LayerCall(const LayerInputs& in)
      : in_(in),
        graph_(in.graph),
        like_(graph_.seeds.empty() ? graph_.indptr[0] : graph_.seeds[0]),
        scope_(graph_.op, like_),
        types_(read_types(graph_, in.options)),
        relations_(
            read_relations<indptr_t, index_t>(graph_, in.options.num_hops)) {
    check_devices();
    args_.options = in.options;
    args_.frontier = in.frontier;
    args_.next = in.return_frontier;
    args_.relation_count = static_cast<int>(relations_.size());
    args_.type_count = static_cast<int>(types_.size());
    for (const auto& relation : relations_)
      args_.weighted |= relation.cum_weight != nullptr;
    count_keys();
  }

  HeteroHops run() {
    const HopCapacity capacity =
        first_hop_capacity(relations_, types_, args_.options, in_.frontier);
    Hops call(graph_.op, scope_, like_, args_);
    Tensor arguments, times;
    store_graph(call, &arguments);
    args_.time_of_tree = call.words_of(
        "tree_time", &times, graph_.edge_time.empty() ? 0 : num_trees_);
    raise_input(graph_, call.run(capacity));
    const bool none = relations_.empty();
    const ScalarType kInt = ScalarType::Int;
    auto [indptr, row, edge, node, batch] =
        call.outputs(graph_.dst, none ? kInt : graph_.indptr[0].scalar_type(),
                     none ? kInt : graph_.indices[0].scalar_type());
    return {indptr, row, edge, node, batch};
  }

 private:
  using HopGraph = HopRelation<indptr_t, index_t>;
  using Hops = HopCall<HeteroHopsCuda<indptr_t, index_t>>;

  // Seeds and their times are on the device. It reads the graph there or in
  // pinned memory.
  void check_devices() {
    for (const Tensors* tensors : {&graph_.seeds, &graph_.seed_time})
      for (const Tensor& tensor : *tensors)
        check_device(graph_.op, "seeds' and 'seed_time", tensor, like_,
                     "seeds[0]");
    for (size_t r = 0; r < relations_.size(); ++r) {
      auto& relation = relations_[r];
      find(graph_.indptr[r], &relation.indptr);
      find(graph_.indices[r], &relation.indices);
      if (relation.cum_weight != nullptr)
        find(graph_.cum_weight[r], &relation.cum_weight);
      if (relation.edge_time != nullptr)
        find(graph_.edge_time[r], &relation.edge_time);
    }
  }

  template <typename item_t>
  void find(const Tensor& tensor, const item_t** data) const {
    *data = readable<item_t>(graph_.op, tensor, like_, "seeds");
  }

  // A task at any hop, and after the last, is one number of 63 bits.
  void count_keys() {
    for (const NodeType& type : types_) {
      num_trees_ += type.num_seeds;
      args_.num_nodes += type.num_nodes;
    }
    const int64_t trees =
        in_.options.disjoint ? std::max<int64_t>(num_trees_, 1) : 1;
    const int64_t hops = in_.num_hops() + 1;
    STD_TORCH_CHECK(args_.num_nodes <= INT64_MAX / hops / trees, graph_.op,
                    ": too many seeds (", num_trees_, ") for trees of ",
                    args_.num_nodes, " nodes and ", hops - 1, " hops");
    args_.num_keys = trees * args_.num_nodes;
  }

  // Which relations go into a type, and from it. `to` is where the lists are,
  // one type after the other.
  void link(std::vector<HopGraph>* graphs,
            std::vector<HopType>* types,
            std::vector<int64_t>* lists,
            const int64_t* to) {
    int64_t trees = 0, nodes = 0;
    for (size_t t = 0; t < types_.size(); ++t) {
      HopType type{types_[t], trees, nodes, to + lists->size(), nullptr, 0, 0};
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

  std::vector<uint64_t> streams() const {
    std::vector<uint64_t> out;
    for (int hop = 0; hop < in_.num_hops(); ++hop)
      for (uint32_t r = 0; r < relations_.size(); ++r)
        out.push_back(stream_key(in_.keys[hop],
                                 static_cast<uint32_t>(in_.call_id[hop]), r));
    return out;
  }

  std::vector<int64_t> draw_by_tree() const {
    std::vector<int64_t> out;
    for (const Key& key : in_.keys)
      out.push_back(in_.options.disjoint && key.batch != kEpochScope);
    return out;
  }

  // Everything that has a length of its own, as the kernel finds it.
  void store_graph(const Hops& call, Tensor* memory) {
    std::vector<HopGraph> graphs;
    for (size_t r = 0; r < relations_.size(); ++r)
      graphs.push_back(
          {with_cache(relations_[r], graph_.indptr[r], graph_.indices[r]), 0});
    std::vector<HopType> types(types_.size());
    std::vector<int64_t> lists(2 * relations_.size());
    Words words;
    const size_t first_graph = words.add(graphs);
    const size_t first_type = words.add(types);
    const size_t first_list = words.add(lists);
    const size_t first_stream = words.add(streams());
    const size_t first_by_tree = words.add(draw_by_tree());
    const size_t first_fanout = words.add(graph_.fanouts);
    int64_t* to = call.words_of("arguments", memory, words.size());
    types.clear();
    lists.clear();
    link(&graphs, &types, &lists, to + first_list);
    for (size_t r = 0; r < graphs.size(); ++r)
      graphs[r].fanouts = to + first_fanout + r * in_.num_hops();
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
  const HeteroInputs& graph_;
  const Tensor& like_;
  const DeviceScope scope_;
  const std::vector<NodeType> types_;
  std::vector<Relation<indptr_t, index_t>> relations_;
  int64_t num_trees_ = 0;
  HeteroHopsCuda<indptr_t, index_t> args_{};
};

HeteroHops sample_cuda(const LayerInputs& in) {
  const HeteroInputs& graph = in.graph;
  const ScalarType kInt = ScalarType::Int;
  const bool none = graph.indptr.empty();
  return dispatch_graph(
      graph.op, none ? kInt : graph.indptr[0].scalar_type(),
      none ? kInt : graph.indices[0].scalar_type(),
      [&](auto indptr, auto index) {
        return LayerCall<decltype(indptr), decltype(index)>(in).run();
      });
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(GSAMPLE_CUDA_LIBRARY, GSAMPLE_CUDA_KEY, m) {
  m.impl("hetero_sample_hops", TORCH_BOX(&hetero_sample_hops<sample_cuda>));
}

}  // namespace gsample
