// Multi-hop neighbour sampling in phases over the whole frontier, so that
// dozens of cache misses overlap:
//
//   count    offsets of the frontier's columns, temporal restriction, and the
//            number of edges to select in each column;
//   select   draws, selected edges and their rows, chunk by chunk, by all
//            threads;
//   relabel  numbers of the rows by first occurrence, chunk by chunk in order,
//            by one thread a node type at a time, while the other threads
//            select; or afterwards by all of six or more, see number_rows.h.
//
// Hops are separate, because the numbers of one hop are the columns of the
// next. The result is independent of the number of threads: draws are
// counter-based and relabelling follows the canonical order (hop, relation,
// frontier, slot).
//
// If nodes are numbered once, rows become numbers, so edges stay in the
// workspace until all hops are done. If a rule makes frontiers, the numbers
// only show which rows are new, and edges go to the caller's memory, whose size
// count() returns. The rest is shared.
#include "sample_hops.h"

#include <algorithm>
#include <limits>

#include "count_frontier.h"
#include "hop_pipeline.h"
#include "hop_workspace.h"
#include "parallel.h"
#include "radix_sort.h"
#include "select_frontier.h"
#include "write_sample.h"

namespace gsample {

namespace {

constexpr int64_t kChunkEdges = 4096;       // work item of a thread
constexpr int64_t kParallelEdges = 8192;    // below, threads cost more
constexpr int64_t kParallelColumns = 4096;  // likewise

template <typename indptr_t, typename index_t>
class HopSamplerCpu final : public HopSampler<indptr_t, index_t> {
  using Args = NeighborSampleArgs<indptr_t, index_t>;
  using Set = NodeSet<index_t>;
  using Edges = RelationEdges<indptr_t, index_t>;
  using Source = EdgeSource<indptr_t, index_t>;
  using HopSampler<indptr_t, index_t>::fault_;

 public:
  HopSamplerCpu(const Args& args, std::optional<Frontier> rule, bool sorted)
      : args_(args),
        options_(args.options),
        once_(!rule.has_value()),
        rule_(rule.value_or(Frontier::kUnseen)),
        sorted_(sorted),
        threads_(options_.num_threads > 0
                     ? std::min(options_.num_threads, max_threads())
                     : max_threads()),
        workspace_(HopWorkspace<indptr_t, index_t>::get(args.num_types,
                                                        args.num_relations)) {}

  ~HopSamplerCpu() override {
    for (int t = 0; t < args_.num_types; ++t)
      set(t).close();
  }

  Status begin() override {
    const int64_t expected = expected_nodes(args_);
    int64_t num_trees = 0;
    for (int t = 0; options_.disjoint && t < args_.num_types; ++t)
      num_trees += args_.types[t].num_seeds;
    int64_t first_tree = 0;
    for (int t = 0; t < args_.num_types; ++t) {
      set(t).begin_call(args_.types[t].num_nodes, num_trees, expected);
      begin_type(t, first_tree);
      first_tree += args_.types[t].num_seeds;
    }
    for (int r = 0; r < args_.num_relations; ++r)
      edges(r).clear();
    return status();
  }

  Status count(int hop, indptr_t* const* indptr) override {
    hop_ = hop;
    std::vector<Chunk> blocks;
    for (int r = 0; r < args_.num_relations; ++r) {
      const auto& relation = args_.relations[r];
      const Set& columns = set(relation.dst);
      const bool none = once_ && relation.fanouts[hop] == 0;
      const int64_t n = none ? 0 : columns.num_columns;
      if (!once_)
        edges(r).clear();
      edges(r).begin_hop(columns.first_column, n);
      if (is_weighted(r))
        edges(r).reserve_weights();
      for (int64_t i = 0; i < n; i += kCountBlock)
        blocks.push_back({r, 0, i, std::min(n, i + kCountBlock)});
    }
    const bool few = blocks.size() * kCountBlock < kParallelColumns;
    parallel_items(blocks.size(), few ? 1 : threads_, [&](int64_t i) {
      interrupt_.poll();
      if (ok())
        count_block(blocks[i]);
    });
    for (int r = 0; r < args_.num_relations && ok(); ++r)
      add_up(r, indptr == nullptr ? nullptr : indptr[r]);
    return status();
  }

