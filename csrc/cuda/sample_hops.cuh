// Several hops of column sampling.
//
// A task is a node (of a type, in a tree) at a hop: a table entry, whose edges
// are drawn once, however many edges lead to it. It has one slot for each
// relation that samples from columns of its type. If the next frontier includes
// everything a hop visits (`row`, `nodes`), the set of tasks is independent of
// the order, and no block waits for the end of a hop: tasks create tasks
// through a queue (after PGSampler, task_queue.cuh), in one cooperative launch.
// If a frontier excludes visited nodes (`new`, `unseen`), one launch draws each
// hop.
//
// Edges stay in the order of drawing; order_hops.cuh sorts them afterwards.
#pragma once

#include "cached_relation.cuh"
#include "columns.cuh"
#include "node_table.cuh"
#include "sample_hops.h"
#include "select_column.cuh"
#include "task_queue.cuh"
#include "task_table.cuh"

namespace gsample {

constexpr int kHopThreads = 256;    // per block
constexpr int64_t kLongTask = 512;  // edges of a task that a block draws
constexpr uint64_t kMade = uint64_t{1} << 63;  // marks the entry of a new task
constexpr uint64_t kNoTask = ~uint64_t{0};

// A row stored instead of an entry, without the mark: any 63-bit number.
__device__ inline int64_t unmarked_row(int64_t row) {
  return static_cast<int64_t>(static_cast<uint64_t>(row) << 1) >> 1;
}

struct HopShared {
  BlockSums sums;
  uint64_t task[kHopThreads];
  HopTask at[kHopThreads];  // the tasks' fields: decoding keys takes divisions
  SampleColumn column[kHopThreads];
  BlockReads reads;
  int64_t first_edge;
  // Tickets of the block, whether threads wait for their tickets' slots, and
  // the number of slots with tasks.
  uint32_t first_ticket, tickets;
  bool waits[kHopThreads];
  uint32_t found;
  uint32_t slot;
  uint32_t lane_shift;  // 2^lane_shift lanes per task
  bool room;
};

template <bool kWeighted, typename args_t>
class HopTasks {
 public:
  __device__ HopTasks(const args_t& args, HopShared& shared)
      : a_(args), shared_(shared), tasks_{args} {}

  // Starts each launch; a barrier must follow.
  __device__ void start() const {
    clear_reads(shared_.reads);
    if (threadIdx.x == 0)
      shared_.lane_shift = lane_shift(a_);
  }

  // Starts the first launch; a grid barrier must follow.
  __device__ void begin() const {
    clear_table(a_.table);
    for (int64_t i = global_rank(); i < a_.queue.capacity; i += grid_threads())
      a_.queue.ready[i] = 0;
    if constexpr (args_t::kOneType) {
      const int64_t words = a_.sorted ? a_.num_nodes / 64 + 1 : 0;
      for (int64_t w = global_rank(); w < words; w += grid_threads())
        a_.bits[w] = 0;
    } else {
      keep_times();
    }
    if (global_rank() != 0)
      return;
    a_.report->fault = Report::kNone;
    a_.column_end[0] = a_.edge_end[0] = *a_.num_drawn = 0;
    for (int t = 0; t < a_.num_types(); ++t)
      a_.column_end[t + 1] = a_.first_seed(t) + a_.num_seeds_of(t);
    clear_counts(a_.queue, gridDim.x);  // each block has seeds to announce
  }

  // The seeds are the columns of the first hop. Duplicates in the same tree
  // share a task.
  __device__ void add_seeds() {
    for (int t = 0; t < a_.num_types(); ++t)
      add_seeds(t);
    if (a_.takes_queue() && threadIdx.x == 0)
      retire_tasks(a_.queue, 1);
  }

