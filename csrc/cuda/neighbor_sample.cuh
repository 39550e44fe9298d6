// All hops of neighbour sampling in one cooperative launch. A hop has phases
// with a grid barrier after each, as a node is sampled at the first hop that
// meets it:
//
//   count    how many edges the frontier's columns give, block by block;
//   select   draws, selected edges and their neighbours, which go to a table
//            with the position of the edge;
//   find     which edges are the first to meet a node;
//   number   local ids in the order of these edges;
//   relabel  rows of the edges. The next hop counts at once.
//
// Positions, columns and new nodes are dealt to blocks in ranges, in order, so
// that a sum over earlier blocks and a scan in the block give each its place.
// All blocks come to the same sums, hence to the same end: a fault is noted,
// what it hit is left out, and the launch goes on to where all blocks leave.
#pragma once

#include "block.cuh"
#include "neighbor_sample.h"
#include "node_table.cuh"
#include "sample_column.cuh"
#include "select_column.cuh"

namespace gsample {

constexpr int kSampleThreads = 256;   // of a block
constexpr int64_t kLongColumn = 512;  // edges of a column that a block takes

struct SampleShared {
  BlockSums sums;
  SampleColumn column[kSampleThreads];
};

template <bool kWeighted, typename indptr_t, typename index_t>
class NeighborSampler {
 public:
  using Args = NeighborSampleCuda<indptr_t, index_t>;

  __device__ NeighborSampler(const Args& args, SampleShared& shared)
      : a_(args), shared_(shared), key_(read_key(args)) {}

  __device__ void run() {
    begin();
    int64_t begin = 0, end = a_.num_seeds, edges = 0;  // of the frontier
    for (int hop = 0; hop < a_.num_hops; ++hop) {
      const int64_t added = sample_hop(hop, begin, end, edges);
      if (added < 0)
        return;
      begin = end;
      end = nodes_;
      edges += added;
      report_hop(hop, added, end - begin);
    }
  }

 private:
  __device__ static Key read_key(const Args& args) {
    const int64_t* k = args.device_key;
    return k == nullptr ? args.key : Key{k[0], k[1], k[2]};
  }

  __device__ static uint64_t global_rank() {
    return uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  }

  __device__ bool is_first_thread() const { return global_rank() == 0; }

  __device__ void fault(int64_t kind, int64_t where, int64_t value) const {
    int64_t none = SampleReport::kNone;
    if (!Atomic<int64_t>(a_.report->fault)
             .compare_exchange_strong(none, kind, kRelaxed))
      return;
    a_.report->where = where;
    a_.report->value = value;
  }

  __device__ void report_hop(int hop, int64_t edges, int64_t nodes) const {
    if (!is_first_thread())
      return;
    a_.report->hop_edges[hop] = edges;
    a_.report->hop_nodes[hop + 1] = nodes;
  }

  // Seeds come first, in order, duplicates included: rows refer to the first.
  __device__ void begin() {
    clear_table(a_.table);
    if (is_first_thread()) {
      a_.report->fault = SampleReport::kNone;
      a_.report->hop_nodes[0] = a_.num_seeds;
    }
    grid_barrier();
    const int64_t stride = int64_t{gridDim.x} * blockDim.x;
    for (int64_t i = global_rank(); i < a_.num_seeds; i += stride) {
      int64_t seed = a_.seeds[i];
      if (seed < 0 || seed >= a_.num_nodes) {
        fault(SampleReport::kSeed, i, seed);
        seed = 0;
      }
      a_.node[i] = seed;
      if (a_.batch != nullptr)
        a_.batch[i] = i;
      if (a_.num_nodes > 0)
        insert_min(a_.table, table_key(i, seed), static_cast<uint32_t>(i));
    }
    nodes_ = a_.num_seeds;
    grid_barrier();
  }

  __device__ int64_t tree(int64_t column) const {
    return a_.batch == nullptr ? 0 : a_.batch[column];
  }
  __device__ uint64_t table_key(int64_t column, int64_t node) const {
    return static_cast<uint64_t>(tree(column) * a_.num_nodes + node);
  }

