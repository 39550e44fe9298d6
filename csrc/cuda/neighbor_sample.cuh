// All hops of neighbour sampling in one cooperative launch, for any number of
// node types and relations. A hop has phases with a grid barrier after each, as
// a node belongs to the first hop that samples it:
//
//   count    number of edges to select in the frontier's columns, per block;
//   select   draws, selected edges and their neighbours, which enter a table
//            with the position of the edge;
//   find     the edges that are the first to visit a node;
//   number   local ids in the order of these edges;
//   relabel  rows of the edges. The next hop counts at once.
//
// Many batches share all phases. In each hop they are consecutive, as the first
// columns are: the first edge to visit a node depends on this order. If nodes
// of a type come from several relations, their numbers are put in the order of
// batches.
//
// Every phase processes the relations in turn. Positions, columns and new nodes
// of each are dealt to blocks in consecutive ranges, so that a sum over earlier
// blocks and a scan in the block give each its position. All blocks compute the
// same sums, hence end the same way: a fault is reported, the faulty item is
// skipped, and the launch continues to where all blocks leave.
#pragma once

#include "cached_relation.cuh"
#include "neighbor_view.cuh"
#include "node_table.cuh"
#include "report.cuh"
#include "sample_column.cuh"
#include "select_column.cuh"

namespace gsample {

constexpr int kSampleThreads = 256;   // per block
constexpr int64_t kLongColumn = 512;  // edges of a column that a block handles

struct SampleShared {
  BlockSums sums;
  BlockReads reads;  // of the relation whose columns draw
  SampleColumn column[kSampleThreads];
  Stream draw[kSampleThreads];  // of the columns
};

template <bool kWeighted, bool kOne, typename indptr_t, typename index_t>
class NeighborSampler : NeighborView<kOne, indptr_t, index_t> {
  using View = NeighborView<kOne, indptr_t, index_t>;
  using typename View::Args;
  using typename View::Graph;
  using typename View::Span;
  using View::a_;
  using View::batch_firsts;
  using View::counts;
  using View::draw_of;
  using View::edges;
  using View::find_batches;
  using View::first_key;
  using View::firsts;
  using View::for_each_batch;
  using View::frontier;
  using View::has_batches;
  using View::is_first_thread;
  using View::key;
  using View::num_relations;
  using View::num_types;
  using View::orders_batches;
  using View::part_of;
  using View::relation;
  using View::tree;
  using View::tree_of_seed;
  using View::type;

 public:
  __device__ NeighborSampler(const Args& args, SampleShared& shared)
      : View(args), shared_(shared) {}

  __device__ void run() {
    begin();
    for (int hop = 0; hop < a_.options.num_hops; ++hop) {
      count(hop);
      grid_barrier();
      if (!select(hop))
        return;
      grid_barrier();
      find(hop);
      grid_barrier();
      number(hop);
      grid_barrier();
      relabel(hop);
    }
    if (has_batches())
      find_batches();
  }

 private:
  // Seeds come first, in order, duplicates included: rows refer to the first
  // occurrence.
  __device__ void begin() {
    clear_table(a_.table);
    clear_reads(shared_.reads);
    if (is_first_thread()) {
      a_.report->fault = Report::kNone;
      a_.edge_end[0] = 0;
      for (int t = 0; t < num_types(); ++t) {
        a_.node_end[t] = 0;
        a_.node_end[num_types() + t] = type(t).of.num_seeds;
      }
    }
    const int64_t sums = a_.options.num_hops * num_relations() *
                         (orders_batches() ? a_.batches.count : 0);
    for (int64_t i = global_rank(); i < sums; i += grid_threads())
      a_.batches.firsts[i] = 0;
    grid_barrier();
    for (int t = 0; t < num_types(); ++t)
      add_seeds(t);
    grid_barrier();
  }

  __device__ void add_seeds(int t) const {
    const SampledType& of = type(t);
    for (int64_t i = global_rank(); i < of.of.num_seeds; i += grid_threads()) {
      int64_t seed = of.of.seeds[i];
      if (seed < 0 || seed >= of.of.num_nodes) {
        note_fault(a_.report, Report::kId, i, seed, t);
        seed = 0;
      }
      of.node[i] = seed;
      if (of.batch != nullptr) {
        const int64_t tree = tree_of_seed(t, i);
        of.batch[i] = tree;
        if (a_.tree_time != nullptr)
          a_.tree_time[tree] = of.of.seed_time[i];
      }
      insert_min(a_.table, first_key(of, of, i) + seed,
                 static_cast<uint32_t>(i));
    }
  }

  __device__ void count(int hop) {
    for (int r = 0; r < num_relations(); ++r) {
      const Graph& graph = relation(r);
      const SampledType& cols = type(graph.dst);
      const int64_t fanout = graph.fanouts[hop];
      const Span part = part_of(frontier(hop, graph.dst));
      int64_t count = 0;
      for (int64_t c = part.begin + threadIdx.x; fanout != 0 && c < part.end;
           c += blockDim.x)
        count += column_at(r, graph, fanout, cols, c).count;
      count = sum_block(count, shared_.sums);
      if (threadIdx.x == 0)
        counts(r)[blockIdx.x] = count;
    }
  }