  // Runs until no task remains. A block has at most one ticket per thread, and
  // draws for those whose slots have tasks. The block's state of its tickets is
  // in shared memory, as drawing edges needs the registers.
  __device__ void drain() {
    const int t = threadIdx.x;
    shared_.waits[t] = false;
    for (;;) {
      if (__syncthreads_or(shared_.waits[t]) == 0) {
        if (t == 0)
          shared_.tickets =
              take_tickets(a_.queue, blockDim.x, &shared_.first_ticket);
        __syncthreads();  // taken
        shared_.waits[t] = threadIdx.x < shared_.tickets;
      }
      uint64_t task = kNoTask;
      if (shared_.waits[t] &&
          read_task(a_.queue, shared_.first_ticket + threadIdx.x, &task))
        shared_.waits[t] = false;
      shared_.task[t] = task;
      const int found = __syncthreads_count(task != kNoTask);
      if (found > 0) {
        if (t == 0)
          shared_.found = found;
        draw_found();
      } else if (__syncthreads_or(threadIdx.x == 0 && is_done(a_.queue))) {
        return;
      } else {
        back_off();
      }
    }
  }

  // Called when everything is drawn, and the block passed a barrier.
  __device__ void end() const {
    for (int r = threadIdx.x; r < BlockReads::kRelations; r += blockDim.x)
      if (r < a_.num_relations())
        add_reads(a_.relation(r), r, shared_.reads);
  }

  // Draws the tasks of a hop, once its columns are known.
  __device__ void draw_hop(int hop) {
    int64_t* columns = a_.column + a_.column_end[hop];
    const BlockRange range(a_.column_end[hop + 1] - a_.column_end[hop]);
    for (int64_t tile = range.begin; tile < range.end; tile += blockDim.x) {
      const int64_t i = tile + threadIdx.x;
      uint64_t task = kNoTask;
      if (i < range.end) {
        const uint64_t entry = static_cast<uint64_t>(columns[i]);
        const bool first = hop > 0 || (entry & kMade) != 0;
        columns[i] = static_cast<int64_t>(entry & ~kMade);
        task = first ? entry & ~kMade : kNoTask;
      }
      shared_.task[threadIdx.x] = task;
      __syncthreads();  // fetched
      const int64_t left = range.end - tile;
      draw(hop, 0, static_cast<int>(left < blockDim.x ? left : blockDim.x));
      __syncthreads();  // the tasks of the tile are done
    }
  }

 private:
  // Draws shared_.task and the tasks they create: a task ends with its last
  // slot.
  __device__ void draw_found() {
    const int size = static_cast<int>(shared_.tickets);
    for (int slot = 0; slot < a_.slots(); ++slot) {
      const int64_t edges = draw(-1, slot, size);
      const bool ends = slot + 1 == a_.slots();
      if (slot == 0 || edges > 0 || ends)
        push(slot == 0 ? carry() : 0, shared_.first_edge, edges,
             ends ? shared_.found : 0);
    }
  }

  // One lane per slot of a task, up to a warp.
  __device__ static uint32_t lane_shift(const args_t& args) {
    uint32_t lanes = 4;
    for (int r = 0; r < args.num_relations(); ++r)
      for (int hop = 0; hop < args.options.num_hops; ++hop)
        lanes = gsample::lanes_for(args.relation(r).fanouts[hop], lanes);
    return __popcll(lanes - 1);
  }

  __device__ static bool is_made(uint64_t e) { return (e & kMade) != 0; }

  // Stores the times of trees, which are inputs by type.
  __device__ void keep_times() const {
    for (int t = 0; a_.tree_time() != nullptr && t < a_.num_types(); ++t)
      for (int64_t i = global_rank(); i < a_.num_seeds_of(t);
           i += grid_threads())
        a_.tree_time()[a_.first_seed(t) + i] = a_.types[t].of.seed_time[i];
  }

  __device__ void add_seeds(int type) {
    if constexpr (!args_t::kOneType)
      if (a_.batches > 0)
        check_ptr(a_.types[type].seed_ptr, a_.batches, a_.num_seeds_of(type),
                  a_.report);
    const bool by_queue = a_.takes_queue();
    int64_t* column = a_.column + a_.first_seed(type);
    const BlockRange range(a_.num_seeds_of(type));
    for (int64_t tile = range.begin; tile < range.end; tile += blockDim.x) {
      const int64_t i = tile + threadIdx.x;
      uint64_t entry = 0;
      if (i < range.end) {
        entry = add_seed(type, i);
        column[i] = static_cast<int64_t>(by_queue ? entry & ~kMade : entry);
      }
      if (by_queue)
        push(entry, 0, 0, 0);
    }
  }

