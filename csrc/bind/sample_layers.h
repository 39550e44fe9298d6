// The operator sample_layers on any device.
#pragma once

#include <optional>
#include <tuple>
#include <vector>

#include "../cpu/sample_hops.h"
#include "graph.h"

namespace gsample {

// Lists hold the relations (or types) of the first hop, then those of the
// second, and so on; batches exist with trees only.
using Layers = std::tuple<Tensors, Tensors, Tensors, Tensors, Tensors>;

struct LayerInputs : SampleInputs {
  SampleOptions options;  // without a key
  std::vector<Key> keys;  // [hops], or [hops * relations]
  const Ints& call_id;    // likewise
  Frontier frontier;
  bool sorted;
  bool return_frontier;

  bool has_frontier(int hop) const {
    return return_frontier || hop + 1 < options.num_hops;
  }
  // Whether the graph has one node type, one relation and no trees.
  bool is_plain() const {
    return num_types() == 1 && num_relations() == 1 && !options.disjoint;
  }
  const Key& first_key(int hop) const {
    return keys[hop * (keys.size() / options.num_hops)];
  }
  // The keys of a hop's draws, [relations]. A relation with its own key draws
  // as if it were the only one.
  std::vector<uint64_t> streams(int hop) const {
    const size_t n = num_relations();
    const bool own = keys.size() != static_cast<size_t>(options.num_hops);
    std::vector<uint64_t> out;
    for (size_t r = 0; r < n; ++r) {
      const size_t i = own ? hop * n + r : hop;
      out.push_back(stream_key(keys[i], static_cast<uint32_t>(call_id[i]),
                               own ? 0 : static_cast<uint32_t>(r)));
    }
    return out;
  }
};

inline Frontier read_frontier(const char* op, int64_t frontier) {
  STD_TORCH_CHECK(frontier >= 0 && frontier < 6, op,
                  ": 'frontier' must be 0 for 'row', 1 for 'nodes', 2 for "
                  "'new', 3 for 'unseen', 4 for 'edges' or 5 for 'walk' (got ",
                  frontier, ")");
  return static_cast<Frontier>(frontier);
}

// The key of each hop, or of each relation of each hop, with its own call id.
inline std::vector<Key> read_hop_keys(const char* op,
                                      const Tensors& key,
                                      const Ints& call_id,
                                      size_t hops,
                                      size_t draws) {
  const size_t n = key.size();
  STD_TORCH_CHECK((n == hops || n == draws) && call_id.size() == n, op,
                  ": 'key' and 'call_id' must have one item for each of ", hops,
                  " hops, or of their ", draws, " relations (got ", n, " and ",
                  call_id.size(), ")");
  std::vector<Key> keys;
  for (size_t i = 0; i < n; ++i) {
    check_call_id(op, call_id[i]);
    keys.push_back(read_key(op, key[i]));
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
      read_hop_keys(op, key, call_id, in.num_hops(), fanouts.size()),
      call_id,
      read_frontier(op, frontier),
      sorted,
      return_frontier};
  const int64_t num_keys = static_cast<int64_t>(key.size());
  STD_TORCH_CHECK(!disjoint || num_keys == in.num_hops(), op,
                  ": trees need one 'key' for each hop");
  const bool any_graph =
      layers.frontier == Frontier::kRow || layers.frontier == Frontier::kNodes;
  STD_TORCH_CHECK(layers.is_plain() || any_graph, op,
                  ": frontiers but 'row' and 'nodes' need one node type and "
                  "one relation, without trees");
  STD_TORCH_CHECK(!sorted || !(disjoint || keeps_order(layers.frontier)), op,
                  ": 'sorted' needs distinct columns and no trees");
  for (const int64_t fanout : fanouts)
    STD_TORCH_CHECK(layers.frontier != kWalkStep || fanout == 1, op,
                    ": the frontier 'walk' needs 'fanouts' of 1 (got ", fanout,
                    ")");
  return sample(layers);
}

}  // namespace gsample
