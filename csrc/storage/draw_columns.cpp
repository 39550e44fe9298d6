// Bounds and draws of columns on disk, see torch_gsample/storage/columns.py.
#include <algorithm>
#include <new>

#include "../core/philox.h"
#include "../cpu/sample_columns.h"
#include "cached_items.h"

#define GSAMPLE_EXPORT extern "C" __attribute__((visibility("default")))

namespace gsample {

// One draw of columns. The layout is that of `_Draw` in draw_columns.py.
struct ColumnsDraw {
  const int64_t* node;         // [n] keys the draws
  const int64_t* root;         // [n] or null
  const int64_t* start;        // [n] position of the first edge
  const int64_t* indptr;       // [n + 1] running total of the lengths
  const int64_t* cum_weight;   // of all edges of the columns, or null
  const int64_t* edge_time;    // likewise
  const int64_t* column_time;  // [n] with edge times
  int64_t n;
  int64_t k;  // edges per column; -1 selects all
  const int64_t* key;
  int64_t call_id;
  int64_t relation;
  int64_t replace;
  int64_t last;
  int64_t has_window;
  int64_t window;
  int64_t threads;
};

namespace {

enum DrawResult : int64_t { kTooMany = -1, kStopped = -2, kNoMemory = -3 };

int64_t draw(const ColumnsDraw& d,
             int64_t most,
             int64_t* indptr,
             int64_t* position) {
  const Key key{d.key[0], d.key[1], d.key[2]};
  const uint64_t stream = stream_key(key, static_cast<uint32_t>(d.call_id),
                                     static_cast<uint32_t>(d.relation));
  SampleColumnsArgs<int64_t> args{};
  args.edges.indptr = d.indptr;
  args.edges.cum_weight = d.cum_weight;
  args.edges.edge_time = d.edge_time;
  args.edges.fanouts = &d.k;
  args.edges.num_edges = d.indptr[d.n];
  args.all_cols = args.n = d.n;
  args.id = d.node;
  args.root = d.root;
  args.column_time = d.column_time;
  args.start = d.start;
  args.streams = &stream;
  args.batches = 1;
  args.k = d.k;
  args.options.replace = d.replace;
  args.options.last = d.last && d.edge_time != nullptr;
  args.options.has_window = d.has_window;
  args.options.window = d.window;
  args.options.num_threads = static_cast<int>(d.threads);
  ColumnsSampler<int64_t> sampler(args);
  Status status = sampler.count(indptr);
  if (status == Status::kDone && indptr[d.n] > most)
    return kTooMany;
  if (status == Status::kDone)
    status = sampler.select(indptr, position);
  return status == Status::kDone          ? indptr[d.n]
         : status == Status::kInterrupted ? kStopped
                                          : kTooMany;
}

}  // namespace

}  // namespace gsample

// Turns the stored offsets of nodes, checked here, into the positions of their
// first edges and the running total of their lengths. Returns the first node
// whose offsets are malformed, or -1.
GSAMPLE_EXPORT int64_t
gsample_end_bounds(const gsample::StoredColumns* columns,
                   const int64_t* node,  // [n]
                   int64_t n,
                   const int64_t* found,  // [2 * n], of gsample_find_bounds
                   int64_t* start,        // [n]
                   int64_t* indptr) {     // [n + 1]
  gsample::ChunkFinder chunks(columns->offset);
  int64_t total = indptr[0] = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t last = chunks.find(node[i]);
    const int64_t first = columns->first_chunk(node[i], last);
    int64_t length;
    if (!columns->edges(first, last, found[2 * i], found[2 * i + 1], start + i,
                        &length) ||
        __builtin_add_overflow(total, length, &total))
      return i;
    indptr[i + 1] = total;
  }
  return -1;
}

// Copies the stored offsets of each node and of the next one: where its edges
// start in its first chunk, and end in its last. Returns the number of missing
// items.
GSAMPLE_EXPORT int64_t
gsample_find_bounds(const gsample::CachedBlocks* blocks,
                    const gsample::StoredColumns* columns,
                    const int64_t* node,  // [n]
                    int64_t n,
                    int64_t* out,       // [2 * n]
                    int64_t* missing,   // [2 * n]
                    int64_t* offset) {  // [2 * n]
  gsample::Missing found{missing, offset};
  const gsample::StoredItems& items = columns->offset;
  gsample::ChunkFinder chunks(items);
  const auto offset_of = [&](int64_t i) {
    const int64_t key = node[i / 2];
    int64_t chunk = chunks.find(key);
    if (i % 2 == 0)
      chunk = columns->first_chunk(key, chunk);
    return items.origin[chunk] + (key + i % 2) * items.item_bytes;
  };
  gsample::copy_found<8>(*blocks, 2 * n, offset_of,
                         reinterpret_cast<char*>(out), found);
  return found.count;
}

// Draws edges: writes the running total of the draws of columns and the
// positions of the edges. Returns their number, or a DrawResult.
GSAMPLE_EXPORT int64_t gsample_draw_columns(const gsample::ColumnsDraw* draw,
                                            int64_t most,  // room for positions
                                            int64_t* indptr,      // [n + 1]
                                            int64_t* position) {  // [most]
  try {
    return gsample::draw(*draw, most, indptr, position);
  } catch (const std::bad_alloc&) {
    return gsample::kNoMemory;
  }
}
