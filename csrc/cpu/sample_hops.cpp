#include "sample_hops.h"

#include <algorithm>
#include <limits>

#include "count_columns.h"
#include "select_frontier.h"

namespace gsample {

namespace {

constexpr int64_t kMaxIds = TableBase::kMaxIds;
constexpr int64_t kChunkEdges = 4096;       // work of one claim of a thread
constexpr int64_t kParallelEdges = 8192;    // below, threads cost more
constexpr int64_t kParallelColumns = 4096;  // likewise
constexpr int64_t kCountBlock = 1024;       // columns counted together
constexpr int64_t kPrefetch = 16;           // table accesses in flight

// An upper bound on the rows that all hops meet, itself bounded.
template <typename indptr_t, typename index_t>
int64_t expected_rows(const SampleHopsArgs<indptr_t, index_t>& args,
                      int64_t num_seeds) {
  constexpr int64_t kMany = int64_t{1} << 40;
  int64_t columns = num_seeds, total = num_seeds;
  for (int hop = 0; hop < args.num_hops; ++hop) {
    const int64_t k = args.graph.fanouts[hop];
    if (k < 0 || (k > 0 && columns > kMany / k))
      return kMany;
    columns *= k;
    total += columns;
  }
  return total;
}

}  // namespace

template <typename indptr_t, typename index_t>
HopSampler<indptr_t, index_t>::HopSampler(
    const SampleHopsArgs<indptr_t, index_t>& args)
    : args_(args), workspace_([]() -> Workspace& {
        static thread_local Workspace workspace;
        return workspace;
      }()) {
  options_.replace = args.replace;
}

template <typename indptr_t, typename index_t>
Status HopSampler<indptr_t, index_t>::status() const {
  if (fault_.kind.load() != Fault::kNone)
    return Status::kFault;
  return interrupt_.stopped() ? Status::kInterrupted : Status::kDone;
}

template <typename indptr_t, typename index_t>
Status HopSampler<indptr_t, index_t>::begin(const int64_t* seeds, int64_t n) {
  dense_ = prefers_dense(args_.num_nodes, expected_rows(args_, n));
  workspace_.column.reserve(n);
  for (int64_t i = 0; i < n; ++i) {
    if (seeds[i] < 0 || seeds[i] >= args_.num_nodes)
      fault_.set(Fault::kSeed, 0, i, seeds[i]);
    workspace_.column[i] = static_cast<index_t>(seeds[i]);
  }
  num_columns_ = n;
  return status();
}

template <typename indptr_t, typename index_t>
Status HopSampler<indptr_t, index_t>::count(int hop, indptr_t* indptr) {
  const int64_t n = num_columns_;
  hop_ = hop;
  workspace_.start.reserve(n);
  workspace_.length.reserve(n);
  workspace_.offset.reserve(n + 1);
  int64_t* offset = workspace_.offset.data();
  const int64_t blocks = (n + kCountBlock - 1) / kCountBlock;
  parallel_items(
      blocks, n < kParallelColumns ? 1 : args_.threads, [&](int64_t block) {
        const int64_t first = block * kCountBlock;
        const int64_t size = std::min(kCountBlock, n - first);
        const index_t* node = workspace_.column.data() + first;
        indptr_t* start = workspace_.start.data() + first;
        indptr_t* length = workspace_.length.data() + first;
        ColumnCounter<indptr_t, index_t> counter(args_.graph, options_, hop);
        interrupt_.poll();
        if (interrupt_.stopped())
          return;
        if (!counter.find(node, size, start, length))
          return fault_.set(Fault::kIndptr, 0, node[0], args_.graph.num_edges);
        counter.count(node, size, start, length, offset + 1 + first);
      });
  if (status() != Status::kDone)
    return status();
  offset[0] = indptr[0] = 0;
  for (int64_t i = 0; i < n; ++i) {
    offset[i + 1] += offset[i];
    indptr[i + 1] = static_cast<indptr_t>(offset[i + 1]);
  }
  // Columns that are taken repeatedly can exceed what int32 counts.
  if (offset[n] > static_cast<int64_t>(std::numeric_limits<indptr_t>::max()))
    fault_.set(Fault::kOverflow, 0, 0, offset[n]);
  return status();
}

template <typename indptr_t, typename index_t>
Status HopSampler<indptr_t, index_t>::select(uint64_t key,
                                             int64_t* edge,
                                             index_t* row,
                                             bool next) {
  const int64_t* offset = workspace_.offset.data();
  const int64_t total = offset[num_columns_];
  if (next)
    begin_frontier(total);
  if (status() != Status::kDone)
    return status();
  const std::vector<Chunk> chunks = cut_chunks();
  HopPipeline(chunks, 1).run(
      total < kParallelEdges ? 1 : args_.threads, interrupt_,
      [&](const Chunk& chunk) {
        select_edges(chunk, key, edge);
        return read_rows(offset[chunk.begin], offset[chunk.end], edge, row,
                         next);
      },
      [&](const Chunk& chunk) {
        if (next)
          insert(row, offset[chunk.begin], offset[chunk.end]);
      });
  if (next && status() == Status::kDone)
    end_frontier();
  return status();
}

template <typename indptr_t, typename index_t>
std::vector<Chunk> HopSampler<indptr_t, index_t>::cut_chunks() const {
  const int64_t* offset = workspace_.offset.data();
  const int64_t* last = offset + num_columns_;
  std::vector<Chunk> chunks;
  for (const int64_t* begin = offset; *begin < *last;) {
    const int64_t* end =
        std::lower_bound(begin + 1, last, *begin + kChunkEdges);
    chunks.push_back({0, 0, begin - offset, end - offset});
    begin = end;
  }
  return chunks;
}

template <typename indptr_t, typename index_t>
void HopSampler<indptr_t, index_t>::select_edges(const Chunk& chunk,
                                                 uint64_t key,
                                                 int64_t* edge) const {
  const CountedColumns<indptr_t, index_t> columns{
      workspace_.column.data(), nullptr, workspace_.start.data(),
      workspace_.length.data(), workspace_.offset.data()};
  select_frontier(args_.graph, options_, hop_, key, columns, chunk.begin,
                  chunk.end, edge);
}

// The reads that sampling waits for. What becomes a column must be a node.
template <typename indptr_t, typename index_t>
bool HopSampler<indptr_t, index_t>::read_rows(int64_t begin,
                                              int64_t end,
                                              const int64_t* edge,
                                              index_t* row,
                                              bool next) {
  bool bad = false;
  for (int64_t i = begin; i < end; ++i) {
    row[i] = args_.graph.indices[edge[i]];
    bad |=
        static_cast<uint64_t>(row[i]) >= static_cast<uint64_t>(args_.num_nodes);
  }
  if (bad && next)
    fault_.set(Fault::kIndices, 0, edge[begin], args_.num_nodes);
  return !(bad && next);
}

// Begins an empty set.
template <typename indptr_t, typename index_t>
void HopSampler<indptr_t, index_t>::clear() {
  close();
  with_table([&](auto& table) { table.begin_call(args_.num_nodes); });
  open_ = true;
}

template <typename indptr_t, typename index_t>
void HopSampler<indptr_t, index_t>::close() {
  if (open_)
    with_table(
        [&](auto& table) { table.end_call(static_cast<uint32_t>(size_)); });
  open_ = false;
  size_ = 0;
}

// A node is written before it is known to be new, so that nothing branches.
template <typename indptr_t, typename index_t>
void HopSampler<indptr_t, index_t>::insert(const index_t* node,
                                           int64_t begin,
                                           int64_t end) {
  index_t* set = workspace_.node.data();
  uint32_t size = static_cast<uint32_t>(size_);
  with_table([&](auto& table) {
    for (int64_t i = begin; i < end; ++i) {
      if (i + kPrefetch < end)
        table.prefetch(static_cast<uint64_t>(node[i + kPrefetch]));
      const uint32_t id =
          table.find_or_insert(static_cast<uint64_t>(node[i]), size);
      set[size] = node[i];
      size += id == size;
    }
  });
  size_ = size;
}

// The set that the rows of this hop come to, with room for `extra` of them.
template <typename indptr_t, typename index_t>
void HopSampler<indptr_t, index_t>::begin_frontier(int64_t extra) {
  const Frontier rule = args_.frontier;
  const bool with_columns =
      rule == Frontier::kNew || (rule != Frontier::kRow && !open_);
  const int64_t columns = with_columns ? num_columns_ : 0;
  if (!open_ || rule == Frontier::kRow || rule == Frontier::kNew)
    clear();
  const int64_t room = std::min(size_ + columns + extra, args_.num_nodes);
  if (room > kMaxIds)
    return fault_.set(Fault::kOverflow, 0, 0, room);
  workspace_.node.reserve(room + 1, size_);
  with_table([&](auto& table) { table.reserve(size_, room - size_); });
  const bool drops = rule == Frontier::kNew || rule == Frontier::kUnseen;
  skip_ = !drops ? 0 : with_columns ? num_columns_ : size_;
  insert(workspace_.column.data(), 0, columns);
}

template <typename indptr_t, typename index_t>
void HopSampler<indptr_t, index_t>::end_frontier() {
  const index_t* first = workspace_.node.data() + std::min(skip_, size_);
  num_columns_ = std::max<int64_t>(size_ - skip_, 0);
  workspace_.column.reserve(num_columns_);
  std::copy(first, first + num_columns_, workspace_.column.data());
  if (args_.sorted)
    std::sort(workspace_.column.data(),
              workspace_.column.data() + num_columns_);
}

template <typename indptr_t, typename index_t>
void HopSampler<indptr_t, index_t>::columns(int64_t* node) const {
  std::copy(workspace_.column.data(), workspace_.column.data() + num_columns_,
            node);
}

template class HopSampler<int32_t, int32_t>;
template class HopSampler<int64_t, int32_t>;
template class HopSampler<int64_t, int64_t>;

}  // namespace gsample
