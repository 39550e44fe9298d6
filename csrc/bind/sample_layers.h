// The operator sample_layers on any device.
#pragma once

#include <optional>
#include <tuple>
#include <vector>

#include "graph.h"

namespace gsample {

// Lists have the relations (or types) of the first hop, then those of the next
// one, and so on; there is a batch with trees only.
using Layers = std::tuple<Tensors, Tensors, Tensors, Tensors, Tensors>;

struct LayerInputs : SampleInputs {
  SampleOptions options;  // without a key
  std::vector<Key> keys;  // [hops]
  const Ints& call_id;    // [hops]
  Frontier frontier;
  bool sorted;
  bool return_frontier;

  bool has_frontier(int hop) const {
    return return_frontier || hop + 1 < options.num_hops;
  }
  // One node type and one relation, without trees.
  bool is_plain() const {
    return num_types() == 1 && num_relations() == 1 && !options.disjoint;
  }
};

inline Frontier read_frontier(const char* op, int64_t frontier) {
  STD_TORCH_CHECK(frontier >= 0 && frontier < 4, op,
                  ": 'frontier' must be 0 for 'row', 1 for 'nodes', 2 for "
                  "'new' or 3 for 'unseen' (got ",
                  frontier, ")");
  return static_cast<Frontier>(frontier);
}

// The key of each hop, which has a call id of its own, too.
inline std::vector<Key> read_hop_keys(const char* op,
                                      const Tensors& key,
                                      const Ints& call_id,
                                      size_t hops) {
  STD_TORCH_CHECK(key.size() == hops && call_id.size() == hops, op,
                  ": 'key' and 'call_id' must have one item for each of ", hops,
                  " hops (got ", key.size(), " and ", call_id.size(), ")");
  std::vector<Key> keys;
  for (size_t hop = 0; hop < hops; ++hop) {
    check_call_id(op, call_id[hop]);
    keys.push_back(read_key(op, key[hop]));
  }
  return keys;
}

template <Layers (*sample)(const LayerInputs&)>
Layers sample_layers(Tensors graph,
                     Ints ends,
                     Ints num_nodes,
                     Tensors seeds,
                     Ints fanouts,
                     Tensors key,
                     Ints call_id,
                     int64_t frontier,
                     bool sorted,
                     bool replace,
                     bool disjoint,
                     bool last,
                     std::optional<int64_t> time_window,
                     bool return_frontier,
                     int64_t num_threads,
                     std::optional<Tensors> seed_time) {
  const char* op = "sample_layers";
  const SampleInputs in{
      {op, graph, ends, num_nodes}, seeds, seed_time, fanouts};
  in.check();
  const LayerInputs layers{
      in,
      read_options(in, 0, replace, disjoint, last, time_window, num_threads),
      read_hop_keys(op, key, call_id, in.num_hops()),
      call_id,
      read_frontier(op, frontier),
      sorted,
      return_frontier};
  const bool any_graph =
      layers.frontier == Frontier::kRow || layers.frontier == Frontier::kNodes;
  STD_TORCH_CHECK(layers.is_plain() || (any_graph && !sorted), op,
                  ": 'sorted' and the frontiers 'new' and 'unseen' need one "
                  "node type and one relation, without trees");
  return sample(layers);
}

}  // namespace gsample