  Status select(const std::vector<uint64_t>& streams,
                bool in_batch,
                const HopOutput<index_t>* out,
                bool next) override {
    in_batch_ = in_batch;
    const bool numbers = next && !keeps_order(rule_);
    for (int t = 0; numbers && t < args_.num_types && ok(); ++t)
      make_room(t);
    int64_t total = 0;
    for (int r = 0; r < args_.num_relations && ok(); ++r) {
      if (once_)
        edges(r).reserve_edges();
      total += edges(r).hop_edges.back();
    }
    if (!ok())
      return status();
    const std::vector<Chunk> chunks = cut_chunks();
    const bool together = relabels_together(total);
    HopPipeline(chunks, args_.num_types)
        .run(
            threads_for(total), interrupt_,
            [&](const Chunk& chunk) {
              Edges& own = edges(chunk.relation);
              const uint64_t stream = streams[chunk.relation];
              if (once_)
                return select_edges(chunk, stream, next, own.hop_edge(),
                                    own.neighbor.data());
              const auto& to = out[chunk.relation];
              return select_edges(chunk, stream, next, to.edge, to.row);
            },
            [&](const Chunk& chunk) {
              Edges& own = edges(chunk.relation);
              if (together)
                return;
              if (once_)
                relabel(chunk, own.neighbor.data(), own.hop_row());
              else if (numbers)
                relabel(chunk, out[chunk.relation].row, nullptr);
            });
    if (together && ok())
      set(args_.relations[0].src)
          .add_together(edges(0).neighbor.data(), total, edges(0).hop_row(),
                        threads_);
    if (next && !numbers && ok())
      follow(out[0].row);
    for (int t = 0; numbers && t < args_.num_types && ok(); ++t)
      end_hop(t);
    return status();
  }

  int64_t num_columns(int t) const override { return set(t).num_columns; }

  void columns(int t, int64_t* node, int64_t* tree) const override {
    const int64_t n = num_columns(t);
    std::copy(set(t).column(), set(t).column() + n, node);
    if (tree != nullptr)
      std::copy(set(t).column_tree(), set(t).column_tree() + n, tree);
  }

  Status run() override {
    begin();
    for (int hop = 0; hop < options_.num_hops && ok(); ++hop) {
      if (count(hop, nullptr) != Status::kDone)
        break;
      std::vector<uint64_t> streams(args_.num_relations);
      for (int r = 0; r < args_.num_relations; ++r)
        streams[r] = stream_key(options_.key, options_.call_id + hop, r);
      select(streams, options_.key.batch != kEpochScope, nullptr, true);
    }
    return status();
  }

  const std::vector<int64_t>& hop_nodes(int t) const override {
    return set(t).hop_nodes;
  }
  const std::vector<int64_t>& hop_edges(int r) const override {
    return edges(r).hop_edges;
  }

  void write(const NodeOutput* nodes, const EdgeOutput* out) override {
    int64_t total = 0;
    for (int r = 0; r < args_.num_relations; ++r)
      total += edges(r).size;
    write_sample(workspace_, args_.num_types, args_.num_relations, nodes, out,
                 threads_for(total));
  }

 private:
  Set& set(int t) const { return *workspace_.sets[t]; }
  Edges& edges(int r) const { return *workspace_.edges[r]; }
  const Source* source(int r) const {
    return args_.sources == nullptr ? nullptr : args_.sources[r];
  }
  bool is_weighted(int r) const {  // by a source
    return source(r) != nullptr && source(r)->is_weighted();
  }
  int threads_for(int64_t edges) const {
    return edges < kParallelEdges ? 1 : threads_;
  }
  Status status() const {
    if (fault_.kind.load() != Fault::kNone)
      return Status::kFault;
    return interrupt_.stopped() ? Status::kInterrupted : Status::kDone;
  }
  bool ok() const { return status() == Status::kDone; }

