// The operator hetero_sample_hops: what its kernels on the CPU and on a GPU
// share. Lists of its outputs have the relations (or types) of the first hop,
// then those of the next one, and so on.
#pragma once

#include <tuple>
#include <vector>

#include "neighbor_sample.h"
#include "sample_hops.h"

namespace gsample {

using HeteroHops = std::tuple<Tensors, Tensors, Tensors, Tensors, Tensors>;

// The arguments, checked but for what read_types() and read_relations() check.
struct LayerInputs {
  const HeteroInputs& graph;
  SampleOptions options;  // without a key
  std::vector<Key> keys;  // [hops]
  const std::vector<int64_t>& call_id;
  Frontier frontier;
  bool return_frontier;

  int num_hops() const { return options.num_hops; }
  bool has_frontier(int hop) const {
    return return_frontier || hop + 1 < options.num_hops;
  }
};

template <HeteroHops (*sample)(const LayerInputs&)>
HeteroHops hetero_sample_hops(Tensors indptr,
                              Tensors indices,
                              std::vector<int64_t> src,
                              std::vector<int64_t> dst,
                              std::vector<int64_t> num_nodes,
                              Tensors seeds,
                              std::vector<int64_t> fanouts,
                              Tensors cum_weight,
                              Tensors edge_time,
                              Tensors seed_time,
                              Tensors key,
                              std::vector<int64_t> call_id,
                              std::optional<int64_t> time_window,
                              int64_t temporal_strategy,
                              int64_t frontier,
                              bool replace,
                              bool disjoint,
                              bool return_frontier,
                              int64_t num_threads) {
  const char* op = "hetero_sample_hops";
  const HeteroInputs graph{op,        indptr,    indices, cum_weight,
                           edge_time, src,       dst,     num_nodes,
                           seeds,     seed_time, fanouts, true};
  check_lists(graph);
  STD_TORCH_CHECK(frontier == 0 || frontier == 1, op,
                  ": 'frontier' must be 0 for 'row' or 1 for 'nodes' (got ",
                  frontier, "); hetero_neighbor_sample samples each node once");
  LayerInputs in{graph,
                 read_options(graph, 0, time_window, temporal_strategy, replace,
                              disjoint, num_threads),
                 {},
                 call_id,
                 static_cast<Frontier>(frontier),
                 return_frontier};
  check_keys(op, key, call_id, in.num_hops());
  for (int hop = 0; hop < in.num_hops(); ++hop) {
    check_call_id(op, call_id[hop]);
    in.keys.push_back(read_key(op, key[hop]));
  }
  return sample(in);
}

}  // namespace gsample
