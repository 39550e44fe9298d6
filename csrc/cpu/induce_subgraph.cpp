#include "induce_subgraph.h"

#include <algorithm>
#include <atomic>

#include "pair_filter.h"
#include "parallel.h"
#include "prefetch.h"
#include "tables.h"

namespace gsample {

namespace {

constexpr int64_t kChunk = 256;     // columns per work item of a thread
constexpr int64_t kPrefetched = 8;  // columns prefetched
constexpr int64_t kScan = 512;      // edges filtered at a time

// An upper bound on the number of trees, if they are numbered from 0.
int64_t count_trees(const int64_t* batch, int64_t size) {
  int64_t most = 0;
  for (int64_t i = 0; batch != nullptr && i < size; ++i)
    most = std::max(most, batch[i]);
  return std::min(most, size);
}

}  // namespace

template <typename indptr_t, typename index_t>
Status induce_subgraph(const InduceArgs<indptr_t, index_t>& args,
                       std::vector<InducedEdges>* parts) {
  const int64_t num_rows = args.num_row_nodes, n = args.num_col_nodes;
  const auto tree_of = [](const int64_t* batch, int64_t i) -> uint64_t {
    return batch == nullptr ? 0 : batch[i];
  };
  // (tree, node) as one number, the key of `row_nodes`.
  const auto key = [&](uint64_t tree, int64_t node) {
    return tree * static_cast<uint64_t>(args.num_rows) + node;
  };
  static thread_local HashTable<uint64_t> caller_rows;
  static thread_local PairFilter caller_filter;
  HashTable<uint64_t>& rows = caller_rows;  // the caller's, shared by all
                                            // threads
  PairFilter& filter = caller_filter;
  rows.begin_call(0);
  rows.reserve(0, num_rows);
  filter.clear(num_rows, count_trees(args.row_batch, num_rows));
  for (int64_t i = 0; i < num_rows; ++i) {
    const uint64_t tree = tree_of(args.row_batch, i);
    rows.find_or_insert(key(tree, args.row_nodes[i]), static_cast<uint32_t>(i));
    filter.insert(tree, args.row_nodes[i]);
  }
  const auto is_column = [&](int64_t j) {
    const int64_t v = args.col_nodes[j];
    return v >= 0 && v < args.num_cols && args.indptr[v] >= 0 &&
           args.indptr[v] <= args.indptr[v + 1] &&
           args.indptr[v + 1] <= args.num_edges;
  };
  const auto prefetch = [&](int64_t j) {
    if (j + kPrefetched < n)
      prefetch_item(args.indptr, args.col_nodes[j + kPrefetched]);
    if (j < n && is_column(j))
      __builtin_prefetch(args.indices + args.indptr[args.col_nodes[j]]);
  };
  const int64_t chunks = (n + kChunk - 1) / kChunk;
  parts->resize(chunks);
  std::atomic<bool> valid{true};
  Interrupt interrupt;
  parallel_items(chunks, args.num_threads, [&](int64_t chunk) {
    InducedEdges& out = (*parts)[chunk];
    const int64_t end = std::min(n, (chunk + 1) * kChunk);
    for (int64_t j = chunk * kChunk; j < end; ++j) {
      if (!is_column(j)) {
        valid = false;
        return;
      }
      interrupt.poll();
      if (interrupt.stopped())
        return;
      prefetch(j + kPrefetched);
      const int64_t v = args.col_nodes[j];
      const uint64_t tree = tree_of(args.col_batch, j);
      const int64_t last = args.indptr[v + 1];
      for (int64_t e = args.indptr[v]; e < last; e += kScan) {
        int64_t found[kScan];
        const int count = filter.scan(tree, args.indices, e,
                                      std::min(e + kScan, last), found);
        for (int i = 0; i < count; ++i) {
          uint32_t row;
          if (!rows.find(key(tree, args.indices[found[i]]), &row))
            continue;
          out.push_back({row, j, found[i]});
        }
      }
    }
  });
  rows.end_call(static_cast<uint32_t>(num_rows));
  if (interrupt.stopped())
    return Status::kInterrupted;
  return valid ? Status::kDone : Status::kFault;
}

template Status induce_subgraph(const InduceArgs<int32_t, int32_t>&,
                                std::vector<InducedEdges>*);
template Status induce_subgraph(const InduceArgs<int64_t, int32_t>&,
                                std::vector<InducedEdges>*);
template Status induce_subgraph(const InduceArgs<int64_t, int64_t>&,
                                std::vector<InducedEdges>*);

}  // namespace gsample
