// A heterogeneous graph and the seeds of its samples, as operators receive
// them: read and checked once for CPU and GPU. The structures point to the
// tensors' memory, on any device.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "check.h"

namespace gsample {

using Tensors = std::vector<Tensor>;
using Ints = std::vector<int64_t>;

inline Tensor part_of(Tensor tensor, int64_t first, int64_t last) {
  return torch::stable::narrow(tensor, 0, first, last - first);
}

struct GraphInputs {
  enum Field { kIndptr, kIndices, kCumWeight, kEdgeTime };

  const char* op;
  const Tensors& tensors;  // one tensor per relation and field, or the first 2
                           // fields
  const Ints& ends;        // source and destination type of each relation
  const Ints& num_nodes;   // of each type

  size_t num_relations() const { return ends.size() / 2; }
  size_t num_types() const { return num_nodes.size(); }
  size_t num_fields() const {
    return num_relations() == 0 ? 2 : tensors.size() / num_relations();
  }
  int64_t src(size_t relation) const { return ends[2 * relation]; }
  int64_t dst(size_t relation) const { return ends[2 * relation + 1]; }
  const Tensor& at(size_t relation, Field field) const {
    return tensors[relation * num_fields() + field];
  }
  // Whether an optional field has a tensor; an empty tensor means no.
  bool has(size_t relation, Field field) const {
    return num_fields() > static_cast<size_t>(field) &&
           at(relation, field).numel() > 0;
  }
  // All relations share the dtype.
  ScalarType dtype(Field field) const {
    return ends.empty() ? ScalarType::Int : at(0, field).scalar_type();
  }

  void check() const {
    const size_t r = num_relations();
    STD_TORCH_CHECK(
        ends.size() % 2 == 0 && num_fields() >= 2 && num_fields() <= 4 &&
            tensors.size() == num_fields() * r,
        op,
        ": 'graph' must have 2 to 4 tensors, and 'ends' 2 node types, for each "
        "relation (got ",
        tensors.size(), " and ", ends.size(), ")");
    STD_TORCH_CHECK(r <= kMaxRelations, op, ": at most 65280 relations (got ",
                    r, ")");
    const int64_t types = static_cast<int64_t>(num_types());
    for (const int64_t type : ends)
      STD_TORCH_CHECK(0 <= type && type < types, op,
                      ": 'ends' must name one of ", types, " node types (got ",
                      type, ")");
    for (const int64_t n : num_nodes)
      STD_TORCH_CHECK(n >= 0, op, ": 'num_nodes' must not be negative (got ", n,
                      ")");
  }
};

// Reads the relations of a checked graph. `address(tensor)` is the tensor's
// address for kernels; `fanouts` has one number per hop and relation.
template <typename indptr_t, typename index_t, typename address_t>
std::vector<Relation<indptr_t, index_t>> read_relations(
    const GraphInputs& in,
    const Ints& fanouts,
    int num_hops,
    const address_t& address) {
  using Field = GraphInputs::Field;
  std::vector<Relation<indptr_t, index_t>> relations;
  relations.reserve(in.num_relations());
  for (size_t r = 0; r < in.num_relations(); ++r) {
    const Tensor& indptr = in.at(r, Field::kIndptr);
    const Tensor& indices = in.at(r, Field::kIndices);
    const int64_t num_cols = in.num_nodes[in.dst(r)];
    const int64_t num_edges = indices.numel();
    check_vector(in.op, "indptr", indptr, in.dtype(Field::kIndptr));
    check_vector(in.op, "indices", indices, in.dtype(Field::kIndices));
    check_size(in.op, "indptr", indptr, add_sizes(num_cols, 1));
    const auto optional = [&](Field field, const char* name, int64_t size) {
      if (!in.has(r, field))
        return static_cast<const int64_t*>(nullptr);
      int64_vector(in.op, name, in.at(r, field), size);
      return static_cast<const int64_t*>(address(in.at(r, field)));
    };
    relations.push_back({static_cast<const indptr_t*>(address(indptr)),
                         static_cast<const index_t*>(address(indices)),
                         optional(Field::kCumWeight, "cum_weight",
                                  cum_weight_size(num_edges, num_cols)),
                         optional(Field::kEdgeTime, "edge_time", num_edges),
                         fanouts.data() + r * num_hops, num_edges,
                         static_cast<int>(in.src(r)),
                         static_cast<int>(in.dst(r))});
  }
  return relations;
}

// The address of a tensor on the CPU.
inline const void* cpu_address(const Tensor& tensor) {
  return tensor.const_data_ptr();
}

// Calls function(indptr_t{}, index_t{}) for the types of a graph.
template <typename function_t>
auto dispatch_graph(const GraphInputs& in, const function_t& function) {
  return dispatch_graph(in.op, in.dtype(GraphInputs::kIndptr),
                        in.dtype(GraphInputs::kIndices), function);
}

// A graph and the inputs of sampling.
struct SampleInputs : GraphInputs {
  const Tensors& seeds;                     // of each node type
  const std::optional<Tensors>& seed_time;  // likewise; makes sampling temporal
  const Ints& fanouts;                      // [relations * hops]