  __device__ SampleColumn column_at(int r,
                                    const Graph& graph,
                                    int64_t fanout,
                                    const SampledType& cols,
                                    int64_t c) const {
    SampleColumn column{0, 0, 0, 0, true};
    if (cols.of.num_nodes > 0 &&
        !read_column<kWeighted>(graph, a_.options, fanout, cols.node[c],
                                a_.tree_time, tree(cols, c), &column))
      note_fault(a_.report, Report::kIndptr, cols.node[c], graph.num_edges, r);
    return column;
  }

  // Returns false if the edges do not fit.
  __device__ bool select(int hop) {
    int64_t next = a_.edge_end[int64_t{hop} * num_relations()];
    for (int r = 0; r < num_relations(); ++r) {
      int64_t added;
      const int64_t before = sum_blocks_before(counts(r), shared_.sums, &added);
      if (!has_room(hop, r, next, added))
        return false;
      if (added > 0) {
        select_columns(hop, r, next + before);
        if (threadIdx.x == 0)
          add_reads(relation(r), 0, shared_.reads);
      }
      next += added;
      if (!is_first_thread())
        continue;
      a_.edge_end[int64_t{hop} * num_relations() + r + 1] = next;
    }
    return true;
  }

  // Whether `added` edges of relation r fit after the edges below `next`.
  __device__ bool has_room(int hop, int r, int64_t next, int64_t added) const {
    const int64_t own = relation(r).max_edges;
    int64_t before = own < 0 ? next : 0;
    for (int h = 0; own >= 0 && h < hop; ++h)
      before += edges(h, r).end - edges(h, r).begin;
    if (before + added <= (own < 0 ? a_.max_edges : own))
      return true;
    if (is_first_thread())
      note_fault(a_.report, Report::kOverflow, hop, before + added, r);
    return false;
  }

  // Selects in a block's columns, in tiles of one column per thread. `next` is
  // the position of their first edge.
  __device__ void select_columns(int hop, int r, int64_t next) {
    const Graph& graph = relation(r);
    const SampledType& cols = type(graph.dst);
    const int64_t fanout = graph.fanouts[hop];
    const Span part = part_of(frontier(hop, graph.dst));
    const uint64_t stream =
        stream_key(key(), a_.options.call_id + static_cast<uint32_t>(hop),
                   static_cast<uint32_t>(r));
    const LaneGroup group(lanes_for(fanout));
    for (int64_t tile = part.begin; tile < part.end; tile += blockDim.x) {
      const int64_t c = tile + threadIdx.x;
      SampleColumn column{0, 0, 0, 0, true};
      if (c < part.end) {
        column = column_at(r, graph, fanout, cols, c);
        if (column.count > 0)
          shared_.draw[threadIdx.x] = draw_of(stream, hop, r, graph.dst, c);
      }
      int64_t count;
      column.offset = next + sum_before(column.count, shared_.sums, &count);
      next += count;
      shared_.column[threadIdx.x] = column;
      const int any_long = __syncthreads_or(column.count > kLongColumn);
      for (unsigned i = threadIdx.x / group.size; i < blockDim.x;
           i += blockDim.x / group.size)
        if (shared_.column[i].count <= kLongColumn)
          select_column(shared_.draw[i], r, graph, tile + i, shared_.column[i],
                        group);
      for (unsigned i = 0; any_long && i < blockDim.x; ++i)
        if (shared_.column[i].count > kLongColumn)
          select_column(shared_.draw[i], r, graph, tile + i, shared_.column[i],
                        BlockGroup());
      __syncthreads();  // the tile's columns may be overwritten
    }
  }

  // Called by all threads of a group.
  template <typename group_t>
  __device__ void select_column(const Stream& draw,
                                int r,
                                const Graph& graph,
                                int64_t c,
                                const SampleColumn& column,
                                const group_t& group) const {
    if (column.count == 0)
      return;
    const SampledType& cols = type(graph.dst);
    const SampledType& rows = type(graph.src);
    const int64_t v = cols.node[c];
    const uint64_t key = first_key(rows, cols, c);
    bool cached;
    const index_t* list = read_list(graph, v, column, &cached);
    if (group.rank == 0)
      note_read(graph, 0, column.count, cached, shared_.reads);
    const auto take = [&](uint32_t slot, uint64_t choice) {
      take_edge(r, list[choice], rows.of.num_nodes, key, c,
                column.start + static_cast<int64_t>(choice),
                column.offset + slot);
    };
    const int64_t first = column.offset;
    const SelectScratch scratch{
        a_.row + first, a_.col + first,
        a_.taken == nullptr ? nullptr : a_.taken + first};
    if (kWeighted && graph.cum_weight != nullptr)
      select_weighted(draw, column, column_weights(graph, v, column),
                      a_.options.replace, group, scratch, take);
    else
      select_uniform(draw, column, a_.options.replace, group, scratch, take);
  }