  // A faulty seed makes no task: nothing is ordered then.
  __device__ uint64_t add_seed(int type, int64_t i) const {
    const int64_t seed = a_.seeds_of(type)[i];
    if (seed < 0 || seed >= a_.num_nodes_of(type)) {
      note_fault(a_.report, Report::kId, a_.in_batch(type, i), seed, type);
      return 0;
    }
    return make_task(0, a_.key(0, type, a_.tree_of_seed(type, i), seed));
  }

  // The entry of a key of a hop, marked if this call created the task.
  __device__ uint64_t make_task(int hop, uint64_t key) const {
    bool added;
    const uint64_t entry = tasks_.entry(key, &added);
    return entry | (added && hop < a_.options.num_hops ? kMade : 0);
  }

  // Draws one slot of the first `count` of shared_.task, at a hop or at the
  // hops in their keys. Returns the number of edges; they start at
  // shared_.first_edge.
  __device__ int64_t draw(int hop, int slot, int count) {
    const int t = threadIdx.x;
    SampleColumn column{0, 0, 0, 0, true};
    const uint64_t task = t < count ? shared_.task[t] : kNoTask;
    if (task != kNoTask) {
      const HopTask at = a_.task(tasks_.key(task));
      shared_.at[t] = at;
      column = column_of(hop, slot, at);
    }
    int64_t edges;
    column.offset = sum_before(column.count, shared_.sums, &edges);
    if (slot > 0 && edges == 0) {
      if (task != kNoTask)
        edges_of(task, slot) = {0, 0};
      return 0;
    }
    if (t == 0)
      shared_.first_edge = reserve(edges);
    __syncthreads();  // reserved
    if (shared_.first_edge < 0)
      return 0;
    column.offset += shared_.first_edge;
    shared_.column[t] = column;
    if (task != kNoTask)
      edges_of(task, slot) = {static_cast<uint32_t>(column.offset),
                              static_cast<uint32_t>(column.count)};
    const int any_long = __syncthreads_or(column.count > kLongTask);
    const uint32_t shift = shared_.lane_shift;
    for (int i = t >> shift; i < count; i += blockDim.x >> shift)
      if (shared_.column[i].count <= kLongTask)
        draw_task(hop, slot, i, LaneGroup(1u << shift));
    for (int i = 0; any_long && i < count; ++i)
      if (shared_.column[i].count > kLongTask)
        draw_task(hop, slot, i, BlockGroup());
    __syncthreads();  // drawn
    return edges;
  }

  __device__ TaskEdges& edges_of(uint64_t task, int slot) const {
    return a_.task_edges[task * a_.slots() + slot];
  }

  __device__ SampleColumn column_of(int hop,
                                    int slot,
                                    const HopTask& at) const {
    SampleColumn column{0, 0, 0, 0, true};
    const int r = a_.relation_into(at.type, slot);
    if (r < 0)
      return column;
    const auto& graph = a_.relation(r);
    if (!read_column<kWeighted>(graph, a_.options,
                                graph.fanouts[hop < 0 ? at.hop : hop], at.node,
                                a_.tree_time(), at.tree, &column))
      note_fault(a_.report, Report::kIndptr, at.node, graph.num_edges, r);
    return column;
  }

  // Reserves room for edges; returns its start, or -1.
  __device__ int64_t reserve(int64_t edges) const {
    const int64_t first =
        Atomic<int64_t>(*a_.num_drawn).fetch_add(edges, kRelaxed);
    if (first + edges <= a_.max_edges)
      return first;
    note_fault(a_.report, Report::kOverflow, 0, first + edges);
    return -1;
  }