  // Seeds stay in order, duplicates included: a duplicate is a separate column.
  void begin_type(int t, int64_t first_tree) {
    const NodeType& type = args_.types[t];
    const int64_t n = type.num_seeds;
    Set& nodes = set(t);
    if (once_)
      nodes.open();
    nodes.reserve(n);
    nodes.set_columns(0, n);
    for (int64_t i = 0; i < n; ++i) {
      if (type.seeds[i] < 0 || type.seeds[i] >= type.num_nodes)
        return fault_.set(Fault::kSeed, t, i, type.seeds[i]);
      nodes.node[i] = static_cast<index_t>(type.seeds[i]);
    }
    for (int64_t i = 0; options_.disjoint && i < n; ++i)
      nodes.tree[i] = static_cast<uint32_t>(first_tree + i);
    if (once_)
      nodes.number_columns();
    if (type.seed_time == nullptr)
      return;
    workspace_.tree_time.reserve(first_tree + n, first_tree);
    std::copy(type.seed_time, type.seed_time + n,
              workspace_.tree_time.data() + first_tree);
  }

  void count_block(const Chunk& block) {
    const int r = block.relation;
    const auto& relation = args_.relations[r];
    const Set& columns = set(relation.dst);
    if (!count_frontier(relation, options_, hop_, source(r), columns,
                        workspace_.tree_time.data(), block.begin, block.end,
                        edges(r)))
      fault_.set(Fault::kIndptr, r, columns.column()[block.begin],
                 relation.num_edges);
  }

  void add_up(int r, indptr_t* indptr) {
    edges(r).add_up(indptr);
    const int64_t n = edges(r).hop_edges.back();
    // With repeated columns the number of edges may overflow int32.
    const int64_t most = std::numeric_limits<indptr_t>::max();
    if (indptr != nullptr && n > most)
      fault_.set(Fault::kOverflow, args_.relations[r].src, 0, n);
  }

  // Reserves memory for this hop's rows in the set of a type. Some rules
  // restart the set: with the columns, unless only rows are in the frontier.
  void make_room(int t) {
    Set& nodes = set(t);
    const bool begins =
        !nodes.is_open() || rule_ == Frontier::kRow || rule_ == Frontier::kNew;
    const int64_t columns =
        begins && rule_ != Frontier::kRow ? nodes.num_columns : 0;
    if (begins)
      nodes.open_beside_columns();
    int64_t room = nodes.size + columns;
    const bool drops = rule_ == Frontier::kNew || rule_ == Frontier::kUnseen;
    nodes.next_column = drops ? room : 0;
    for (int r = 0; r < args_.num_relations; ++r)
      room += args_.relations[r].src == t ? edges(r).hop_edges.back() : 0;
    const int64_t duplicates = once_ ? args_.types[t].num_seeds : 0;
    if (!options_.disjoint)
      room = std::min(room, args_.types[t].num_nodes + duplicates);
    if (room > TableBase::kMaxIds)
      return fault_.set(Fault::kOverflow, t, 0, room);
    nodes.reserve(room);
    if (columns > 0)
      nodes.add_columns();
  }

  // The ids that distinguish the draws of equal columns, or null.
  const uint32_t* roots(const Set& columns) const {
    if (!in_batch_)
      return nullptr;
    if (options_.disjoint)
      return columns.column_tree();
    const bool seeds = hop_ == 0 && !columns.repeated.empty();
    return seeds ? columns.repeated.data() : nullptr;
  }

  std::vector<Chunk> cut_chunks() const {
    std::vector<Chunk> chunks;
    for (int r = 0; r < args_.num_relations; ++r)
      edges(r).for_each_range(
          edges(r).spans.back(), kChunkEdges, [&](int64_t a, int64_t b) {
            chunks.push_back({r, args_.relations[r].src, a, b});
          });
    return chunks;
  }

