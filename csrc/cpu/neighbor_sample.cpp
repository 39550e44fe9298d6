// Multi-hop neighbour sampling in phases over the whole frontier, so that
// dozens of cache misses overlap:
//
//   count    offsets of the frontier's columns, temporal restriction, and how
//            many edges each column gives;
//   select   draws, selected edges and their neighbours, chunk by chunk, by
//            all threads;
//   relabel  local ids of the neighbours by first occurrence, chunk by chunk
//            in order, by one thread a node type at a time, while the other
//            threads select.
//
// Hops are separated, because a node is sampled at the first hop that meets
// it. Nothing depends on the number of threads: draws are counter-based and
// relabelling goes by the canonical order (hop, relation, frontier, slot).
#include "neighbor_sample.h"

#include <algorithm>

#include "count_columns.h"
#include "hop_pipeline.h"
#include "neighbor_state.h"
#include "parallel.h"
#include "relabel.h"
#include "select_frontier.h"

namespace gsample {

namespace {

constexpr int64_t kMaxIds = TableBase::kMaxIds;
constexpr int64_t kChunkEdges = 4096;       // work of one claim of a thread
constexpr int64_t kParallelEdges = 8192;    // below, threads cost more
constexpr int64_t kParallelColumns = 4096;  // likewise
constexpr int64_t kWriteEdges = 65536;      // work of one claim of a writer
constexpr int64_t kCountBlock = 1024;       // columns counted together

template <typename indptr_t, typename index_t>
class NeighborSampleCpu final : public NeighborSample {
  using Type = TypeState<index_t>;
  using Edges = RelationState<indptr_t, index_t>;

 public:
  explicit NeighborSampleCpu(const NeighborSampleArgs<indptr_t, index_t>& args)
      : args_(args),
        options_(args.options),
        threads_(options_.num_threads > 0
                     ? std::min(options_.num_threads, max_threads())
                     : max_threads()),
        workspace_(Workspace<indptr_t, index_t>::get(args.num_types,
                                                     args.num_relations)) {}

  Status run() override {
    begin();
    for (int hop = 0; hop < options_.num_hops && ok(); ++hop) {
      count(hop);
      if (ok() && reserve_hop())
        select_and_relabel(hop);
      finish_hop();
    }
    if (fault_.kind.load() != Fault::kNone)
      return Status::kFault;
    if (interrupt_.stopped())
      return Status::kInterrupted;
    for (int t = 0; t < args_.num_types; ++t)
      type(t).with_table([&](auto& table) {
        table.end_call(static_cast<uint32_t>(type(t).size));
      });
    return Status::kDone;
  }

  const Fault& fault() const override { return fault_; }
  const std::vector<int64_t>& hop_nodes(int t) const override {
    return type(t).hop_nodes;
  }
  const std::vector<int64_t>& hop_edges(int r) const override {
    return edges(r).hop_edges;
  }

  void write(const NodeOutput* nodes, const EdgeOutput* out) override {
    std::vector<std::function<void()>> parts;
    for (int t = 0; t < args_.num_types; ++t)
      parts.push_back([this, t, nodes] { write_nodes(type(t), nodes[t]); });
    int64_t total = 0;
    for (int r = 0; r < args_.num_relations; ++r) {
      total += edges(r).size;
      for (const Span& span : edges(r).spans)
        for_each_range(edges(r), span, kWriteEdges, [&](int64_t a, int64_t b) {
          parts.push_back([this, r, span, a, b, out] {
            write_columns(edges(r), span, a, b, out[r]);
          });
        });
    }
    parallel_items(parts.size(), total < kParallelEdges ? 1 : threads_,
                   [&](int64_t i) { parts[i](); });
  }

 private:
  Type& type(int t) { return *workspace_.types[t]; }
  const Type& type(int t) const { return *workspace_.types[t]; }
  Edges& edges(int r) { return *workspace_.relations[r]; }
  const Edges& edges(int r) const { return *workspace_.relations[r]; }
  bool ok() const {
    return fault_.kind.load() == Fault::kNone && !interrupt_.stopped();
  }

  // Seeds come first, in order, duplicates included: a duplicate is a column
  // of its own with the same draws, and rows refer to the first of them.
  void begin() {
    const int64_t expected = expected_nodes(args_);
    int64_t num_trees = 0;
    for (int t = 0; t < args_.num_types; ++t) {
      const NodeType& nodes = args_.types[t];
      Type& state = type(t);
      state.dense =
          !options_.disjoint && prefers_dense(nodes.num_nodes, expected);
      state.hop_nodes.assign(1, nodes.num_seeds);
      state.node.reserve(nodes.num_seeds);
      if (options_.disjoint)
        state.root.reserve(nodes.num_seeds);
      state.with_table([&](auto& table) {
        table.begin_call(nodes.num_nodes);
        table.reserve(0, nodes.num_seeds);
        for (int64_t i = 0; i < nodes.num_seeds && ok(); ++i)
          add_seed(t, i, num_trees + i, table);
      });
      state.frontier_begin = 0;
      state.size = state.frontier_end = nodes.num_seeds;
      if (nodes.seed_time != nullptr) {
        workspace_.root_time.reserve(num_trees + nodes.num_seeds, num_trees);
        std::copy(nodes.seed_time, nodes.seed_time + nodes.num_seeds,
                  workspace_.root_time.data() + num_trees);
      }
      num_trees += nodes.num_seeds;
    }
    for (int r = 0; r < args_.num_relations; ++r) {
      edges(r).size = edges(r).num_offsets = 0;
      edges(r).spans.clear();
      edges(r).hop_edges.clear();
    }
  }

