// Orders the draws of several hops as the CPU does: columns by first occurrence
// (or ascending), edges by column and slot. Runs hop by hop, with grid
// barriers, but without reading the graph, in separate launches: the drawing
// kernels need the registers.
//
//   begin    edges before each column, as its task has as many;
//   bring    a table keeps the smallest position of each candidate of the next
//            frontier: columns first, if they may be in it, then rows;
//   number   candidates at their smallest positions are the frontier.
//
// Each phase processes the relations, or types, in turn between two barriers.
#pragma once

#include "sample_hops.cuh"

namespace gsample {

// The columns of a relation at a hop, and the number of edges of each.
template <typename args_t>
class RelationColumns {
 public:
  __device__ RelationColumns(const args_t& args, int hop, int r)
      : a_(args), slot_(args.slot_of(r)) {
    const int64_t place =
        int64_t{hop} * args.num_types() + args.relation(r).dst;
    const int64_t first = args.column_end[place];
    const int64_t hops = args.options.num_hops;
    size = args.column_end[place + 1] - first;
    column_ = args.column + first;
    begin = args.begin + place + first +
            slot_ * (args.max_columns + hops * args.num_types());
  }
  __device__ const TaskEdges& edges(int64_t i) const {
    return a_.task_edges[column_[i] * a_.slots() + slot_];
  }
  __device__ int64_t operator()(int64_t i) const { return edges(i).count; }

  int64_t size;
  int64_t* begin;  // [size + 1] edges before a column

 private:
  const args_t& a_;
  const int slot_;
  const int64_t* column_;
};

template <typename args_t>
class HopOrder {
 public:
  __device__ HopOrder(const args_t& args, BlockSums& sums)
      : a_(args), sums_(sums), tasks_{args} {}

  // Where each batch begins among the columns of a hop: its trees ascend. A
  // grid barrier must follow.
  __device__ void find_batches(int hop) const {
    if constexpr (args_t::kOneType)
      return;
    const int64_t each = a_.batches + 1;
    const int64_t all = a_.batches == 0 ? 0 : each * a_.num_types();
    for (int64_t i = global_rank(); i < all; i += grid_threads()) {
      const int t = static_cast<int>(i / each);
      const Span span = columns(hop, t);
      int64_t first = span.begin, last = span.end;
      while (first < last) {
        const int64_t middle = first + (last - first) / 2;
        const int64_t tree =
            a_.task(tasks_.key(static_cast<uint64_t>(a_.column[middle]))).tree;
        (tree < i % each ? first : last) = middle + (tree < i % each);
      }
      batch_begin(hop, t)[i % each] = first - span.begin;
    }
  }

  // False if there is no room for the hop.
  __device__ bool run(int hop) const {
    find_batches(hop);
    if (!count_edges(hop))
      return false;
    for (int r = 0; r < a_.num_relations(); ++r)
      place_edges(hop, r);
    if (!a_.has_frontier(hop))
      return true;
    int64_t first = 0;
    for (int t = 0; t < a_.num_types(); ++t)
      first = bring_all(hop, t, first);
    grid_barrier();
    return number(hop);
  }

 private:
  using Columns = RelationColumns<args_t>;
  struct Span {
    int64_t begin;
    int64_t end;
    __device__ int64_t size() const { return end - begin; }
  };

  __device__ Span columns(int hop, int t) const {
    const int64_t* end = a_.column_end + hop * a_.num_types() + t;
    return {end[0], end[1]};
  }
  __device__ Span edges(int hop, int r) const {
    const int64_t* end = a_.edge_end + hop * a_.num_relations() + r;
    return {end[0], end[1]};
  }
  // The counts of a relation or type, one per block [blocks].
  __device__ int64_t* totals(int i) const {
    return a_.totals + int64_t{i} * gridDim.x;
  }

  // Returns false if the edges do not fit: columns of repeated seeds share
  // edges.
  __device__ bool count_edges(int hop) const {
    const int relations = a_.num_relations();
    for (int r = 0; r < relations; ++r) {
      const Columns columns(a_, hop, r);
      count_items(columns, columns.size, totals(r), sums_);
    }
    grid_barrier();
    int64_t end = a_.edge_end[hop * relations];
    for (int r = 0; r < relations; ++r) {
      const Columns columns(a_, hop, r);
      const auto write = [&](int64_t i, int64_t before) {
        columns.begin[i] = before;
      };
      const int64_t edges =
          emit_items(columns, write, columns.size, totals(r), sums_);
      end += edges;
      if (global_rank() == 0) {
        columns.begin[columns.size] = edges;
        a_.edge_end[hop * relations + r + 1] = end;
      }
    }
    grid_barrier();
    if (end > a_.max_edges && global_rank() == 0)
      note_fault(a_.report, Report::kOverflow, hop, end);
    return end <= a_.max_edges;
  }

  // No barrier follows.
  __device__ void place_edges(int hop, int r) const {
    const Columns columns(a_, hop, r);
    const Span span = edges(hop, r);
    for (int64_t p = global_rank(); p < span.size(); p += grid_threads()) {
      const int64_t i = column_of(columns.begin, columns.size, p);
      a_.place[span.begin + p] =
          columns.edges(i).first + (p - columns.begin[i]);
    }
  }

