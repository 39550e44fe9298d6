// Phases over all columns of a hop, as in neighbor_sample.cpp; but rows stay
// nodes, and each hop has a set of its own.
#include "hetero_sample_hops.h"

#include <algorithm>
#include <limits>

#include "count_columns.h"
#include "neighbor_state.h"
#include "select_frontier.h"

namespace gsample {

namespace {

constexpr int64_t kMaxIds = TableBase::kMaxIds;
constexpr int64_t kChunkEdges = 4096;       // work of one claim of a thread
constexpr int64_t kParallelEdges = 8192;    // below, threads cost more
constexpr int64_t kParallelColumns = 4096;  // likewise
constexpr int64_t kCountBlock = 1024;       // columns counted together
constexpr int64_t kPrefetch = 16;           // table accesses in flight

}  // namespace

template <typename indptr_t, typename index_t>
auto HeteroHopSampler<indptr_t, index_t>::workspace(int num_types,
                                                    int num_relations)
    -> Workspace& {
  static thread_local Workspace kept;
  while (static_cast<int>(kept.types.size()) < num_types)
    kept.types.push_back(std::make_unique<Type>());
  while (static_cast<int>(kept.relations.size()) < num_relations)
    kept.relations.push_back(std::make_unique<Columns>());
  return kept;
}

template <typename indptr_t, typename index_t>
HeteroHopSampler<indptr_t, index_t>::HeteroHopSampler(const Args& args,
                                                      bool carries)
    : args_(args),
      carries_(carries),
      threads_(args.options.num_threads),
      types_(workspace(args.num_types, args.num_relations).types),
      columns_(workspace(args.num_types, args.num_relations).relations),
      tree_time_(workspace(args.num_types, args.num_relations).tree_time) {}

template <typename indptr_t, typename index_t>
Status HeteroHopSampler<indptr_t, index_t>::status() const {
  if (fault_.kind.load() != Fault::kNone)
    return Status::kFault;
  return interrupt_.stopped() ? Status::kInterrupted : Status::kDone;
}

template <typename indptr_t, typename index_t>
int64_t HeteroHopSampler<indptr_t, index_t>::num_edges(int r) const {
  return columns_[r]->offset[num_columns(relation(r).dst)];
}

template <typename indptr_t, typename index_t>
Status HeteroHopSampler<indptr_t, index_t>::begin() {
  const int64_t expected = expected_nodes(args_);
  int64_t num_trees = 0;
  for (int t = 0; t < args_.num_types; ++t) {
    types_[t]->dense = !args_.options.disjoint &&
                       prefers_dense(args_.types[t].num_nodes, expected);
    begin_type(t, num_trees);
    num_trees += args_.types[t].num_seeds;
  }
  return status();
}

// The seeds in order, duplicates included: these have the same draws, unless
// each has a tree.
template <typename indptr_t, typename index_t>
void HeteroHopSampler<indptr_t, index_t>::begin_type(int t,
                                                     int64_t first_tree) {
  const NodeType& nodes = args_.types[t];
  const int64_t n = nodes.num_seeds;
  Type& type = *types_[t];
  type.num_columns = n;
  type.column.reserve(n);
  for (int64_t i = 0; i < n; ++i) {
    if (nodes.seeds[i] < 0 || nodes.seeds[i] >= nodes.num_nodes)
      fault_.set(Fault::kSeed, t, i, nodes.seeds[i]);
    type.column[i] = static_cast<index_t>(nodes.seeds[i]);
  }
  if (!args_.options.disjoint)
    return;
  type.tree.reserve(n);
  for (int64_t i = 0; i < n; ++i)
    type.tree[i] = static_cast<uint32_t>(first_tree + i);
  if (nodes.seed_time == nullptr)
    return;
  tree_time_.reserve(first_tree + n, first_tree);
  std::copy(nodes.seed_time, nodes.seed_time + n,
            tree_time_.data() + first_tree);
}

template <typename indptr_t, typename index_t>
Status HeteroHopSampler<indptr_t, index_t>::count(int hop,
                                                  indptr_t* const* indptr) {
  hop_ = hop;
  std::vector<Chunk> blocks;
  for (int r = 0; r < args_.num_relations; ++r) {
    const int64_t n = num_columns(relation(r).dst);
    columns_[r]->start.reserve(n);
    columns_[r]->length.reserve(n);
    columns_[r]->offset.reserve(n + 1);
    for (int64_t i = 0; i < n; i += kCountBlock)
      blocks.push_back({r, 0, i, std::min(n, i + kCountBlock)});
  }
  const bool few = blocks.size() * kCountBlock < kParallelColumns;
  parallel_items(blocks.size(), few ? 1 : threads_, [&](int64_t i) {
    interrupt_.poll();
    if (status() == Status::kDone)
      count_block(blocks[i]);
  });
  for (int r = 0; r < args_.num_relations && status() == Status::kDone; ++r)
    add_up(r, indptr[r]);
  return status();
}

template <typename indptr_t, typename index_t>
void HeteroHopSampler<indptr_t, index_t>::count_block(const Chunk& block) {
  const auto& edges = relation(block.relation);
  Type& type = *types_[edges.dst];
  Columns& columns = *columns_[block.relation];
  const int64_t n = block.end - block.begin;
  const index_t* node = type.column.data() + block.begin;
  indptr_t* start = columns.start.data() + block.begin;
  indptr_t* length = columns.length.data() + block.begin;
  ColumnCounter<indptr_t, index_t> counter(edges, args_.options, hop_);
  if (!counter.find(node, n, start, length))
    return fault_.set(Fault::kIndptr, block.relation, node[0], edges.num_edges);
  for (int64_t i = 0; edges.edge_time != nullptr && i < n; ++i)
    counter.restrict(tree_time_[type.tree[block.begin + i]], start + i,
                     length + i);
  counter.count(node, n, start, length,
                columns.offset.data() + 1 + block.begin);
}

template <typename indptr_t, typename index_t>
void HeteroHopSampler<indptr_t, index_t>::add_up(int r, indptr_t* indptr) {
  const int64_t n = num_columns(relation(r).dst);
  int64_t* offset = columns_[r]->offset.data();
  offset[0] = indptr[0] = 0;
  for (int64_t i = 0; i < n; ++i) {
    offset[i + 1] += offset[i];
    indptr[i + 1] = static_cast<indptr_t>(offset[i + 1]);
  }
  // Columns that are taken repeatedly can exceed what int32 counts.
  if (offset[n] > static_cast<int64_t>(std::numeric_limits<indptr_t>::max()))
    fault_.set(Fault::kOverflow, relation(r).src, 0, offset[n]);
}

template <typename indptr_t, typename index_t>
Status HeteroHopSampler<indptr_t, index_t>::select(
    const Key& key,
    uint32_t call_id,
    const LayerOutput<index_t>* out,
    bool next) {
  by_tree_ = args_.options.disjoint && key.batch != kEpochScope;
  for (int t = 0; next && t < args_.num_types; ++t)
    begin_frontier(t);
  if (status() != Status::kDone)
    return status();
  int64_t total = 0;
  for (int r = 0; r < args_.num_relations; ++r)
    total += num_edges(r);
  const std::vector<Chunk> chunks = cut_chunks();
  HopPipeline(chunks, args_.num_types)
      .run(
          total < kParallelEdges ? 1 : threads_, interrupt_,
          [&](const Chunk& chunk) {
            const auto& to = out[chunk.relation];
            select_edges(chunk, stream_key(key, call_id, chunk.relation),
                         to.edge);
            return read_rows(chunk, to, next);
          },
          [&](const Chunk& chunk) {
            if (next)
              meet(chunk, out[chunk.relation].row);
          });
  for (int t = 0; next && t < args_.num_types && status() == Status::kDone; ++t)
    end_frontier(t);
  return status();
}

template <typename indptr_t, typename index_t>
std::vector<Chunk> HeteroHopSampler<indptr_t, index_t>::cut_chunks() const {
  std::vector<Chunk> chunks;
  for (int r = 0; r < args_.num_relations; ++r) {
    const int64_t* offset = columns_[r]->offset.data();
    const int64_t* last = offset + num_columns(relation(r).dst);
    for (const int64_t* begin = offset; *begin < *last;) {
      const int64_t* end =
          std::lower_bound(begin + 1, last, *begin + kChunkEdges);
      chunks.push_back({r, relation(r).src, begin - offset, end - offset});
      begin = end;
    }
  }
  return chunks;
}

template <typename indptr_t, typename index_t>
void HeteroHopSampler<indptr_t, index_t>::select_edges(const Chunk& chunk,
                                                       uint64_t stream,
                                                       int64_t* edge) const {
  const Type& type = *types_[relation(chunk.relation).dst];
  const Columns& counted = *columns_[chunk.relation];
  const CountedColumns<indptr_t, index_t> columns{
      type.column.data(), by_tree_ ? type.tree.data() : nullptr,
      counted.start.data(), counted.length.data(), counted.offset.data()};
  select_frontier(relation(chunk.relation), args_.options, hop_, stream,
                  columns, chunk.begin, chunk.end, edge);
}

// The reads that sampling waits for. What becomes a column must be a node.
template <typename indptr_t, typename index_t>
bool HeteroHopSampler<indptr_t, index_t>::read_rows(
    const Chunk& chunk,
    const LayerOutput<index_t>& out,
    bool next) {
  const auto& edges = relation(chunk.relation);
  const int64_t* offset = columns_[chunk.relation]->offset.data();
  const int64_t begin = offset[chunk.begin];
  const uint64_t num_rows = args_.types[edges.src].num_nodes;
  bool bad = false;
  for (int64_t i = begin; i < offset[chunk.end]; ++i) {
    out.row[i] = edges.indices[out.edge[i]];
    bad |= static_cast<uint64_t>(out.row[i]) >= num_rows;
  }
  if (bad && next)
    fault_.set(Fault::kIndices, chunk.relation, out.edge[begin], num_rows);
  return !(bad && next);
}

// An empty set with room for all that this hop meets, and its columns.
template <typename indptr_t, typename index_t>
void HeteroHopSampler<indptr_t, index_t>::begin_frontier(int t) {
  Type& type = *types_[t];
  const int64_t carried = carries_ ? type.num_columns : 0;
  int64_t room = carried;
  for (int r = 0; r < args_.num_relations; ++r)
    room += relation(r).src == t ? num_edges(r) : 0;
  if (!args_.options.disjoint)
    room = std::min(room, args_.types[t].num_nodes);
  if (room > kMaxIds)
    return fault_.set(Fault::kOverflow, t, 0, room);
  // One more: a node is written before it is known to be new.
  type.next_column.reserve(room + 1);
  if (args_.options.disjoint)
    type.next_tree.reserve(room + 1);
  type.size = 0;
  type.with_table([&](auto& table) {
    table.begin_call(args_.types[t].num_nodes);
    table.reserve(0, room);
  });
  if (!args_.options.disjoint)
    return insert(t, type.column.data(), 0, carried, carried, 0);
  for (int64_t i = 0; i < carried; ++i)
    insert(t, type.column.data(), i, i + 1, carried, type.tree[i]);
}

template <typename indptr_t, typename index_t>
void HeteroHopSampler<indptr_t, index_t>::meet(const Chunk& chunk,
                                               const index_t* row) {
  const auto& edges = relation(chunk.relation);
  const int64_t* offset = columns_[chunk.relation]->offset.data();
  const int64_t last = offset[chunk.end];
  if (!args_.options.disjoint)
    return insert(edges.src, row, offset[chunk.begin], last, last, 0);
  const uint32_t* tree = types_[edges.dst]->tree.data();
  for (int64_t i = chunk.begin; i < chunk.end; ++i)
    insert(edges.src, row, offset[i], offset[i + 1], last, tree[i]);
}

// Adds nodes [begin, end) of a tree to the set. Those up to `prefetch_end` may
// be of the same tree; if not, their hints are wasted.
template <typename indptr_t, typename index_t>
void HeteroHopSampler<indptr_t, index_t>::insert(int t,
                                                 const index_t* node,
                                                 int64_t begin,
                                                 int64_t end,
                                                 int64_t prefetch_end,
                                                 uint32_t tree) {
  Type& type = *types_[t];
  index_t* set = type.next_column.data();
  uint32_t* trees = type.next_tree.data();
  const bool disjoint = args_.options.disjoint;
  const uint64_t first_key =
      static_cast<uint64_t>(tree) * args_.types[t].num_nodes;
  uint32_t size = static_cast<uint32_t>(type.size);
  type.with_table([&](auto& table) {
    for (int64_t i = begin; i < end; ++i) {
      if (i + kPrefetch < prefetch_end)
        table.prefetch(first_key + static_cast<uint64_t>(node[i + kPrefetch]));
      const uint64_t key = first_key + static_cast<uint64_t>(node[i]);
      const uint32_t id = table.find_or_insert(key, size);
      set[size] = node[i];
      if (disjoint)
        trees[size] = tree;
      size += id == size;
    }
  });
  type.size = size;
}

template <typename indptr_t, typename index_t>
void HeteroHopSampler<indptr_t, index_t>::end_frontier(int t) {
  Type& type = *types_[t];
  const int64_t n = type.num_columns = type.size;
  type.with_table(
      [&](auto& table) { table.end_call(static_cast<uint32_t>(n)); });
  type.column.reserve(n);
  std::copy(type.next_column.data(), type.next_column.data() + n,
            type.column.data());
  if (!args_.options.disjoint)
    return;
  type.tree.reserve(n);
  std::copy(type.next_tree.data(), type.next_tree.data() + n, type.tree.data());
}

template <typename indptr_t, typename index_t>
void HeteroHopSampler<indptr_t, index_t>::columns(int t,
                                                  int64_t* node,
                                                  int64_t* tree) const {
  const Type& type = *types_[t];
  const int64_t n = type.num_columns;
  std::copy(type.column.data(), type.column.data() + n, node);
  if (tree != nullptr)
    std::copy(type.tree.data(), type.tree.data() + n, tree);
}

template class HeteroHopSampler<int32_t, int32_t>;
template class HeteroHopSampler<int64_t, int32_t>;
template class HeteroHopSampler<int64_t, int64_t>;

}  // namespace gsample
