// A call of layer-wise hops on a GPU, for any kind of graph: capacities and
// memory around cuda/sample_hops.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "../cuda/sample_hops.h"
#include "device_cuda.h"
#include "sample_memory_cuda.h"

namespace gsample {

// Capacity for the columns and edges of all hops.
struct HopCapacity {
  int64_t columns;
  int64_t edges;

  // Columns and edges together have 31-bit positions.
  static constexpr int64_t kMost = (int64_t{1} << 30) - 1;
};

// Room to try first: what fan-outs and the numbers of nodes (of each batch)
// allow, or about as much as columns of average degrees need.
template <typename relation_t>
HopCapacity first_hop_capacity(const std::vector<relation_t>& relations,
                               const std::vector<NodeType>& types,
                               const SampleOptions& options,
                               Frontier rule,
                               int64_t batches = 1) {
  constexpr int64_t kSpare = 4096;
  std::vector<int64_t> frontier;
  HopCapacity capacity{0, 0};
  for (const NodeType& type : types) {
    frontier.push_back(type.num_seeds);
    capacity.columns += type.num_seeds;
  }
  const HopCapacity most{std::max(kFirstTry, capacity.columns), kFirstTry};
  bool bounded = true;
  for (int hop = 0; hop < options.num_hops; ++hop) {
    const int64_t before = capacity.edges;
    std::vector<int64_t> next(types.size(), 0);
    if (rule != Frontier::kRow)
      next = frontier;
    for (const relation_t& relation : relations) {
      const int64_t fanout = relation.fanouts[hop];
      const int64_t columns = frontier[relation.dst];
      const int64_t cols = types[relation.dst].num_nodes;
      const int64_t degree =
          relation.num_edges / std::max<int64_t>(cols, 1) + 1;
      const int64_t k = fanout >= 0 ? fanout : degree;
      bounded &= fanout >= 0;
      if (columns > 0 && k > kFirstTry / columns)
        return most;
      next[relation.src] += columns * k;
      capacity.edges += columns * k;
    }
    if (capacity.edges - before > kFirstTry)
      return most;
    for (size_t t = 0; t < types.size(); ++t) {
      frontier[t] =
          options.disjoint
              ? next[t]
              : std::min(next[t],
                         batches * std::max<int64_t>(types[t].num_nodes, 1));
      capacity.columns += frontier[t];
    }
  }
  if (!bounded)
    capacity = {2 * capacity.columns + kSpare, 2 * capacity.edges + kSpare};
  return capacity;
}

// Samples, again with more capacity where it did not suffice, and writes the
// outputs.
template <typename args_t>
class HopCall {
 public:
  // Allocates like `like`. All arguments except memory are set.
  HopCall(const char* op,
          const DeviceScope& scope,
          const Tensor& like,
          args_t& args)
      : op_(op), scope_(scope), like_(like), args_(args) {}

  // Returns the fault in the input, if any.
  Report run(HopCapacity capacity) {
    for (;;) {
      sample(capacity);
      if (report_.fault != Report::kOverflow)
        return report_;
      STD_TORCH_CHECK(
          std::max(capacity.columns, capacity.edges) < HopCapacity::kMost, op_,
          ": hops must have less than ", HopCapacity::kMost,
          " columns, and as many edges; use fewer seeds or smaller fan-outs");
      capacity = {std::min(4 * capacity.columns, HopCapacity::kMost),
                  std::min(4 * capacity.edges + 1, HopCapacity::kMost)};
    }
  }

