// The operator sample_hops on a GPU: capacities and memory around
// cuda/sample_hops.h.
#include "../cuda/sample_hops.h"

#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <cstring>

#include "device_cuda.h"
#include "sample_hops.h"
#include "sample_memory_cuda.h"

namespace gsample {

namespace {

constexpr const char* kOp = kSampleHops;
constexpr int64_t kReportWords = sizeof(Report) / sizeof(int64_t);
// Columns and edges together have positions of 31 bits.
constexpr int64_t kMostItems = (int64_t{1} << 30) - 1;

// How many columns and edges, of all hops, there is room for.
struct HopCapacity {
  int64_t columns;
  int64_t edges;
};

// Room to try first: what fan-outs and the number of nodes allow, or about as
// much as columns of average degrees need.
HopCapacity first_capacity(const HopInputs& in) {
  constexpr int64_t kSpare = 4096;
  const int64_t n = std::max<int64_t>(in.num_nodes(), 1);
  const bool only_rows = in.frontier == Frontier::kRow;
  int64_t frontier = in.seeds.numel();
  HopCapacity capacity{frontier, 0};
  bool bounded = true;
  for (const int64_t fanout : in.fanouts) {
    const int64_t k = fanout >= 0 ? fanout : in.indices.numel() / n + 1;
    bounded &= fanout >= 0;
    if (frontier > 0 && k > kFirstTry / frontier)
      return {std::max(kFirstTry, in.seeds.numel()), kFirstTry};
    const int64_t edges = frontier * k;
    frontier = std::min(n, edges + (only_rows ? 0 : frontier));
    capacity.edges += edges;
    capacity.columns += frontier;
  }
  if (!bounded)
    capacity = {2 * capacity.columns + kSpare, 2 * capacity.edges + kSpare};
  return capacity;
}

// Memory of a call, and the kernel's view of it.
template <typename indptr_t, typename index_t>
class HopCall {
 public:
  explicit HopCall(const HopInputs& in)
      : in_(in), scope_(kOp, in.seeds), hops_(in.fanouts.size()) {
    args_.graph = in.relation<indptr_t, index_t>();
    args_.graph.indptr = graph_data<indptr_t>(in.indptr);
    args_.graph.indices = graph_data<index_t>(in.indices);
    if (in.cum_weight)
      args_.graph.cum_weight = graph_data<int64_t>(*in.cum_weight);
    args_.num_nodes = in.num_nodes();
    args_.seeds = in.seeds.const_data_ptr<int64_t>();
    args_.num_seeds = in.seeds.numel();
    args_.options.num_hops = static_cast<int>(hops_);
    args_.options.replace = in.replace;
    args_.frontier = in.frontier;
    args_.sorted = in.sorted;
    args_.next = in.return_frontier;
  }

  Hops run() {
    if (args_.num_nodes == 0 && args_.num_seeds > 0)
      raise_seed(0, first_seed());
    Words words;
    const size_t fanouts = words.add(in_.fanouts);
    const size_t streams = words.add(in_.streams);
    int64_t* to = words_of("arguments", &arguments_, words.size());
    words.store(to, scope_.stream());
    args_.graph.fanouts = to + fanouts;
    args_.streams = reinterpret_cast<const uint64_t*>(to + streams);
    for (HopCapacity capacity = first_capacity(in_);;) {
      sample(capacity);
      if (report_.fault == Report::kNone)
        return outputs();
      const bool most =
          std::max(capacity.columns, capacity.edges) == kMostItems;
      if (report_.fault != Report::kOverflow || most)
        raise(report_);
      capacity = {std::min(4 * capacity.columns, kMostItems),
                  std::min(4 * capacity.edges + 1, kMostItems)};
    }
  }

 private:
  template <typename item_t>
  const item_t* graph_data(const Tensor& tensor) const {
    return readable<item_t>(kOp, tensor, in_.seeds, "seeds");
  }

  [[noreturn]] void raise_seed(int64_t where, int64_t value) const {
    STD_TORCH_CHECK(false, kOp, ": 'seeds' must be in [0, ", in_.num_nodes(),
                    ") (got ", value, " at position ", where, ")");
    throw 0;  // not reached
  }

  [[noreturn]] void raise(const Report& report) const {
    switch (report.fault) {
      case Report::kId:
        raise_seed(report.where, report.value);
      case Report::kIndptr:
        STD_TORCH_CHECK(false, kOp, ": 'indptr' must ascend from 0 to the ",
                        report.value, " edges (it does not at column ",
                        report.where, ")");
      case Report::kIndices:
        STD_TORCH_CHECK(false, kOp, ": 'indices' must be in [0, ", report.value,
                        ") (it is not at edge ", report.where, ")");
      default:
        STD_TORCH_CHECK(false, kOp, ": hops must have less than ", kMostItems,
                        " columns, and as many edges; use fewer seeds or "
                        "smaller fan-outs");
    }
    throw 0;  // not reached
  }

  int64_t first_seed() const {
    int64_t seed;
    copy_to_host(&seed, args_.seeds, sizeof seed, scope_.stream());
    return seed;
  }

  // Memory that is null if it has no elements.
  int64_t* words_of(const char* what, Tensor* tensor, int64_t size) const {
    *tensor = device_vector(what, in_.seeds, size);
    return size == 0 ? nullptr : tensor->mutable_data_ptr<int64_t>();
  }

