// What several hops drew, in the order of the CPU: columns by their first
// occurrence (or ascending), edges by column and slot. Hop by hop, with grid
// barriers, but without a look at the graph:
//
//   begin    edges before each column, as its task has as many;
//   bring    a table keeps the least position of each candidate of the next
//            frontier: columns first, where they may be in it, then rows;
//   number   candidates at their least positions are the frontier.
#pragma once

#include "sample_hops.cuh"

namespace gsample {

template <typename indptr_t, typename index_t>
class HopOrder {
 public:
  using Args = SampleHopsCuda<indptr_t, index_t>;

  __device__ HopOrder(const Args& args, BlockSums& sums)
      : a_(args), sums_(sums), keys_{args} {}

  // False if there is no room for the hop.
  __device__ bool run(int hop) const {
    const Span columns{a_.column_end[hop], a_.column_end[hop + 1]};
    const int64_t first_edge = a_.edge_end[hop];
    const int64_t edges = place_edges(hop, columns, first_edge);
    if (edges < 0)
      return false;
    if (!a_.has_frontier(hop))
      return true;
    // Nodes of `unseen` are in the table from the first hop that met them on.
    const bool brings = a_.frontier == Frontier::kUnseen
                            ? hop == 0
                            : a_.frontier != Frontier::kRow;
    const int64_t carried = brings ? columns.size() : 0;
    const bool drops =
        a_.frontier == Frontier::kNew || a_.frontier == Frontier::kUnseen;
    for (int64_t i = global_rank(); i < carried; i += grid_threads())
      bring(i, carried_entry(hop, columns.begin + i));
    for (int64_t p = global_rank(); p < edges; p += grid_threads())
      bring(carried + p,
            static_cast<uint64_t>(a_.drawn_row[a_.place[first_edge + p]]));
    grid_barrier();
    return number(hop, columns.end, carried + edges, drops ? carried : 0);
  }

 private:
  struct Span {
    int64_t begin;
    int64_t end;
    __device__ int64_t size() const { return end - begin; }
  };

  // Returns how many edges the hop has, or -1 if there is no room: columns may
  // share edges where seeds repeat. No barrier follows.
  __device__ int64_t place_edges(int hop,
                                 const Span& columns,
                                 int64_t first_edge) const {
    const int64_t n = columns.size();
    const int64_t* column = a_.column + columns.begin;
    int64_t* begin = a_.begin + columns.begin + hop;
    const auto count = [&](int64_t i) -> int64_t {
      return a_.task_edges[column[i]].count;
    };
    const auto write = [&](int64_t i, int64_t before) { begin[i] = before; };
    const int64_t edges = number_items(count, write, n, a_.totals, sums_);
    if (global_rank() == 0) {
      begin[n] = edges;
      a_.edge_end[hop + 1] = first_edge + edges;
    }
    grid_barrier();
    if (first_edge + edges > a_.max_edges) {
      if (global_rank() == 0)
        note_fault(a_.report, Report::kOverflow, hop, first_edge + edges);
      return -1;
    }
    for (int64_t p = global_rank(); p < edges; p += grid_threads()) {
      const int64_t i = column_of(begin, n, p);
      a_.place[first_edge + p] =
          a_.task_edges[column[i]].first + (p - begin[i]);
    }
    return edges;
  }

  // The entry of a column among the nodes of the next hop.
  __device__ uint64_t carried_entry(int hop, int64_t i) const {
    const uint64_t entry = static_cast<uint64_t>(a_.column[i]);
    bool added;
    return a_.frontier == Frontier::kUnseen
               ? entry
               : keys_.entry(hop + 1, keys_.node(entry), &added);
  }

  __device__ void bring(int64_t position, uint64_t entry) const {
    a_.candidate[position] = static_cast<int64_t>(entry);
    bring_min(a_.table, entry,
              NodeTable::kNew + static_cast<uint32_t>(position));
  }

