// Distinct nodes, each order in one cooperative launch. By first occurrence: a
// table keeps the smallest position of each node, and these positions are
// numbered in order. Ascending: a bitmap of the graph's nodes is numbered in
// order.
#pragma once

#include "columns.cuh"
#include "node_table.cuh"
#include "unique_nodes.h"

namespace gsample {

constexpr int kUniqueThreads = 256;  // per block

struct UniqueShared {
  BlockSums sums;
};

// The node at a position and its batch in one number; if it is no node, reports
// it and returns 0.
template <typename id_t>
__device__ int64_t read_node(const UniqueNodesCuda<id_t>& args, int64_t i) {
  const int64_t id = args.id[i];
  if (id < 0 || id >= args.num_nodes) {
    note_fault(args.report, Report::kId, i, id);
    return 0;
  }
  if (args.ptr == nullptr)
    return id;
  return column_of(args.ptr, args.batches, i) * args.num_nodes + id;
}

// Numbers the nodes of the batches that start at position i from `next` on.
template <typename id_t>
__device__ void begin_batches(const UniqueNodesCuda<id_t>& args,
                              int64_t i,
                              int64_t next) {
  if (args.ptr == nullptr)
    return;
  int64_t b = i < args.n ? column_of(args.ptr, args.batches, i) : args.batches;
  for (; b >= 0 && args.ptr[b] == i; --b)
    args.out_ptr[b] = next;
}

// The range of one batch's nodes in all ids.
template <typename id_t>
__device__ void note_size(const UniqueNodesCuda<id_t>& args, int64_t size) {
  args.report->size = size;
  if (args.ptr != nullptr)
    return;
  args.out_ptr[0] = 0;
  args.out_ptr[1] = size;
}

template <typename id_t>
__global__ void __launch_bounds__(kUniqueThreads)
    unique_nodes_kernel(UniqueNodesCuda<id_t> args) {
  GSAMPLE_SHARED(UniqueShared, shared);
  const int64_t step = grid_threads();
  clear_table(args.table);
  if (args.ptr != nullptr)
    check_ptr(args.ptr, args.batches, args.n, args.report);
  grid_barrier();
  for (int64_t i = global_rank(); i < args.n; i += step)
    args.entry[i] = static_cast<int64_t>(
        insert_min(args.table, static_cast<uint64_t>(read_node(args, i)),
                   NodeTable::kNew + static_cast<uint32_t>(i)));
  grid_barrier();
  const auto number_of = [&](int64_t i) {
    return Atomic<uint32_t>(args.table.entry[args.entry[i]].value);
  };
  // Numbers are below kNew: they cannot be confused with positions.
  const auto is_first = [&](int64_t i) -> int64_t {
    return number_of(i).load(kRelaxed) ==
           NodeTable::kNew + static_cast<uint32_t>(i);
  };
  const auto number = [&](int64_t i, int64_t next) {
    begin_batches(args, i, next);
    if (!is_first(i))
      return;
    args.node[next] = args.id[i];
    number_of(i).store(static_cast<uint32_t>(next), kRelaxed);
  };
  const int64_t size =
      number_items(is_first, number, args.n, args.totals, shared.sums);
  if (global_rank() == 0) {
    note_size(args, size);
    begin_batches(args, args.n, size);
  }
  grid_barrier();
  for (int64_t i = global_rank(); i < args.n; i += step)
    args.local[i] = static_cast<id_t>(number_of(i).load(kRelaxed));
}

template <typename id_t>
__global__ void __launch_bounds__(kUniqueThreads, 5)  // else it spills
    unique_ascending_kernel(UniqueNodesCuda<id_t> args) {
  GSAMPLE_SHARED(UniqueShared, shared);
  const int64_t step = grid_threads();
  const int64_t words = args.batches * args.num_nodes / 64 + 1;
  if (args.ptr != nullptr)
    check_ptr(args.ptr, args.batches, args.n, args.report);
  for (int64_t w = global_rank(); w < words; w += step)
    args.bits[w] = 0;
  grid_barrier();
  for (int64_t i = global_rank(); i < args.n; i += step) {
    const int64_t id = read_node(args, i);
    Atomic<uint64_t>(args.bits[id / 64])
        .fetch_or(uint64_t{1} << id % 64, kRelaxed);
  }
  grid_barrier();
  const int64_t nodes = args.num_nodes > 0 ? args.num_nodes : 1;
  const auto count = [&](int64_t w) -> int64_t {
    return __popcll(args.bits[w]);
  };
  const auto number = [&](int64_t w, int64_t next) {
    args.before[w] = next;
    for (uint64_t left = args.bits[w]; left != 0; left &= left - 1)
      args.node[next++] = (64 * w + __popcll((left & (~left + 1)) - 1)) % nodes;
  };
  const int64_t size =
      number_items(count, number, words, args.totals, shared.sums);
  if (global_rank() == 0)
    note_size(args, size);
  grid_barrier();
  const auto number_of = [&](int64_t id) {
    const uint64_t below = (uint64_t{1} << id % 64) - 1;
    return args.before[id / 64] + __popcll(args.bits[id / 64] & below);
  };
  for (int64_t i = global_rank(); i < args.n; i += step)
    args.local[i] = static_cast<id_t>(number_of(read_node(args, i)));
  if (args.ptr != nullptr)
    for (int64_t b = global_rank(); b <= args.batches; b += step)
      args.out_ptr[b] = number_of(b * args.num_nodes);
}

}  // namespace gsample