  template <typename table_t>
  void add_seed(int t, int64_t i, int64_t tree, table_t& table) {
    const int64_t seed = args_.types[t].seeds[i];
    if (seed < 0 || seed >= args_.types[t].num_nodes || i >= kMaxIds)
      return fault_.set(Fault::kSeed, t, i, seed);
    type(t).node[i] = static_cast<index_t>(seed);
    if (options_.disjoint)
      type(t).root[i] = static_cast<uint32_t>(tree);
    table.find_or_insert(
        table_key(t, seed, options_.disjoint ? static_cast<uint32_t>(tree) : 0),
        static_cast<uint32_t>(i));
  }

  uint64_t table_key(int t, int64_t node, uint32_t tree) const {
    return static_cast<uint64_t>(tree) * args_.types[t].num_nodes + node;
  }

  // The candidates of every column of the frontiers, and how many are taken.
  void count(int hop) {
    std::vector<Chunk> blocks;
    for (int r = 0; r < args_.num_relations; ++r) {
      const auto& relation = args_.relations[r];
      const Type& columns = type(relation.dst);
      const int64_t n = relation.fanouts[hop] == 0
                            ? 0
                            : columns.frontier_end - columns.frontier_begin;
      Edges& state = edges(r);
      state.spans.push_back(
          {columns.frontier_begin, n, state.size, state.num_offsets});
      state.offsets.reserve(state.num_offsets + n + 1, state.num_offsets);
      state.num_offsets += n + 1;
      state.start.reserve(n);
      state.length.reserve(n);
      for (int64_t i = 0; i < n; i += kCountBlock)
        blocks.push_back({r, 0, i, std::min(n, i + kCountBlock)});
    }
    const bool few = blocks.size() * kCountBlock < kParallelColumns;
    parallel_items(blocks.size(), few ? 1 : threads_, [&](int64_t i) {
      interrupt_.poll();
      if (ok())
        count_block(blocks[i], hop);
    });
    for (int r = 0; r < args_.num_relations && ok(); ++r) {
      const Span& span = edges(r).spans.back();
      int64_t* offset = edges(r).offsets.data() + span.offsets;
      offset[0] = 0;
      for (int64_t i = 0; i < span.columns; ++i)
        offset[i + 1] += offset[i];
      edges(r).hop_edges.push_back(offset[span.columns]);
    }
  }

  void count_block(const Chunk& block, int hop) {
    const auto& relation = args_.relations[block.relation];
    Edges& state = edges(block.relation);
    const Span& span = state.spans.back();
    const int64_t first = span.frontier + block.begin;
    const int64_t n = block.end - block.begin;
    const index_t* node = type(relation.dst).node.data() + first;
    indptr_t* start = state.start.data() + block.begin;
    indptr_t* length = state.length.data() + block.begin;
    ColumnCounter<indptr_t, index_t> counter(relation, options_, hop);
    if (!counter.find(node, n, start, length))
      return fault_.set(Fault::kIndptr, block.relation, node[0],
                        relation.num_edges);
    const uint32_t* root = roots(relation.dst, first);
    for (int64_t i = 0; relation.edge_time != nullptr && i < n; ++i)
      counter.restrict(workspace_.root_time[root[i]], start + i, length + i);
    counter.count(node, n, start, length,
                  state.offsets.data() + span.offsets + 1 + block.begin);
  }

  // Makes room for all that this hop can add.
  bool reserve_hop() {
    for (int t = 0; t < args_.num_types; ++t) {
      Type& state = type(t);
      int64_t extra = 0;
      for (int r = 0; r < args_.num_relations; ++r)
        extra += args_.relations[r].src == t ? edges(r).hop_edges.back() : 0;
      if (!options_.disjoint)
        extra = std::min(extra, args_.types[t].num_nodes);
      if (state.size + extra > kMaxIds) {
        fault_.set(Fault::kOverflow, t, 0, state.size + extra);
        return false;
      }
      // One more: relabelling writes a node before it knows it to be new.
      state.node.reserve(state.size + extra + 1, state.size);
      if (options_.disjoint)
        state.root.reserve(state.size + extra + 1, state.size);
      state.with_table([&](auto& table) { table.reserve(state.size, extra); });
    }
    for (int r = 0; r < args_.num_relations; ++r) {
      Edges& state = edges(r);
      const int64_t extra = state.hop_edges.back();
      state.edge.reserve(state.size + extra, state.size);
      state.row.reserve(state.size + extra, state.size);
      state.neighbor.reserve(extra);
    }
    return true;
  }