  // The number of a hop's columns that are candidates of the next frontier.
  // Nodes of `unseen` are in the table from their first hop on.
  __device__ int64_t num_carried(int hop, int t) const {
    const bool brings = a_.frontier == Frontier::kUnseen
                            ? hop == 0
                            : a_.frontier != Frontier::kRow;
    return brings ? columns(hop, t).size() : 0;
  }

  // Inserts the candidates of a type, in order, at positions from `first` on.
  // Returns the next position.
  __device__ int64_t bring_all(int hop, int t, int64_t first) const {
    const int64_t carried = num_carried(hop, t);
    const int64_t* column = a_.column + columns(hop, t).begin;
    for (int64_t i = global_rank(); i < carried; i += grid_threads())
      bring(position(hop, t, -1, first, i),
            carried_entry(static_cast<uint64_t>(column[i])));
    int64_t next = first + carried;
    for (int k = 0; k < a_.num_from(t); ++k) {
      const Span span = edges(hop, a_.relation_from(t, k));
      for (int64_t p = global_rank(); p < span.size(); p += grid_threads())
        bring(has_batches() ? position(hop, t, k, first, p) : next + p,
              static_cast<uint64_t>(a_.drawn_row[a_.place[span.begin + p]]));
      next += span.size();
    }
    return next;
  }

  __device__ bool has_batches() const {
    return !args_t::kOneType && a_.batches > 0;
  }

  __device__ int64_t* batch_begin(int hop, int t) const {
    return a_.batch_begin +
           (int64_t{hop} * a_.num_types() + t) * (a_.batches + 1);
  }

  // How many candidates for type t batches before `batch` have of a source:
  // the carried columns (-1), or the relation k from the type.
  __device__ int64_t before(int hop, int t, int k, int64_t batch) const {
    if (k < 0)
      return num_carried(hop, t) == 0 ? 0 : batch_begin(hop, t)[batch];
    const int r = a_.relation_from(t, k);
    return Columns(a_, hop, r)
        .begin[batch_begin(hop, a_.relation(r).dst)[batch]];
  }

  // The position of candidate i of a source of a type. Those of a batch follow
  // one another, source by source.
  __device__ int64_t
  position(int hop, int t, int k, int64_t first, int64_t i) const {
    if (!has_batches())
      return first + i;
    int64_t batch = 0, after = a_.batches;  // `before` says: it is in between
    while (after - batch > 1) {
      const int64_t middle = batch + (after - batch) / 2;
      (before(hop, t, k, middle) <= i ? batch : after) = middle;
    }
    for (int other = -1; other < a_.num_from(t); ++other)
      if (other != k)
        first += before(hop, t, other, batch + (other < k));
    return first + i;
  }

  __device__ int64_t num_candidates(int hop, int t) const {
    int64_t size = num_carried(hop, t);
    for (int k = 0; k < a_.num_from(t); ++k)
      size += edges(hop, a_.relation_from(t, k)).size();
    return size;
  }

  // The entry of a column among the nodes of the next hop.
  __device__ uint64_t carried_entry(uint64_t entry) const {
    bool added;
    return a_.frontier == Frontier::kUnseen
               ? entry
               : tasks_.entry(a_.next_key(tasks_.key(entry)), &added);
  }

  __device__ void bring(int64_t position, uint64_t entry) const {
    a_.candidate[position] = static_cast<int64_t>(entry);
    bring_min(a_.table, entry,
              NodeTable::kNew + static_cast<uint32_t>(position));
  }

  __device__ Atomic<uint32_t> position_of(int64_t candidate) const {
    return Atomic<uint32_t>(a_.table.entry[a_.candidate[candidate]].value);
  }
  __device__ bool is_first(int64_t candidate) const {
    return position_of(candidate).load(kRelaxed) ==
           NodeTable::kNew + static_cast<uint32_t>(candidate);
  }

  // Numbers the candidates of each type.
  __device__ bool number(int hop) const {
    int64_t first = 0;
    for (int t = 0; t < a_.num_types(); ++t) {
      const auto count = [&](int64_t j) -> int64_t {
        return is_first(first + j);
      };
      const int64_t size = num_candidates(hop, t);
      count_items(count, size, totals(t), sums_);
      first += size;
    }
    grid_barrier();
    first = 0;
    int64_t end = a_.column_end[(hop + 1) * a_.num_types()];
    for (int t = 0; t < a_.num_types() && end >= 0; ++t)
      end = number_type(hop, t, &first, end);
    if (end < 0)
      return false;
    grid_barrier();
    if constexpr (args_t::kOneType)
      if (a_.sorted)
        sort(hop + 1, columns(hop + 1, 0));
    return true;
  }

