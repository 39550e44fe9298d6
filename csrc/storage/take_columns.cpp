// Adds the draws of columns to a batch: numbers the rows and writes the edges
// to the outputs. See torch_gsample/storage/hops.py and drawn.py.
#include <stdint.h>

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "../cpu/hop_pipeline.h"
#include "../cpu/node_set.h"
#include "../cpu/parallel.h"
#include "../cpu/prefetch.h"
#include "../cpu/write_sample.h"

#define GSAMPLE_EXPORT extern "C" __attribute__((visibility("default")))

namespace gsample {

namespace {

using Nodes = NodeSet<int64_t>;

constexpr int64_t kNear = 16;          // columns between a prefetch and its use
constexpr int64_t kChunkEdges = 4096;  // work item of a thread
constexpr int64_t kParallel = 8192;    // edges; below, threads cost more

enum Result : int64_t { kTaken = -1, kNoMemory = -2, kNoNode = -3, kStop = -4 };

// Sets without a batch, whose memory a thread reuses.
std::vector<std::unique_ptr<Nodes>>& idle_sets() {
  static thread_local std::vector<std::unique_ptr<Nodes>> sets;
  return sets;
}

// Copies items from data[from] on. Writes up to `room`, of which those after
// the column's are undefined: short columns differ in length, which a CPU
// cannot predict.
template <typename item_t>
void copy_items(const item_t* data,
                int64_t from,
                int64_t length,
                int64_t num_items,
                int64_t* out,
                int64_t room) {
  constexpr int64_t kAtOnce = 8;
  const int64_t most = length + kAtOnce;
  if (most > room || from > num_items - most) {
    std::copy(data + from, data + from + length, out);
    return;
  }
  for (int64_t i = 0; i < length; i += kAtOnce)
    for (int64_t k = 0; k < kAtOnce; ++k)
      out[i + k] = data[from + i + k];
}

// The output of a batch's edges, and the drawn edges of one relation.
template <typename row_t, typename edge_t>
struct Drawn {
  const int64_t* start;   // [n] first item of each column
  const int64_t* offset;  // [n + 1] output position of its edges
  int64_t n;
  const row_t* row;
  const edge_t* edge;
  int64_t num_items;
  int64_t num_nodes;     // rows are below
  int64_t first_column;  // number of column 0
  int64_t* row_out;
  int64_t* col_out;
  int64_t* edge_out;

  // Copies columns [begin, end); returns whether all rows are nodes.
  bool copy(int64_t begin, int64_t end) const {
    const int64_t last = offset[end];
    for (int64_t i = begin; i < end; ++i) {
      if (i + kNear < n) {
        const int64_t next = start[i + kNear];
        prefetch_item(row, next);
        prefetch_item(edge, next);
        prefetch_item(edge, next + 8);
      }
      const int64_t to = offset[i], length = offset[i + 1] - to;
      copy_items(row, start[i], length, num_items, row_out + to, last - to);
      copy_items(edge, start[i], length, num_items, edge_out + to, last - to);
    }
    fill_columns(offset, begin, end, first_column, col_out);
    bool valid = true;
    for (int64_t i = offset[begin]; i < last; ++i)
      valid &=
          static_cast<uint64_t>(row_out[i]) < static_cast<uint64_t>(num_nodes);
    return valid;
  }
};

// Splits columns [begin, end) into runs of about kChunkEdges edges.
std::vector<Chunk> cut(const int64_t* offset, int64_t begin, int64_t end) {
  std::vector<Chunk> chunks;
  while (begin < end) {
    const int64_t* next = std::lower_bound(offset + begin + 1, offset + end,
                                           offset[begin] + kChunkEdges);
    chunks.push_back({0, 0, begin, next - offset});
    begin = next - offset;
  }
  return chunks;
}

// One thread numbers the rows that the others have copied.
template <typename row_t, typename edge_t>
Result take(const Drawn<row_t, edge_t>& drawn,
            int64_t begin,
            int64_t end,
            Nodes& nodes,
            const uint32_t* tree,
            int threads) {
  const int64_t edges = drawn.offset[end] - drawn.offset[begin];
  std::atomic<bool> valid{true};
  Interrupt interrupt;
  const std::vector<Chunk> chunks = cut(drawn.offset, begin, end);
  HopPipeline(chunks, 1).run(
      edges < kParallel ? 1 : threads, interrupt,
      [&](const Chunk& chunk) {
        if (drawn.copy(chunk.begin, chunk.end))
          return true;
        valid = false;
        return false;
      },
      [&](const Chunk& chunk) {
        nodes.add({drawn.row_out, drawn.offset, chunk.begin, chunk.end, tree},
                  drawn.row_out);
      });
  return !valid ? kNoNode : interrupt.stopped() ? kStop : kTaken;
}

}  // namespace

}  // namespace gsample