  void select_and_relabel(int hop) {
    const std::vector<Chunk> chunks = cut_chunks();
    int64_t total = 0;
    for (int r = 0; r < args_.num_relations; ++r)
      total += edges(r).hop_edges.back();
    HopPipeline(chunks, args_.num_types)
        .run(
            total < kParallelEdges ? 1 : threads_, interrupt_,
            [&](const Chunk& chunk) { return select_edges(chunk, hop); },
            [&](const Chunk& chunk) { relabel_edges(chunk); });
  }

  std::vector<Chunk> cut_chunks() const {
    std::vector<Chunk> chunks;
    for (int r = 0; r < args_.num_relations; ++r)
      for_each_range(edges(r), edges(r).spans.back(), kChunkEdges,
                     [&](int64_t a, int64_t b) {
                       chunks.push_back({r, args_.relations[r].src, a, b});
                     });
    return chunks;
  }

  bool select_edges(const Chunk& chunk, int hop) {
    const auto& relation = args_.relations[chunk.relation];
    Edges& state = edges(chunk.relation);
    const Span& span = state.spans.back();
    const int64_t* offset = state.offsets.data() + span.offsets;
    const bool trees = options_.disjoint && options_.key.batch != kEpochScope;
    const CountedColumns<indptr_t, index_t> columns{
        type(relation.dst).node.data() + span.frontier,
        trees ? roots(relation.dst, span.frontier) : nullptr,
        state.start.data(), state.length.data(), offset};
    select_frontier(
        relation, options_, hop,
        stream_key(options_.key, options_.call_id + hop, chunk.relation),
        columns, chunk.begin, chunk.end, state.edge.data() + span.edges);
    return read_neighbors(chunk.relation, offset[chunk.begin],
                          offset[chunk.end]);
  }

  // The rows of the selected edges: the reads that sampling waits for.
  bool read_neighbors(int r, int64_t begin, int64_t end) {
    const auto& relation = args_.relations[r];
    Edges& state = edges(r);
    const uint64_t num_nodes = args_.types[relation.src].num_nodes;
    const indptr_t* edge = state.edge.data() + state.spans.back().edges;
    index_t* neighbor = state.neighbor.data();
    bool bad = false;
    for (int64_t i = begin; i < end; ++i) {
      neighbor[i] = relation.indices[edge[i]];
      bad |= static_cast<uint64_t>(neighbor[i]) >= num_nodes;
    }
    if (bad)
      fault_.set(Fault::kIndices, r, edge[begin], num_nodes);
    return !bad;
  }

  void relabel_edges(const Chunk& chunk) {
    const auto& relation = args_.relations[chunk.relation];
    Edges& state = edges(chunk.relation);
    const Span& span = state.spans.back();
    const int64_t* offset = state.offsets.data() + span.offsets;
    const int64_t last = offset[chunk.end];
    const index_t* neighbor = state.neighbor.data();
    uint32_t* row = state.row.data() + span.edges;
    Type& rows = type(relation.src);
    rows.with_table([&](auto& table) {
      if (!options_.disjoint)
        return relabel<false>(neighbor, offset[chunk.begin], last, last, 0, 0,
                              table, rows, row);
      const uint32_t* root = roots(relation.dst, span.frontier);
      for (int64_t i = chunk.begin; i < chunk.end; ++i)
        relabel<true>(neighbor, offset[i], offset[i + 1], last,
                      table_key(relation.src, 0, root[i]), root[i], table, rows,
                      row);
    });
  }

  void finish_hop() {
    for (int r = 0; r < args_.num_relations && ok(); ++r)
      edges(r).size += edges(r).hop_edges.back();
    for (int t = 0; t < args_.num_types; ++t) {
      Type& state = type(t);
      state.frontier_begin = state.frontier_end;
      state.frontier_end = state.size;
      state.hop_nodes.push_back(state.frontier_end - state.frontier_begin);
    }
  }

  const uint32_t* roots(int t, int64_t frontier) const {
    return options_.disjoint ? type(t).root.data() + frontier : nullptr;
  }

  const NeighborSampleArgs<indptr_t, index_t>& args_;
  const SampleOptions& options_;
  const int threads_;
  Workspace<indptr_t, index_t>& workspace_;
  Fault fault_;
  Interrupt interrupt_;
};

}  // namespace

template <typename indptr_t, typename index_t>
std::unique_ptr<NeighborSample> make_neighbor_sample(
    const NeighborSampleArgs<indptr_t, index_t>& args) {
  return std::make_unique<NeighborSampleCpu<indptr_t, index_t>>(args);
}

template std::unique_ptr<NeighborSample> make_neighbor_sample(
    const NeighborSampleArgs<int32_t, int32_t>& args);
template std::unique_ptr<NeighborSample> make_neighbor_sample(
    const NeighborSampleArgs<int64_t, int32_t>& args);
template std::unique_ptr<NeighborSample> make_neighbor_sample(
    const NeighborSampleArgs<int64_t, int64_t>& args);

}  // namespace gsample