  template <typename pos_t>
  bool select_edges(const Chunk& chunk,
                    uint64_t stream,
                    bool next,
                    pos_t* edge,
                    index_t* row) {
    const auto& relation = args_.relations[chunk.relation];
    const Set& columns = set(relation.dst);
    Edges& counted = edges(chunk.relation);
    const int64_t* offset = counted.offset();
    select_frontier(
        relation, options_, hop_, stream,
        CountedColumns<indptr_t, index_t>{
            columns.column(), roots(columns), counted.start.data(),
            counted.length.data(), offset,
            is_weighted(chunk.relation) ? counted.weights.data() : nullptr},
        chunk.begin, chunk.end, edge);
    const uint64_t num_rows = args_.types[relation.src].num_nodes;
    const int64_t begin = offset[chunk.begin], end = offset[chunk.end];
    bool bad = !read_rows(relation, source(chunk.relation), num_rows,
                          edge + begin, end - begin, row + begin);
    // Rows that get numbers, or become columns of a further hop, must be nodes.
    bad &= next && (!keeps_order(rule_) || hop_ + 1 < options_.num_hops);
    if (bad)
      fault_.set(Fault::kIndices, chunk.relation, edge[begin], num_rows);
    return !bad;
  }

  void relabel(const Chunk& chunk, const index_t* row, uint32_t* number) {
    const auto& relation = args_.relations[chunk.relation];
    const ColumnRows<index_t> rows{
        row, edges(chunk.relation).offset(), chunk.begin, chunk.end,
        options_.disjoint ? set(relation.dst).column_tree() : nullptr};
    set(relation.src).add(rows, number);
  }

  // Whether all threads relabel together after selecting: one at a time, a
  // thread would delay the others. One relation has its rows in one array.
  bool relabels_together(int64_t total) const {
    constexpr int kLeast = RowNumbering<index_t>::kLeastThreads;
    return once_ && args_.num_relations == 1 && threads_ >= kLeast &&
           num_cores() >= kLeast &&
           set(args_.relations[0].src).adds_together(total);
  }

  // Makes the rows the next columns of the only type, without numbers.
  void follow(const index_t* row) {
    if (rule_ == kWalkStep)
      set(0).move_columns(row, edges(0).offset());
    else
      set(0).set_columns_of(row, edges(0).hop_edges.back());
  }

  void end_hop(int t) {
    Set& nodes = set(t);
    const int64_t first = std::min(nodes.next_column, nodes.size);
    if (sorted_)
      sort_nodes(nodes.node.data() + first, nodes.node.data() + nodes.size);
    nodes.set_columns(first, nodes.size);
  }

  const Args& args_;
  const SampleOptions& options_;
  const bool once_;
  const Frontier rule_;
  const bool sorted_;
  const int threads_;
  HopWorkspace<indptr_t, index_t>& workspace_;
  int hop_ = 0;
  bool in_batch_ = false;  // draws distinguish trees and repeated seeds
  Interrupt interrupt_;
};

}  // namespace

template <typename indptr_t, typename index_t>
std::unique_ptr<HopSampler<indptr_t, index_t>> make_hop_sampler(
    const NeighborSampleArgs<indptr_t, index_t>& args,
    std::optional<Frontier> rule,
    bool sorted) {
  return std::make_unique<HopSamplerCpu<indptr_t, index_t>>(args, rule, sorted);
}

using Rule = std::optional<Frontier>;
template std::unique_ptr<HopSampler<int32_t, int32_t>>
make_hop_sampler(const NeighborSampleArgs<int32_t, int32_t>&, Rule, bool);
template std::unique_ptr<HopSampler<int64_t, int32_t>>
make_hop_sampler(const NeighborSampleArgs<int64_t, int32_t>&, Rule, bool);
template std::unique_ptr<HopSampler<int64_t, int64_t>>
make_hop_sampler(const NeighborSampleArgs<int64_t, int64_t>&, Rule, bool);

}  // namespace gsample