  // Until it is relabelled, an edge's row holds the table's entry.
  __device__ void take_edge(int r,
                            int64_t neighbor,
                            int64_t num_rows,
                            uint64_t first_key,
                            int64_t c,
                            int64_t edge,
                            int64_t position) const {
    if (neighbor < 0 || neighbor >= num_rows) {
      note_fault(a_.report, Report::kIndices, edge, num_rows, r);
      neighbor = 0;
    }
    const uint64_t entry =
        insert_min(a_.table, first_key + static_cast<uint64_t>(neighbor),
                   NodeTable::kNew + static_cast<uint32_t>(position));
    a_.row[position] = static_cast<int64_t>(entry);
    a_.col[position] = c;
    if (a_.edge != nullptr)
      a_.edge[position] = edge;
  }

  __device__ Atomic<uint32_t> local_id(int64_t entry) const {
    return Atomic<uint32_t>(a_.table.entry[entry].value);
  }

  // Whether the edge at a position is the first to visit its row.
  __device__ bool is_first(int64_t position) const {
    return local_id(a_.row[position]).load(kRelaxed) ==
           NodeTable::kNew + static_cast<uint32_t>(position);
  }

  __device__ void find(int hop) {
    for (int r = 0; r < num_relations(); ++r) {
      int64_t all = 0;
      const auto count = [&](int64_t batch, Span part) {
        int64_t found = 0;
        for (int64_t p = part.begin + threadIdx.x; p < part.end;
             p += blockDim.x)
          found += is_first(p);
        found = sum_block(found, shared_.sums);
        all += found;
        if (orders_batches() && threadIdx.x == 0)
          Atomic<int64_t>(batch_firsts(hop, r)[batch])
              .fetch_add(found, kRelaxed);
      };
      for_each_batch(type(relation(r).dst), part_of(edges(hop, r)), count);
      if (threadIdx.x == 0)
        firsts(r)[blockIdx.x] = all;
    }
  }

  // Ids of a type continue from relation to relation.
  __device__ void number(int hop) {
    for (int t = 0; t < num_types(); ++t) {
      int64_t next = frontier(hop, t).end;
      for (int r = 0; r < num_relations(); ++r) {
        if (!kOne && relation(r).src != t)
          continue;
        int64_t all;
        const int64_t before = sum_blocks_before(firsts(r), shared_.sums, &all);
        if (all > 0)
          number_relation(
              hop, r,
              (orders_batches() ? frontier(hop, t).end : next) + before);
        next += all;
      }
      if (is_first_thread())
        a_.node_end[(int64_t{hop} + 2) * num_types() + t] = next;
    }
  }

  // Numbers the first visits of a block's edges; the first one would get
  // `next`.
  __device__ void number_relation(int hop, int r, int64_t next) {
    const auto number = [&](int64_t batch, Span part) {
      const int64_t shift = orders_batches() ? batch_shift(hop, r, batch) : 0;
      next = number_firsts(r, part, next + shift) - shift;
    };
    for_each_batch(type(relation(r).dst), part_of(edges(hop, r)), number);
  }

  // The number of first visits by other relations to the type that precede
  // those of a batch: in earlier batches, and in this batch by earlier
  // relations.
  __device__ int64_t batch_shift(int hop, int r, int64_t batch) {
    int64_t before = 0;
    for (int other = 0; other < num_relations(); ++other) {
      if (other == r || relation(other).src != relation(r).src)
        continue;
      const int64_t* sums = batch_firsts(hop, other);
      for (int64_t b = threadIdx.x; b < batch + (other < r); b += blockDim.x)
        before += sums[b];
    }
    return sum_block(before, shared_.sums);
  }

  // Returns the next free number.
  __device__ int64_t number_firsts(int r, Span part, int64_t next) {
    const SampledType& rows = type(relation(r).src);
    const SampledType& cols = type(relation(r).dst);
    for (int64_t tile = part.begin; tile < part.end; tile += blockDim.x) {
      const int64_t p = tile + threadIdx.x;
      const bool first = p < part.end && is_first(p);
      int64_t firsts;
      const int64_t id = next + sum_before(first, shared_.sums, &firsts);
      next += firsts;
      if (!first)
        continue;
      const int64_t entry = a_.row[p], c = a_.col[p];
      rows.node[id] = static_cast<int64_t>(a_.table.entry[entry].key -
                                           first_key(rows, cols, c));
      if (rows.batch != nullptr)
        rows.batch[id] = tree(cols, c);
      local_id(entry).store(static_cast<uint32_t>(id), kRelaxed);
    }
    return next;
  }

  __device__ void relabel(int hop) const {
    const int64_t* end = a_.edge_end + int64_t{hop} * num_relations();
    const Span part = part_of({end[0], end[num_relations()]});
    for (int64_t p = part.begin + threadIdx.x; p < part.end; p += blockDim.x)
      a_.row[p] = local_id(a_.row[p]).load(kRelaxed);
  }

  SampleShared& shared_;
};

}  // namespace gsample