  // The columns of type t, from `end` on, of candidates from `*first` on.
  // Returns their end, or -1 if they do not fit.
  __device__ int64_t number_type(int hop,
                                 int t,
                                 int64_t* first,
                                 int64_t end) const {
    const int64_t candidates = num_candidates(hop, t);
    const bool drops =
        a_.frontier == Frontier::kNew || a_.frontier == Frontier::kUnseen;
    const int64_t dropped = drops ? num_carried(hop, t) : 0;
    int64_t all;
    sum_blocks_before(totals(t), sums_, &all);
    const int64_t size = all > dropped ? all - dropped : 0;
    if (end + size > a_.max_columns) {
      if (global_rank() == 0)
        note_fault(a_.report, Report::kOverflow, hop, end + size);
      return -1;
    }
    const auto count = [&](int64_t j) -> int64_t {
      return is_first(*first + j);
    };
    const auto write = [&](int64_t j, int64_t rank) {
      if (!is_first(*first + j))
        return;
      if (rank >= dropped)
        a_.column[end + rank - dropped] = a_.candidate[*first + j];
      if (a_.frontier == Frontier::kUnseen)  // seen: never a first again
        position_of(*first + j).store(0, kRelaxed);
    };
    emit_items(count, write, candidates, totals(t), sums_);
    if (global_rank() == 0)
      a_.column_end[(hop + 1) * a_.num_types() + t + 1] = end + size;
    *first += candidates;
    return end + size;
  }

  // Sorts with one bit per node.
  __device__ void sort(int hop, const Span& span) const {
    int64_t* column = a_.column + span.begin;
    for (int64_t i = global_rank(); i < span.size(); i += grid_threads()) {
      const int64_t node =
          a_.task(tasks_.key(static_cast<uint64_t>(column[i]))).node;
      Atomic<uint64_t>(a_.bits[node / 64])
          .fetch_or(uint64_t{1} << node % 64, kRelaxed);
    }
    grid_barrier();
    const auto count = [&](int64_t w) -> int64_t {
      return __popcll(a_.bits[w]);
    };
    const auto write = [&](int64_t w, int64_t next) {
      bool added;
      for (uint64_t left = a_.bits[w]; left != 0; left &= left - 1) {
        const int64_t node = 64 * w + __popcll((left & (~left + 1)) - 1);
        column[next++] =
            static_cast<int64_t>(tasks_.entry(a_.key(hop, 0, 0, node), &added));
      }
      a_.bits[w] = 0;
    };
    number_items(count, write, a_.num_nodes / 64 + 1, a_.totals, sums_);
    grid_barrier();
  }

  const args_t& a_;
  BlockSums& sums_;
  const TaskTable<args_t> tasks_;
};

// Orders hops [first, last), unless there was a fault.
template <typename args_t>
__global__ void __launch_bounds__(kHopThreads, 4)
    order_hops_kernel(args_t args, int first, int last) {
  GSAMPLE_SHARED(BlockSums, sums);
  const HopOrder<args_t> order(args, sums);
  // Every thread reads the same: faults are reported on the other sides of
  // barriers.
  for (int hop = first; hop < last; ++hop)
    if (Atomic<int64_t>(args.report->fault).load(kRelaxed) != Report::kNone ||
        !order.run(hop))
      return;
  if (args.next)
    order.find_batches(last);
}

// Writes the outputs, once their sizes are known.
template <typename args_t>
__global__ void __launch_bounds__(kHopThreads) write_hops_kernel(
    args_t args,
    HopOutputs<typename args_t::Indptr, typename args_t::Index> out) {
  using indptr_t = typename args_t::Indptr;
  using index_t = typename args_t::Index;
  const TaskTable<args_t> tasks{args};
  const auto task = [&](int64_t entry) {
    return args.task(tasks.key(static_cast<uint64_t>(entry)));
  };
  for (int64_t part = 0; part < out.num_edges; ++part) {
    const HopEdges<indptr_t, index_t> to = out.edges[part];
    const int hop = static_cast<int>(to.hop), r = static_cast<int>(to.relation);
    const RelationColumns<args_t> columns(args, hop, r);
    for (int64_t i = global_rank(); i <= columns.size; i += grid_threads())
      to.indptr[i] = static_cast<indptr_t>(columns.begin[i]);
    for (int64_t p = global_rank(); p < to.num_edges; p += grid_threads()) {
      const int64_t drawn = args.place[to.first_edge + p];
      const int64_t edge = args.drawn_edge[drawn];
      to.edge[p] = edge;
      const int64_t row = args.drawn_row[drawn];
      to.row[p] = static_cast<index_t>(
          args.has_frontier(hop) ? task(row).node : unmarked_row(row));
    }
  }
  for (int64_t part = 0; part < out.num_nodes; ++part) {
    const HopNodes to = out.nodes[part];
    const int64_t* column = args.column + to.first_column;
    for (int64_t i = global_rank(); i < to.num_columns; i += grid_threads()) {
      const HopTask at = task(column[i]);
      to.node[i] = at.node;
      if (to.tree != nullptr)
        to.tree[i] = at.tree;
    }
    if (to.ptr != nullptr)
      for (int64_t b = global_rank(); b <= args.batches; b += grid_threads())
        to.ptr[b] = to.batch_begin[b];
  }
}

}  // namespace gsample