  // Numbers the candidates, and leaves the first `dropped` of them out.
  __device__ bool number(int hop,
                         int64_t end,
                         int64_t candidates,
                         int64_t dropped) const {
    const auto position_of = [&](int64_t j) {
      return Atomic<uint32_t>(a_.table.value[a_.candidate[j]]);
    };
    const auto is_first = [&](int64_t j) -> int64_t {
      return position_of(j).load(kRelaxed) ==
             NodeTable::kNew + static_cast<uint32_t>(j);
    };
    count_items(is_first, candidates, a_.totals, sums_);
    grid_barrier();
    int64_t all;
    sum_blocks_before(a_.totals, sums_, &all);
    const int64_t size = all > dropped ? all - dropped : 0;
    if (end + size > a_.max_columns) {
      if (global_rank() == 0)
        note_fault(a_.report, Report::kOverflow, hop, end + size);
      return false;
    }
    const auto write = [&](int64_t j, int64_t rank) {
      if (!is_first(j))
        return;
      if (rank >= dropped)
        a_.column[end + rank - dropped] = a_.candidate[j];
      if (a_.frontier == Frontier::kUnseen)
        position_of(j).store(0, kRelaxed);  // seen: never the first again
    };
    emit_items(is_first, write, candidates, a_.totals, sums_);
    if (global_rank() == 0)
      a_.column_end[hop + 2] = end + size;
    grid_barrier();
    if (a_.sorted)
      sort(hop + 1, a_.column + end, size);
    return true;
  }

  // By a bit for each node.
  __device__ void sort(int hop, int64_t* column, int64_t size) const {
    for (int64_t i = global_rank(); i < size; i += grid_threads()) {
      const int64_t node = keys_.node(static_cast<uint64_t>(column[i]));
      Atomic<uint64_t>(a_.bits[node / 64])
          .fetch_or(uint64_t{1} << node % 64, kRelaxed);
    }
    grid_barrier();
    const auto count = [&](int64_t w) -> int64_t {
      return __popcll(a_.bits[w]);
    };
    const auto write = [&](int64_t w, int64_t next) {
      bool added;
      for (uint64_t left = a_.bits[w]; left != 0; left &= left - 1)
        column[next++] = static_cast<int64_t>(keys_.entry(
            hop, 64 * w + __popcll((left & (~left + 1)) - 1), &added));
      a_.bits[w] = 0;
    };
    number_items(count, write, a_.num_nodes / 64 + 1, a_.totals, sums_);
    grid_barrier();
  }

  const Args& a_;
  BlockSums& sums_;
  const TaskKeys<indptr_t, index_t> keys_;
};

// How many blocks a processor holds at least: without a word nvcc makes room
// for four of uniform sampling, and spills registers.
template <bool kWeighted, typename indptr_t, typename index_t>
__global__ void __launch_bounds__(kHopThreads, kWeighted ? 2 : 3)
    sample_hops_kernel(SampleHopsCuda<indptr_t, index_t> args) {
  GSAMPLE_SHARED(HopShared, shared);
  HopTasks<kWeighted, indptr_t, index_t> tasks(args, shared);
  const HopOrder<indptr_t, index_t> order(args, shared.sums);
  tasks.begin();
  grid_barrier();
  tasks.add_seeds();
  if (args.takes_queue())
    tasks.drain();
  grid_barrier();
  for (int hop = 0; hop < args.options.num_hops; ++hop) {
    if (!args.takes_queue()) {
      tasks.draw_hop(hop);
      grid_barrier();
    }
    // Every thread reads the same: overflows are noted on other sides of
    // barriers.
    if (Atomic<int64_t>(args.report->fault).load(kRelaxed) ==
            Report::kOverflow ||
        !order.run(hop))
      return;
  }
}

// The outputs of a hop, when their sizes are known.
template <typename indptr_t, typename index_t>
__global__ void __launch_bounds__(kHopThreads)
    write_hop_kernel(SampleHopsCuda<indptr_t, index_t> args,
                     HopOutput<indptr_t, index_t> out) {
  const TaskKeys<indptr_t, index_t> keys{args};
  const int64_t* begin = args.begin + out.first_column + out.hop;
  for (int64_t i = global_rank(); i <= out.num_columns; i += grid_threads())
    out.indptr[i] = static_cast<indptr_t>(begin[i]);
  for (int64_t p = global_rank(); p < out.num_edges; p += grid_threads()) {
    const int64_t drawn = args.place[out.first_edge + p];
    const int64_t edge = args.drawn_edge[drawn];
    out.edge[p] = edge;
    out.row[p] = args.has_frontier(out.hop)
                     ? static_cast<index_t>(keys.node(
                           static_cast<uint64_t>(args.drawn_row[drawn])))
                     : args.graph.indices[edge];
  }
  const int64_t* next = args.column + out.first_column + out.num_columns;
  for (int64_t i = global_rank(); i < out.num_nodes; i += grid_threads())
    out.node[i] = keys.node(static_cast<uint64_t>(next[i]));
}

}  // namespace gsample
