// Merges two sorted vectors: one thread per number.
#include "merge_sorted.h"

#include "launch.cuh"
#include "report.cuh"

namespace gsample {

constexpr int kMergeThreads = 256;  // per block

// The number of values of a part that precede a value: smaller ones, and equal
// ones if the part is the first.
template <typename input_t>
__device__ int64_t count_before(const SortedPart<input_t>& part,
                                input_t value,
                                bool with_equal) {
  int64_t low = 0, high = part.n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const input_t found = part.value[middle];
    const bool before = with_equal ? found <= value : found < value;
    low = before ? middle + 1 : low;
    high = before ? high : middle;
  }
  return low;
}

template <typename input_t>
__global__ void __launch_bounds__(kMergeThreads)
    merge_sorted_kernel(MergeSortedCuda<input_t> args) {
  const int64_t n = args.first.n + args.second.n, step = grid_threads();
  for (int64_t rank = global_rank(); rank < n; rank += step) {
    const bool in_second = rank >= args.first.n;
    const int64_t i = in_second ? rank - args.first.n : rank;
    const SortedPart<input_t>& part = in_second ? args.second : args.first;
    const SortedPart<input_t>& other = in_second ? args.first : args.second;
    const input_t value = part.value[i];
    const int64_t place = i + count_before(other, value, in_second);
    args.value[place] = value;
    args.from[place] = part.from[i] + (in_second ? args.first.n : 0);
  }
}

template <typename input_t>
void merge_sorted(const MergeSortedCuda<input_t>& args, StreamHandle stream) {
  launch("merge_sorted", merge_sorted_kernel<input_t>,
         shape_for(kMergeThreads, args.first.n + args.second.n), stream, args);
}

template void merge_sorted(const MergeSortedCuda<int32_t>&, StreamHandle);
template void merge_sorted(const MergeSortedCuda<int64_t>&, StreamHandle);

}  // namespace gsample