// Starts the nodes of a type: seeds, duplicates included, each in a tree if
// there are `num_trees`, from `first_tree` on. Writes for each repeated seed
// the number of its first occurrence, else 0. Returns null if out of memory.
GSAMPLE_EXPORT gsample::Nodes* gsample_begin_nodes(const int64_t* seed,
                                                   int64_t n,
                                                   int64_t num_nodes,
                                                   int64_t num_trees,
                                                   int64_t first_tree,
                                                   int64_t expected,
                                                   int64_t* repeated) {
  try {
    auto& idle = gsample::idle_sets();
    if (idle.empty())
      idle.push_back(std::make_unique<gsample::Nodes>());
    gsample::Nodes& nodes = *idle.back();
    nodes.close();
    nodes.begin_call(std::max<int64_t>(num_nodes, 1), num_trees, expected);
    nodes.open();
    nodes.reserve(n);
    nodes.set_columns(0, n);
    std::copy(seed, seed + n, nodes.node.data());
    for (int64_t i = 0; num_trees > 0 && i < n; ++i)
      nodes.tree[i] = static_cast<uint32_t>(first_tree + i);
    nodes.number_columns();
    std::fill(repeated, repeated + n, 0);
    std::copy(nodes.repeated.begin(), nodes.repeated.end(), repeated);
    idle.back().release();
    idle.pop_back();
    return &nodes;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

GSAMPLE_EXPORT void gsample_end_nodes(gsample::Nodes* nodes) {
  nodes->close();
  std::unique_ptr<gsample::Nodes> owned(nodes);
  try {
    gsample::idle_sets().push_back(std::move(owned));
  } catch (const std::bad_alloc&) {  // `owned` frees it
  }
}

GSAMPLE_EXPORT int64_t gsample_num_nodes(const gsample::Nodes* nodes) {
  return nodes->size;
}

// Copies the nodes from `first` on, and their trees unless `tree` is null.
GSAMPLE_EXPORT void gsample_copy_nodes(const gsample::Nodes* nodes,
                                       int64_t first,
                                       int64_t* node,
                                       int64_t* tree) {
  const int64_t size = nodes->size;
  std::copy(nodes->node.data() + first, nodes->node.data() + size, node);
  if (tree != nullptr)
    std::copy(nodes->tree.data() + first, nodes->tree.data() + size, tree);
}

// Writes the start of each column's items, and the running total of items, from
// `total` on, to end[0 .. n); returns the column with malformed bounds, or -1.
GSAMPLE_EXPORT int64_t gsample_column_bounds(const int64_t* indptr,
                                             const int64_t* place,
                                             int64_t n,
                                             int64_t num_items,
                                             int64_t total,
                                             int64_t* start,
                                             int64_t* end) {
  using gsample::kNear;
  for (int64_t i = 0; i < n; ++i) {
    if (i + kNear < n)
      gsample::prefetch_item(indptr, place[i + kNear]);
    const int64_t first = indptr[place[i]], last = indptr[place[i] + 1];
    if (first < 0 || first > last || last > num_items)
      return i;
    start[i] = first;
    end[i] = total += last - first;
  }
  return -1;
}

// Adds the draws of columns [begin, end) of `n`: numbers their rows among
// `nodes` and writes the edges. `columns` has the trees of the columns.
GSAMPLE_EXPORT int64_t gsample_take_columns(gsample::Nodes* nodes,
                                            int64_t num_nodes,
                                            int64_t most,  // most nodes
                                                           // afterwards
                                            const gsample::Nodes* columns,
                                            int64_t first_column,
                                            const int64_t* start,   // [n]
                                            const int64_t* offset,  // [n + 1]
                                            int64_t n,
                                            int64_t begin,
                                            int64_t end,
                                            const void* row,
                                            int64_t row_bytes,  // 4 or 8
                                            const void* edge,
                                            int64_t edge_bytes,
                                            int64_t num_items,
                                            int64_t threads,
                                            int64_t* row_out,
                                            int64_t* col_out,
                                            int64_t* edge_out) {
  using gsample::Drawn;
  if (most > gsample::TableBase::kMaxIds)
    return gsample::kNoMemory;
  const auto take = [&](auto* rows, auto* edges) {
    using row_t = std::remove_const_t<std::remove_pointer_t<decltype(rows)>>;
    using edge_t = std::remove_const_t<std::remove_pointer_t<decltype(edges)>>;
    return gsample::take(
        Drawn<row_t, edge_t>{start, offset, n, rows, edges, num_items,
                             num_nodes, first_column, row_out, col_out,
                             edge_out},
        begin, end, *nodes, columns->tree.data() + first_column,
        static_cast<int>(threads));
  };
  const auto* row32 = static_cast<const int32_t*>(row);
  const auto* row64 = static_cast<const int64_t*>(row);
  const auto* edge32 = static_cast<const int32_t*>(edge);
  const auto* edge64 = static_cast<const int64_t*>(edge);
  try {
    nodes->reserve(most);
    if (row_bytes == 4)
      return edge_bytes == 4 ? take(row32, edge32) : take(row32, edge64);
    return edge_bytes == 4 ? take(row64, edge32) : take(row64, edge64);
  } catch (const std::bad_alloc&) {
    return gsample::kNoMemory;
  }
}