  bool is_temporal() const { return seed_time.has_value(); }
  int64_t num_hops() const {
    return ends.empty()
               ? 0
               : static_cast<int64_t>(fanouts.size() / num_relations());
  }

  void check() const {
    GraphInputs::check();
    const size_t r = num_relations(), t = num_types();
    STD_TORCH_CHECK(
        seeds.size() == t && (!is_temporal() || seed_time->size() == t), op,
        ": 'seeds' and 'seed_time' must have one item for each "
        "node type");
    STD_TORCH_CHECK(
        r == 0 || fanouts.size() % r == 0, op,
        ": 'fanouts' must have the same number of hops for each of ", r,
        " relations (got ", fanouts.size(), " numbers)");
    check_times();
  }

 private:
  // Edges have times if, and only if, seeds do; a relation without edges is
  // exempt.
  void check_times() const {
    bool timed = false, maybe = ends.empty();
    for (size_t i = 0; i < num_relations(); ++i) {
      timed |= has(i, kEdgeTime);
      maybe |= at(i, kIndices).numel() == 0;
    }
    STD_TORCH_CHECK(timed == is_temporal() || (maybe && !timed), op,
                    ": times of edges and 'seed_time' must be given together");
  }
};

// The options of a sample, except the key, which may be on a device.
inline SampleOptions read_options(const SampleInputs& in,
                                  int64_t call_id,
                                  bool replace,
                                  bool disjoint,
                                  bool last,
                                  const std::optional<int64_t>& time_window,
                                  int64_t num_threads) {
  const int64_t hops = in.num_hops();
  STD_TORCH_CHECK(
      call_id >= 0 && call_id <= kMaxCalls - hops, in.op,
      ": 'call_id' plus the number of hops must be in [0, 65536] (got ",
      call_id, ")");
  for (const int64_t fanout : in.fanouts)
    check_fanout(in.op, fanout, replace);
  STD_TORCH_CHECK(!time_window.has_value() || *time_window >= 0, in.op,
                  ": 'time_window' must not be negative");
  STD_TORCH_CHECK(!in.is_temporal() || disjoint, in.op,
                  ": temporal sampling needs 'disjoint' trees");
  return {Key{},
          static_cast<uint32_t>(call_id),
          static_cast<int>(hops),
          replace,
          disjoint,
          in.is_temporal() && last,
          time_window.has_value(),
          time_window.value_or(0),
          static_cast<int>(num_threads)};
}

// Reads the seeds of each node type.
inline std::vector<NodeType> read_types(const SampleInputs& in, bool disjoint) {
  std::vector<NodeType> types;
  types.reserve(in.num_types());
  int64_t num_seeds = 0;
  for (size_t t = 0; t < in.num_types(); ++t) {
    check_vector(in.op, "seeds", in.seeds[t], ScalarType::Long);
    const int64_t n = in.seeds[t].numel();
    const int64_t* time = in.is_temporal() ? int64_vector(in.op, "seed_time",
                                                          (*in.seed_time)[t], n)
                                           : nullptr;
    types.push_back(
        {in.num_nodes[t], in.seeds[t].const_data_ptr<int64_t>(), time, n});
    num_seeds += n;
  }
  for (const NodeType& type : types)  // (tree, node) must fit 64 bits
    STD_TORCH_CHECK(
        num_seeds < INT32_MAX &&
            (!disjoint || type.num_nodes == 0 ||
             num_seeds <= INT64_MAX / std::max<int64_t>(type.num_nodes, 1)),
        in.op, ": too many seeds (", num_seeds, ")");
  return types;
}

// The most nodes of a type in a sample in which `edges` edges lead to it. A
// faulty edge has a slot, too.
inline int64_t most_nodes(const NodeType& type, bool disjoint, int64_t edges) {
  return type.num_seeds +
         (disjoint ? edges
                   : std::min(edges, std::max<int64_t>(type.num_nodes, 1)));
}

}  // namespace gsample