  // `indptr`, `row` and `edge` of each hop and relation; `node` and `batch`
  // (with trees, or where batches begin) of each frontier and type. Graphs have
  // the dtypes of `indptr` and `indices`.
  std::array<Tensors, 5> outputs(const std::vector<int64_t>& dst,
                                 ScalarType indptr,
                                 ScalarType indices) {
    std::array<Tensors, 5> out;
    std::vector<HopEdges<Indptr, Index>> edges;
    std::vector<HopNodes> nodes;
    for (int hop = 0; hop < args_.options.num_hops; ++hop) {
      for (int r = 0; r < num_relations(); ++r)
        edges.push_back(add_edges(hop, r, dst[r], indptr, indices, &out));
      for (int t = 0; args_.has_frontier(hop) && t < num_types(); ++t)
        nodes.push_back(add_nodes(hop + 1, t, &out));
    }
    Words words;
    const size_t first_edges = words.add(edges);
    const size_t first_nodes = words.add(nodes);
    Tensor memory;
    int64_t* to = words_of("arguments", &memory, words.size());
    words.store(to, scope_.stream());
    const int64_t items = column_end_.back() + edge_end_.back();
    if (!edges.empty())
      write_hops(
          args_,
          {reinterpret_cast<const HopEdges<Indptr, Index>*>(to + first_edges),
           reinterpret_cast<const HopNodes*>(to + first_nodes),
           static_cast<int64_t>(edges.size()),
           static_cast<int64_t>(nodes.size()), items},
          scope_.stream());
    return out;
  }

  // Memory, or null for zero elements.
  int64_t* words_of(const char* what, Tensor* tensor, int64_t size) const {
    *tensor = device_vector(what, like_, size);
    return size == 0 ? nullptr : tensor->mutable_data_ptr<int64_t>();
  }

 private:
  using Indptr = typename args_t::Indptr;
  using Index = typename args_t::Index;
  static constexpr int64_t kReportWords = sizeof(Report) / sizeof(int64_t);

  int num_types() const { return args_.num_types(); }
  int num_relations() const { return args_.num_relations(); }
  int64_t hops() const { return args_.options.num_hops; }
  int64_t num_column_ends() const { return (hops() + 1) * num_types() + 1; }
  int64_t num_batch_begins() const {
    return args_.batches == 0
               ? 0
               : (hops() + 1) * num_types() * (args_.batches + 1);
  }
  int64_t num_edge_ends() const { return hops() * num_relations() + 1; }

  void sample(const HopCapacity& capacity) {
    try {
      allocate(capacity);
    } catch (const NoMemory& error) {
      throw error.in_all(capacity.edges, "edges", capacity.columns, "columns",
                         num_words(capacity));
    }
    const LaunchShape shape = sample_hops_shape(args_);
    const int64_t sums = std::max({num_types(), num_relations(), 1});
    args_.totals = words_of("totals", &totals_, sums * shape.blocks);
    sample_hops(args_, shape, scope_.stream());
    read_back();
  }

  bool draws_in_turn() const {
    return args_.weighted && !args_.options.replace;
  }

  int64_t num_words(const HopCapacity& c) const {
    const int64_t entries = NodeTable::capacity_for(c.columns);
    return c.edges * (4 + 2 * draws_in_turn()) +
           c.columns * (4 + args_.slots()) +
           entries * (NodeTable::kEntryWords + args_.slots());
  }

  void allocate(const HopCapacity& capacity) {
    const int64_t columns = capacity.columns, edges = capacity.edges;
    const int64_t entries = NodeTable::capacity_for(columns);
    memory_.clear();  // free before allocating more
    const auto words = [&](const char* what, int64_t size) {
      memory_.emplace_back();
      return words_of(what, &memory_.back(), size);
    };
    const auto half_words = [&](const char* what, int64_t size) {
      return reinterpret_cast<uint32_t*>(words(what, (size + 1) / 2));
    };
    args_.max_columns = columns;
    args_.max_edges = edges;
    args_.column = words("column", columns);
    args_.begin =
        words("begin", args_.slots() * (columns + hops() * num_types()));
    args_.batch_begin = words("batch_begin", num_batch_begins());
    args_.place = words("place", edges);
    args_.drawn_edge = words("drawn_edge", edges);
    args_.drawn_row = words("drawn_row", edges);
    args_.candidate = words("candidate", columns + edges);
    args_.taken = reinterpret_cast<TakenWeight*>(
        words("taken", draws_in_turn() ? 2 * edges : 0));
    args_.table = {reinterpret_cast<NodeTable::Entry*>(
                       words("table", NodeTable::kEntryWords * entries)),
                   static_cast<uint64_t>(entries)};
    static_assert(sizeof(TaskEdges) == sizeof(int64_t), "one word");
    args_.task_edges = reinterpret_cast<TaskEdges*>(
        words("task_edges", entries * args_.slots()));
    uint64_t* task = reinterpret_cast<uint64_t*>(words("task", columns));
    uint32_t* ready = half_words("ready", columns);
    // One sector each: blocks draw tickets while others announce tasks.
    uint64_t* state = reinterpret_cast<uint64_t*>(words("state", 8));
    args_.queue = {task, ready, reinterpret_cast<uint32_t*>(state), state + 4,
                   static_cast<uint32_t>(columns)};
    int64_t* counts = words("counts", num_counts());
    args_.report = reinterpret_cast<Report*>(counts);
    args_.column_end = counts + kReportWords;
    args_.edge_end = args_.column_end + num_column_ends();
    args_.num_drawn = words("num_drawn", 1);
  }