  // The edges that a hop adds, or -1 if there is no room for them.
  __device__ int64_t sample_hop(int hop,
                                int64_t begin,
                                int64_t end,
                                int64_t edges) {
    int64_t* counts = a_.totals;
    int64_t* firsts = a_.totals + gridDim.x;
    const BlockRange columns(end - begin);
    const int64_t count =
        count_columns(hop, begin + columns.begin, begin + columns.end);
    if (threadIdx.x == 0)
      counts[blockIdx.x] = count;
    grid_barrier();

    int64_t added;
    const int64_t before = sum_blocks_before(counts, shared_.sums, &added);
    if (edges + added > a_.max_edges) {
      if (is_first_thread())
        fault(SampleReport::kCapacity, hop, edges + added);
      return -1;
    }
    select_columns(hop, begin + columns.begin, begin + columns.end, edges,
                   before);
    grid_barrier();

    const BlockRange range(added);
    const int64_t found = find_firsts(edges, range);
    if (threadIdx.x == 0)
      firsts[blockIdx.x] = found;
    grid_barrier();

    int64_t all;
    number_firsts(edges, range,
                  nodes_ + sum_blocks_before(firsts, shared_.sums, &all));
    nodes_ += all;
    grid_barrier();

    relabel(edges, range);
    return added;
  }

  __device__ SampleColumn column_at(int hop, int64_t c) const {
    SampleColumn column{0, 0, 0, 0, true};
    if (a_.num_nodes > 0 &&
        !read_column<kWeighted>(a_, hop, a_.node[c], tree(c), &column))
      fault(SampleReport::kIndptr, a_.node[c], a_.num_edges);
    return column;
  }

  __device__ int64_t count_columns(int hop, int64_t first, int64_t last) {
    int64_t count = 0;
    for (int64_t c = first + threadIdx.x; c < last; c += blockDim.x)
      count += column_at(hop, c).count;
    return sum_block(count, shared_.sums);
  }

  // The columns of a block, in tiles of one a thread.
  __device__ void select_columns(int hop,
                                 int64_t first,
                                 int64_t last,
                                 int64_t edges,
                                 int64_t before) {
    const uint64_t stream = stream_key(key_, a_.call_id + hop, 0);
    const LaneGroup group(lanes_for(a_.fanouts[hop]));
    for (int64_t tile = first; tile < last; tile += blockDim.x) {
      const int64_t c = tile + threadIdx.x;
      SampleColumn column{0, 0, 0, 0, true};
      if (c < last)
        column = column_at(hop, c);
      int64_t count;
      column.offset = before + sum_before(column.count, shared_.sums, &count);
      before += count;
      shared_.column[threadIdx.x] = column;
      const int any_long = __syncthreads_or(column.count > kLongColumn);
      for (unsigned i = threadIdx.x / group.size; i < blockDim.x;
           i += blockDim.x / group.size)
        if (shared_.column[i].count <= kLongColumn)
          select_column(stream, tile + i, shared_.column[i], edges, group);
      for (unsigned i = 0; any_long && i < blockDim.x; ++i)
        if (shared_.column[i].count > kLongColumn)
          select_column(stream, tile + i, shared_.column[i], edges,
                        BlockGroup());
      __syncthreads();  // the columns of the tile are no longer needed
    }
  }

  // As many lanes as a column has slots, if they fit in a warp.
  __device__ static uint32_t lanes_for(int64_t fanout) {
    uint32_t lanes = 4;
    while (lanes < 32 && (fanout < 0 || lanes < fanout))
      lanes *= 2;
    return lanes;
  }

