// Weights in fixed point and their sums, in one cooperative launch: the largest
// weight of each column, which decides its scale; then sums over all edges,
// from which the sum before the column is subtracted, so that hubs need no
// thread of their own. Sums wrap around; differences are exact.
#include "weights.h"

#include "../core/weighted.h"
#include "columns.cuh"
#include "launch.cuh"

namespace gsample {

constexpr int kWeightThreads = 256;  // per block

struct WeightsShared {
  BlockSums sums;
};

// A weight; if it is invalid, reports it and returns 0.
__device__ inline double read_weight(double weight, int64_t i, Report* report) {
  constexpr uint64_t kInfinity = 0x7FF0000000000000;
  if (weight > 0 && double_bits(weight) < kInfinity)
    return weight;
  if (!(weight == 0))  // also for NaN
    note_fault(report, Report::kWeight, i, 0);
  return 0;
}

// Positive floats sort like their bits.
__device__ inline void raise_max(uint64_t* max_bits, double weight) {
  const Atomic<uint64_t> most(*max_bits);
  const uint64_t bits = double_bits(weight);
  if (most.load(kRelaxed) < bits)
    most.fetch_max(bits, kRelaxed);
}

__device__ inline int64_t fix_weight(double weight,
                                     uint64_t max_bits,
                                     int64_t n) {
  return static_cast<int64_t>(fixed_point(
      weight,
      fixed_point_shift(double_from_bits(max_bits), static_cast<uint64_t>(n))));
}

template <typename indptr_t, typename weight_t>
__global__ void __launch_bounds__(kWeightThreads)
    sum_weights_kernel(CumulateWeightsCuda<indptr_t, weight_t> args) {
  GSAMPLE_SHARED(WeightsShared, shared);
  const int64_t step = grid_threads(), n = args.n, cols = args.num_cols;
  uint64_t* const zeros = reinterpret_cast<uint64_t*>(args.cum_weight + n);
  for (int64_t v = global_rank(); v <= cols; v += step) {
    const int64_t least = v == 0 ? 0 : args.indptr[v - 1];
    const int64_t at = args.indptr[v];
    if (at < least || at > n || (v == 0 && at != 0) || (v == cols && at != n))
      note_fault(args.report, Report::kIndptr, v, n);
    if (v < cols)
      args.max_bits[v] = 0;
    if (v < cum_weight_size(0, cols))
      zeros[v] = 0;
  }
  grid_barrier();
  if (Atomic<int64_t>(args.report->fault).load(kRelaxed) != Report::kNone)
    return;  // in all threads
  grid_barrier();
  for (int64_t i = global_rank(); i < n; i += step) {
    const double weight = read_weight(args.weight[i], i, args.report);
    const int64_t v = column_of(args.indptr, cols, i);
    if (weight > 0)
      raise_max(args.max_bits + v, weight);
    else
      Atomic<uint64_t>(zeros[v / kColumnsPerWord])
          .fetch_or(uint64_t{1} << v % kColumnsPerWord, kRelaxed);
  }
  grid_barrier();
  const auto fixed = [&](int64_t i) {
    const int64_t v = column_of(args.indptr, cols, i);
    return fix_weight(args.weight[i], args.max_bits[v],
                      args.indptr[v + 1] - args.indptr[v]);
  };
  const auto write = [&](int64_t i, int64_t before) {
    const int64_t v = column_of(args.indptr, cols, i);
    if (i == args.indptr[v])
      args.before[v] = before;
    args.cum_weight[i] = add(before, fixed(i));
  };
  number_items(fixed, write, n, args.totals, shared.sums);
  grid_barrier();
  for (int64_t i = global_rank(); i < n; i += step)
    args.cum_weight[i] = static_cast<int64_t>(
        static_cast<uint64_t>(args.cum_weight[i]) -
        static_cast<uint64_t>(args.before[column_of(args.indptr, cols, i)]));
}

template <typename weight_t>
__global__ void __launch_bounds__(kWeightThreads)
    sum_weights_kernel(PositiveWeightsCuda<weight_t> args) {
  GSAMPLE_SHARED(WeightsShared, shared);
  const int64_t step = grid_threads(), batches = args.batches;
  check_ptr(args.ptr, batches, args.n, args.report);
  for (int64_t b = global_rank(); b < batches; b += step)
    args.max_bits[b] = 0;
  const auto is_positive = [&](int64_t i) -> int64_t {
    return read_weight(args.weight[i], i, args.report) > 0;
  };
  const auto place = [&](int64_t i, int64_t to) {
    if (is_positive(i))
      args.index[to] = i;
  };
  const int64_t size =
      number_items(is_positive, place, args.n, args.totals, shared.sums);
  grid_barrier();
  // Positions ascend: those of a batch are consecutive.
  for (int64_t b = global_rank(); b <= batches; b += step) {
    int64_t low = 0, high = size;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      const bool earlier = args.index[middle] < args.ptr[b];
      low = earlier ? middle + 1 : low;
      high = earlier ? high : middle;
    }
    args.out_ptr[b] = low;
  }
  for (int64_t p = global_rank(); p < size; p += step) {
    const int64_t i = args.index[p];
    raise_max(args.max_bits + column_of(args.ptr, batches, i), args.weight[i]);
  }
  grid_barrier();
  const auto fixed = [&](int64_t p) {
    const int64_t b = column_of(args.out_ptr, batches, p);
    return fix_weight(args.weight[args.index[p]], args.max_bits[b],
                      args.out_ptr[b + 1] - args.out_ptr[b]);
  };
  const auto write = [&](int64_t p, int64_t before) {
    const int64_t b = column_of(args.out_ptr, batches, p);
    if (p == args.out_ptr[b])
      args.before[b] = before;
    args.cum_weight[p] = add(before, fixed(p));
  };
  number_items(fixed, write, size, args.totals, shared.sums);
  grid_barrier();
  for (int64_t p = global_rank(); p < size; p += step)
    args.cum_weight[p] = static_cast<int64_t>(
        static_cast<uint64_t>(args.cum_weight[p]) -
        static_cast<uint64_t>(
            args.before[column_of(args.out_ptr, batches, p)]));
  // No batch has a zero weight.
  for (int64_t w = global_rank(); w < cum_weight_size(0, batches); w += step)
    args.cum_weight[size + w] = 0;
  if (global_rank() == 0)
    args.report->size = size;
}

template <typename args_t>
LaunchShape weights_shape(const args_t& args) {
  void (*const kernel)(args_t) = sum_weights_kernel;
  return cooperative_shape(kernel, kWeightThreads, args.n);
}

template <typename args_t>
void sum_weights(const args_t& args, LaunchShape shape, StreamHandle stream) {
  void (*const kernel)(args_t) = sum_weights_kernel;
  launch_cooperative("sum_weights", kernel, shape, stream, args);
}

#define GSAMPLE_INSTANTIATE(...)                          \
  template LaunchShape weights_shape(const __VA_ARGS__&); \
  template void sum_weights(const __VA_ARGS__&, LaunchShape, StreamHandle);
GSAMPLE_INSTANTIATE(CumulateWeightsCuda<int32_t, float>)
GSAMPLE_INSTANTIATE(CumulateWeightsCuda<int32_t, double>)
GSAMPLE_INSTANTIATE(CumulateWeightsCuda<int64_t, float>)
GSAMPLE_INSTANTIATE(CumulateWeightsCuda<int64_t, double>)
GSAMPLE_INSTANTIATE(PositiveWeightsCuda<float>)
GSAMPLE_INSTANTIATE(PositiveWeightsCuda<double>)

}  // namespace gsample