  int64_t num_counts() const {
    return kReportWords + num_column_ends() + num_edge_ends();
  }

  // Report and counts are adjacent: one copy reads both.
  void read_back() {
    std::vector<int64_t> counts(num_counts());
    copy_to_host(counts.data(), args_.report, counts.size() * sizeof(int64_t),
                 scope_.stream());
    std::memcpy(&report_, counts.data(), sizeof report_);
    const auto columns = counts.begin() + kReportWords;
    column_end_.assign(columns, columns + num_column_ends());
    edge_end_.assign(columns + num_column_ends(), counts.end());
  }

  HopEdges<Indptr, Index> add_edges(int hop,
                                    int r,
                                    int64_t dst,
                                    ScalarType indptr,
                                    ScalarType indices,
                                    std::array<Tensors, 5>* out) const {
    const int64_t* columns = column_end_.data() + hop * num_types() + dst;
    const int64_t* edges = edge_end_.data() + hop * num_relations() + r;
    const int64_t size = edges[1] - edges[0];
    auto& [indptrs, rows, edge, nodes, batches] = *out;
    indptrs.push_back(
        device_vector("indptr", like_, columns[1] - columns[0] + 1, indptr));
    rows.push_back(device_vector("row", like_, size, indices));
    edge.push_back(device_vector("edge", like_, size));
    return {hop,
            r,
            edges[0],
            size,
            indptrs.back().template mutable_data_ptr<Indptr>(),
            rows.back().template mutable_data_ptr<Index>(),
            edge.back().template mutable_data_ptr<int64_t>()};
  }

  HopNodes add_nodes(int hop, int t, std::array<Tensors, 5>* out) const {
    const int64_t* columns = column_end_.data() + hop * num_types() + t;
    const int64_t size = columns[1] - columns[0];
    auto& [indptrs, rows, edge, nodes, batches] = *out;
    const bool disjoint = args_.options.disjoint;
    nodes.push_back(device_vector("node", like_, size));
    if (disjoint)
      batches.push_back(device_vector("batch", like_, size));
    HopNodes to{};
    to.first_column = columns[0];
    to.num_columns = size;
    to.node = nodes.back().template mutable_data_ptr<int64_t>();
    if (disjoint)
      to.tree = batches.back().template mutable_data_ptr<int64_t>();
    if (args_.batches > 0) {
      const int64_t words = args_.batches + 1;
      batches.push_back(device_vector("ptr", like_, words));
      to.ptr = batches.back().template mutable_data_ptr<int64_t>();
      to.batch_begin =
          args_.batch_begin + (int64_t{hop} * num_types() + t) * words;
    }
    return to;
  }

  const char* const op_;
  const DeviceScope& scope_;
  const Tensor& like_;
  args_t& args_;
  Tensor totals_;
  Tensors memory_;
  Report report_;
  std::vector<int64_t> column_end_, edge_end_;
};

}  // namespace gsample