  // Called by all threads of a group.
  template <typename group_t>
  __device__ void draw_task(int hop,
                            int slot,
                            int i,
                            const group_t& group) const {
    const SampleColumn& column = shared_.column[i];
    if (column.count == 0)
      return;
    const HopTask& at = shared_.at[i];
    if (hop < 0)
      hop = at.hop;
    const int r = a_.relation_into(at.type, slot);
    const auto& graph = a_.relation(r);
    const Stream stream = a_.stream(hop, r, at);
    const uint64_t rows = a_.key(hop + 1, graph.src, at.tree, 0);
    bool cached;
    const auto* list = read_list(graph, at.node, column, &cached);
    if (group.rank == 0)
      note_read(graph, r, column.count, cached, shared_.reads);
    const auto take = [&](uint32_t draw, uint64_t choice) {
      const int64_t edge = column.start + static_cast<int64_t>(choice);
      const int64_t row = list[choice];
      a_.drawn_edge[column.offset + draw] = edge;
      a_.drawn_row[column.offset + draw] = static_cast<int64_t>(
          a_.has_frontier(hop) ? meet(hop, r, rows, edge, row)
                               : static_cast<uint64_t>(row) & ~kMade);
    };
    const int64_t first = column.offset;
    const SelectScratch scratch{
        a_.drawn_edge + first, a_.drawn_row + first,
        a_.taken == nullptr ? nullptr : a_.taken + first};
    if (kWeighted && args_t::is_weighted(graph))
      select_weighted(stream, column, column_weights(graph, at.node, column),
                      a_.options.replace, group, scratch, take);
    else
      select_uniform(stream, column, a_.options.replace, group, scratch, take);
  }

  // The row of an edge at the next hop, where `rows` is the key of row 0.
  __device__ uint64_t
  meet(int hop, int r, uint64_t rows, int64_t edge, int64_t row) const {
    const int64_t num_rows = a_.num_nodes_of(a_.relation(r).src);
    if (row < 0 || row >= num_rows) {
      note_fault(a_.report, Report::kIndices, edge, num_rows, r);
      return 0;
    }
    const uint64_t entry =
        make_task(hop + 1, rows + static_cast<uint64_t>(row));
    return a_.takes_queue() ? entry : entry & ~kMade;
  }

  // The task for this task's own node: a column of the next hop, too.
  __device__ uint64_t carry() const {
    if (shared_.task[threadIdx.x] == kNoTask || a_.frontier != Frontier::kNodes)
      return 0;
    const HopTask& at = shared_.at[threadIdx.x];
    const int hop = at.hop + 1;
    return hop == a_.options.num_hops
               ? 0
               : make_task(hop, a_.key(hop, at.type, at.tree, at.node));
  }

  // Publishes the new tasks of the block's drawn edges, and those that its
  // threads add themselves, and ends the tasks that created them.
  __device__ void push(uint64_t own,
                       int64_t first,
                       int64_t edges,
                       uint32_t ended) {
    int64_t made = is_made(own);
    for (int64_t p = first + threadIdx.x; p < first + edges; p += blockDim.x)
      made += is_made(static_cast<uint64_t>(a_.drawn_row[p]));
    int64_t all;
    const int64_t before = sum_before(made, shared_.sums, &all);
    if (all == 0) {
      if (threadIdx.x == 0 && ended > 0)
        retire_tasks(a_.queue, ended);
      return;
    }
    if (threadIdx.x == 0) {
      shared_.room = announce_tasks(a_.queue, static_cast<uint32_t>(all), ended,
                                    &shared_.slot);
      if (!shared_.room)
        note_fault(a_.report, Report::kOverflow, 0, a_.max_columns);
    }
    __syncthreads();  // announced
    uint32_t slot = shared_.slot + static_cast<uint32_t>(before);
    if (is_made(own) && shared_.room)
      publish_task(a_.queue, slot++, own & ~kMade);
    for (int64_t p = first + threadIdx.x; p < first + edges; p += blockDim.x) {
      const uint64_t entry = static_cast<uint64_t>(a_.drawn_row[p]);
      if (!is_made(entry))
        continue;
      a_.drawn_row[p] = static_cast<int64_t>(entry & ~kMade);
      if (shared_.room)
        publish_task(a_.queue, slot++, entry & ~kMade);
    }
    __syncthreads();  // published
  }

  const args_t& a_;
  HopShared& shared_;
  const TaskTable<args_t> tasks_;
};

}  // namespace gsample