  void sample(const HopCapacity& capacity) {
    try {
      allocate(capacity);
    } catch (const NoMemory& error) {
      throw error.in_all(capacity.edges, "edges", capacity.columns, "columns",
                         num_words(capacity));
    }
    const LaunchShape shape = sample_hops_shape(args_);
    args_.totals = words_of("totals", &totals_, shape.blocks);
    sample_hops(args_, shape, scope_.stream());
    read_back();
  }

  bool draws_in_turn() const {
    return args_.graph.cum_weight != nullptr && !in_.replace;
  }

  int64_t num_words(const HopCapacity& c) const {
    const int64_t entries = NodeTable::capacity_for(c.columns);
    return c.edges * (4 + 2 * draws_in_turn()) + c.columns * 5 + entries * 3;
  }

  void allocate(const HopCapacity& capacity) {
    const int64_t columns = capacity.columns, edges = capacity.edges;
    const int64_t entries = NodeTable::capacity_for(columns);
    memory_.clear();  // before there is more
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
    args_.begin = words("begin", columns + hops_);
    args_.place = words("place", edges);
    args_.drawn_edge = words("drawn_edge", edges);
    args_.drawn_row = words("drawn_row", edges);
    args_.candidate = words("candidate", columns + edges);
    args_.bits =
        reinterpret_cast<uint64_t*>(words("bits", args_.num_nodes / 64 + 1));
    args_.taken = reinterpret_cast<TakenWeight*>(
        words("taken", draws_in_turn() ? 2 * edges : 0));
    args_.table = {reinterpret_cast<uint64_t*>(words("table", entries)),
                   half_words("table_value", entries),
                   static_cast<uint64_t>(entries)};
    static_assert(sizeof(TaskEdges) == sizeof(int64_t), "one word");
    args_.task_edges =
        reinterpret_cast<TaskEdges*>(words("task_edges", entries));
    uint64_t* task = reinterpret_cast<uint64_t*>(words("task", columns));
    uint32_t* ready = half_words("ready", columns);
    uint32_t* state = half_words("state", 4);
    args_.queue = {task,
                   ready,
                   state,
                   state + 1,
                   state + 2,
                   state + 3,
                   static_cast<uint32_t>(columns)};
    int64_t* counts = words("counts", num_counts());
    args_.report = reinterpret_cast<Report*>(counts);
    args_.column_end = counts + kReportWords;
    args_.edge_end = args_.column_end + hops_ + 2;
    args_.num_drawn = words("num_drawn", 1);
  }

  int64_t num_counts() const { return kReportWords + 2 * hops_ + 3; }

  // Report and counts are next to each other: one copy brings them back.
  void read_back() {
    counts_.resize(num_counts());
    copy_to_host(counts_.data(), args_.report, counts_.size() * sizeof(int64_t),
                 scope_.stream());
    std::memcpy(&report_, counts_.data(), sizeof report_);
  }

  Hops outputs() const {
    Tensors indptrs, rows, edges, nodes;
    const int64_t* column_end = counts_.data() + kReportWords;
    const int64_t* edge_end = column_end + hops_ + 2;
    for (int64_t hop = 0; hop < hops_; ++hop) {
      const bool next = args_.has_frontier(static_cast<int>(hop));
      HopOutput<indptr_t, index_t> out{};
      out.hop = static_cast<int>(hop);
      out.first_column = column_end[hop];
      out.num_columns = column_end[hop + 1] - column_end[hop];
      out.first_edge = edge_end[hop];
      out.num_edges = edge_end[hop + 1] - edge_end[hop];
      indptrs.push_back(device_vector("indptr", in_.seeds, out.num_columns + 1,
                                      in_.indptr.scalar_type()));
      rows.push_back(device_vector("row", in_.seeds, out.num_edges,
                                   in_.indices.scalar_type()));
      edges.push_back(device_vector("edge", in_.seeds, out.num_edges));
      out.indptr = indptrs.back().template mutable_data_ptr<indptr_t>();
      out.row = rows.back().template mutable_data_ptr<index_t>();
      out.edge = edges.back().template mutable_data_ptr<int64_t>();
      if (next) {
        out.num_nodes = column_end[hop + 2] - column_end[hop + 1];
        nodes.push_back(device_vector("node", in_.seeds, out.num_nodes));
        out.node = nodes.back().template mutable_data_ptr<int64_t>();
      }
      write_hop(args_, out, scope_.stream());
    }
    return {indptrs, rows, edges, nodes};
  }

  const HopInputs& in_;
  const DeviceScope scope_;
  const int64_t hops_;
  SampleHopsCuda<indptr_t, index_t> args_{};
  Tensor arguments_, totals_;
  Tensors memory_;
  Report report_;
  std::vector<int64_t> counts_;
};

Hops sample_hops_cuda(const HopInputs& in) {
  return dispatch_graph(
      kOp, in.indptr.scalar_type(), in.indices.scalar_type(),
      [&](auto indptr_type, auto index_type) {
        return HopCall<decltype(indptr_type), decltype(index_type)>(in).run();
      });
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(GSAMPLE_CUDA_LIBRARY, GSAMPLE_CUDA_KEY, m) {
  m.impl("sample_hops", TORCH_BOX(&sample_hops<sample_hops_cuda>));
}

}  // namespace gsample
