// The per-column scale of LABOR, one thread per column: sums are in edge order,
// so they equal the CPU's.
#include "labor_scale.h"

#include "../core/labor.h"
#include "columns.cuh"
#include "launch.cuh"

namespace gsample {

constexpr int kLaborThreads = 256;  // per block

// Reports an item that is not positive, or whose inverse is not finite.
__device__ inline void check_positive(const double* data,
                                      int64_t size,
                                      int64_t which,
                                      Report* report) {
  constexpr uint64_t kInfinity = 0x7FF0000000000000;
  const int64_t step = grid_threads();
  for (int64_t i = global_rank(); i < size; i += step) {
    const double w = data[i];
    if (!(w > 0) || double_bits(w) >= kInfinity ||
        double_bits(1 / w) >= kInfinity)
      note_fault(report, Report::kWeight, i, 0, which);
  }
}

template <typename indptr_t>
__global__ void __launch_bounds__(kLaborThreads)
    labor_scale_kernel(LaborScaleCuda<indptr_t> args) {
  const int64_t step = grid_threads();
  check_positive(args.weight, args.size, 0, args.report);
  if (args.value != nullptr)
    check_positive(args.value, args.size, 1, args.report);
  for (int64_t v = global_rank(); v < args.n; v += step) {
    const ColumnBounds c =
        read_bounds(args.indptr, args.n, args.size, v, v, args.report);
    const double* weight = args.weight + c.start;
    args.scale[v] =
        args.value == nullptr
            ? labor_scale(weight, c.length, args.k)
            : labor_scale(weight, args.value + c.start, c.length, args.k);
  }
  if (global_rank() == 0 &&
      (args.indptr[0] != 0 || args.indptr[args.n] != args.size))
    note_fault(args.report, Report::kIndptr, args.n, args.size);
}

template <typename indptr_t>
void labor_scale(const LaborScaleCuda<indptr_t>& args, StreamHandle stream) {
  launch("labor_scale", labor_scale_kernel<indptr_t>,
         shape_for(kLaborThreads, args.n), stream, args);
}

template void labor_scale(const LaborScaleCuda<int32_t>&, StreamHandle);
template void labor_scale(const LaborScaleCuda<int64_t>&, StreamHandle);

}  // namespace gsample
