#include "induce_subgraph.h"

#include <algorithm>
#include <atomic>

#include "parallel.h"
#include "tables.h"

namespace gsample {

namespace {

constexpr int64_t kParallelColumns = 256;

}  // namespace

template <typename indptr_t, typename index_t>
Status induce_subgraph(const InduceArgs<indptr_t, index_t>& args,
                       std::vector<InducedEdges>* parts) {
  // (tree, node) as one number: what `row_nodes` is searched by.
  const auto key = [&](const int64_t* batch, int64_t i, int64_t node) {
    const uint64_t tree = batch == nullptr ? 0 : batch[i];
    return tree * static_cast<uint64_t>(args.num_rows) + node;
  };
  HashTable rows;
  rows.begin_call(0);
  rows.reserve(0, args.num_row_nodes);
  for (int64_t i = 0; i < args.num_row_nodes; ++i)
    rows.find_or_insert(key(args.row_batch, i, args.row_nodes[i]),
                        static_cast<uint32_t>(i));
  const int threads = static_cast<int>(std::max<int64_t>(
      1, std::min<int64_t>(args.num_threads,
                           args.num_col_nodes / kParallelColumns)));
  parts->resize(threads);
  std::atomic<bool> valid{true};
  Interrupt interrupt;
  run_tasks(threads, [&](int part) {
    InducedEdges& out = (*parts)[part];
    const int64_t n = args.num_col_nodes;
    for (int64_t j = n * part / threads; j < n * (part + 1) / threads; ++j) {
      const int64_t v = args.col_nodes[j];
      if (v < 0 || v >= args.num_cols || args.indptr[v] < 0 ||
          args.indptr[v] > args.indptr[v + 1] ||
          args.indptr[v + 1] > args.num_edges) {
        valid = false;
        return;
      }
      interrupt.poll();
      if (interrupt.stopped())
        return;
      for (indptr_t e = args.indptr[v]; e < args.indptr[v + 1]; ++e) {
        uint32_t row;
        if (!rows.find(key(args.col_batch, j, args.indices[e]), &row))
          continue;
        out.row.push_back(row);
        out.col.push_back(j);
        out.edge.push_back(e);
      }
    }
  });
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