  // By the threads of a group. `edges` were taken in earlier hops.
  template <typename group_t>
  __device__ void select_column(uint64_t stream,
                                int64_t c,
                                const SampleColumn& column,
                                int64_t edges,
                                const group_t& group) const {
    if (column.count == 0)
      return;
    const bool trees = a_.disjoint && key_.batch != kEpochScope;
    const Stream draw{stream, trees ? static_cast<uint32_t>(tree(c)) : 0,
                      static_cast<uint64_t>(a_.node[c])};
    const auto take = [&](uint32_t slot, uint64_t choice) {
      take_edge(c, column.start + static_cast<int64_t>(choice), edges,
                column.offset + slot);
    };
    const int64_t first = edges + column.offset;
    const SelectScratch scratch{
        a_.row + first, a_.col + first,
        a_.taken == nullptr ? nullptr : a_.taken + first};
    if constexpr (kWeighted)
      select_weighted(draw, column, column_weights(a_, a_.node[c], column),
                      a_.replace, group, scratch, take);
    else
      select_uniform(draw, column, a_.replace, group, scratch, take);
  }

  // The row of an edge holds the table's entry until it is relabelled.
  __device__ void take_edge(int64_t c,
                            int64_t edge,
                            int64_t edges,
                            int64_t position) const {
    int64_t neighbor = a_.indices[edge];
    if (neighbor < 0 || neighbor >= a_.num_nodes) {
      fault(SampleReport::kIndices, edge, a_.num_nodes);
      neighbor = 0;
    }
    const uint64_t entry =
        insert_min(a_.table, table_key(c, neighbor),
                   NodeTable::kNew + static_cast<uint32_t>(position));
    a_.row[edges + position] = static_cast<int64_t>(entry);
    a_.col[edges + position] = c;
    if (a_.edge != nullptr)
      a_.edge[edges + position] = edge;
  }

  __device__ Atomic<uint32_t> local_id(int64_t entry) const {
    return Atomic<uint32_t>(a_.table.value[entry]);
  }

  // Whether the edge at `position` of the hop is the first to meet its row.
  __device__ bool is_first(int64_t edges, int64_t position) const {
    return local_id(a_.row[edges + position]).load(kRelaxed) ==
           NodeTable::kNew + static_cast<uint32_t>(position);
  }

  __device__ int64_t find_firsts(int64_t edges, const BlockRange& range) {
    int64_t firsts = 0;
    for (int64_t p = range.begin + threadIdx.x; p < range.end; p += blockDim.x)
      firsts += is_first(edges, p);
    return sum_block(firsts, shared_.sums);
  }

  __device__ void number_firsts(int64_t edges,
                                const BlockRange& range,
                                int64_t next) {
    for (int64_t tile = range.begin; tile < range.end; tile += blockDim.x) {
      const int64_t p = tile + threadIdx.x;
      const bool first = p < range.end && is_first(edges, p);
      int64_t firsts;
      const int64_t id = next + sum_before(first, shared_.sums, &firsts);
      next += firsts;
      if (!first)
        continue;
      const int64_t entry = a_.row[edges + p], c = a_.col[edges + p];
      const uint64_t before = static_cast<uint64_t>(tree(c)) * a_.num_nodes;
      a_.node[id] = static_cast<int64_t>(a_.table.key[entry] - before);
      if (a_.batch != nullptr)
        a_.batch[id] = tree(c);
      local_id(entry).store(static_cast<uint32_t>(id), kRelaxed);
    }
  }

  __device__ void relabel(int64_t edges, const BlockRange& range) const {
    for (int64_t p = range.begin + threadIdx.x; p < range.end; p += blockDim.x)
      a_.row[edges + p] = local_id(a_.row[edges + p]).load(kRelaxed);
  }

  const Args& a_;
  SampleShared& shared_;
  const Key key_;
  int64_t nodes_ = 0;  // numbered so far
};

template <bool kWeighted, typename indptr_t, typename index_t>
__global__ void __launch_bounds__(kSampleThreads)
    neighbor_sample_kernel(NeighborSampleCuda<indptr_t, index_t> args) {
  GSAMPLE_SHARED(SampleShared, shared);
  NeighborSampler<kWeighted, indptr_t, index_t>(args, shared).run();
}

}  // namespace gsample
