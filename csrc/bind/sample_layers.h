// The operator sample_layers on any device.
#pragma once

#include <optional>
#include <tuple>
#include <vector>

#include "../cpu/sample_hops.h"
#include "graph.h"

namespace gsample {

// Lists have the relations (or types) of the first hop, then those of the next
// one, and so on. The last one has the seed of each column with trees, and with
// several batches where the columns of each begin; else nothing.
using Layers = std::tuple<Tensors, Tensors, Tensors, Tensors, Tensors>;

struct LayerInputs : SampleInputs {
  SampleOptions options;  // without a key
  std::vector<Key> keys;  // [hops][batches], or [hops * relations][batches]
  const Ints& call_id;    // [hops], or [hops * relations]
  Frontier frontier;
  bool sorted;
  bool return_frontier;
  // Of each node type, where the seeds of each batch begin [batches + 1].
  const std::optional<Tensors>& ptr;

  int64_t num_batches() const {
    return ptr.has_value() ? (*ptr)[0].numel() - 1 : 1;
  }
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
  // The keys of a batch.
  std::vector<Key> keys_of(int64_t batch) const {
    std::vector<Key> out;
    for (size_t i = batch; i < keys.size(); i += num_batches())
      out.push_back(keys[i]);
    return out;
  }
  // The keys of the draws of a hop, [relations][batches]. With a key of its
  // own, a relation draws as if it were the only one.
  std::vector<uint64_t> streams(int hop) const {
    const size_t n = num_relations(), batches = num_batches();
    const bool own = call_id.size() != static_cast<size_t>(options.num_hops);
    std::vector<uint64_t> out;
    for (size_t r = 0; r < n; ++r) {
      const size_t i = own ? hop * n + r : hop;
      for (size_t b = 0; b < batches; ++b)
        out.push_back(stream_key(keys[i * batches + b],
                                 static_cast<uint32_t>(call_id[i]),
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

// The key of each hop, or of each relation of each hop, which has a call id of
// its own, too; of each batch.
inline std::vector<Key> read_hop_keys(const char* op,
                                      const Tensors& key,
                                      const Ints& call_id,
                                      size_t hops,
                                      size_t draws,
                                      int64_t batches) {
  const size_t n = key.size();
  STD_TORCH_CHECK((n == hops || n == draws) && call_id.size() == n, op,
                  ": 'key' and 'call_id' must have one item for each of ", hops,
                  " hops, or of their ", draws, " relations (got ", n, " and ",
                  call_id.size(), ")");
  std::vector<Key> keys;
  for (size_t i = 0; i < n; ++i) {
    check_call_id(op, call_id[i]);
    for (const Key& of_batch : read_keys(op, key[i], batches))
      keys.push_back(of_batch);
  }
  return keys;
}

inline void check_ptr(const SampleInputs& in, const Tensors& ptr) {
  STD_TORCH_CHECK(!ptr.empty() && ptr.size() == in.num_types(), in.op,
                  ": 'ptr' must have one item for each node type");
  for (const Tensor& of_type : ptr)
    STD_TORCH_CHECK(of_type.numel() == ptr[0].numel() && of_type.numel() > 1,
                    in.op,
                    ": 'ptr' must have an element more than batches, of "
                    "which there is one or more");
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
                     std::optional<Tensors> seed_time,
                     std::optional<Tensors> ptr) {
  const char* op = "sample_layers";
  const SampleInputs in{
      {op, graph, ends, num_nodes}, seeds, seed_time, fanouts};
  in.check();
  if (ptr.has_value())
    check_ptr(in, *ptr);
  STD_TORCH_CHECK(!ptr.has_value() || !disjoint, op,
                  ": 'ptr' and 'disjoint' must not be given together");
  const int64_t batches = ptr.has_value() ? (*ptr)[0].numel() - 1 : 1;
  const LayerInputs layers{
      in,
      read_options(in, 0, replace, disjoint, last, time_window, num_threads),
      read_hop_keys(op, key, call_id, in.num_hops(), fanouts.size(), batches),
      call_id,
      read_frontier(op, frontier),
      sorted,
      return_frontier,
      ptr};
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
