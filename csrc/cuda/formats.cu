// CSC: construction from sorted edges, and checks.
#include "formats.h"

#include "columns.cuh"
#include "launch.cuh"

namespace gsample {

constexpr int kFormatThreads = 256;  // per block

template <typename input_t, typename indptr_t, typename index_t>
__global__ void __launch_bounds__(kFormatThreads)
    coo_to_csc_kernel(CooToCscCuda<input_t, indptr_t, index_t> args) {
  const int64_t step = grid_threads();
  for (int64_t i = global_rank(); i < args.n; i += step) {
    if (args.col[i] < 0 || args.col[i] >= args.num_cols)
      note_fault(args.report, Report::kId, args.perm[i], args.col[i]);
    const int64_t row = args.row[args.perm[i]];
    if (row < 0 || row >= args.num_rows)
      note_fault(args.report, Report::kRow, args.perm[i], row);
    args.indices[i] = static_cast<index_t>(row);
  }
  // A column starts at the first edge that is not of an earlier column.
  for (int64_t v = global_rank(); v <= args.num_cols; v += step) {
    int64_t low = 0, high = args.n;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      const bool earlier = args.col[middle] < v;
      low = earlier ? middle + 1 : low;
      high = earlier ? high : middle;
    }
    args.indptr[v] = static_cast<indptr_t>(low);
  }
}

template <typename indptr_t, typename index_t>
__global__ void __launch_bounds__(kFormatThreads)
    check_csc_kernel(CheckCscCuda<indptr_t, index_t> args) {
  const int64_t step = grid_threads(), last = args.num_cols;
  const auto keep = [&](int place, int64_t where) {
    Atomic<int64_t>(args.lowest[place]).fetch_min(where, kRelaxed);
  };
  for (int64_t v = global_rank(); v < last; v += step)
    if (args.indptr[v + 1] < args.indptr[v])
      keep(0, v + 1);
  for (int64_t i = global_rank(); i < args.num_edges; i += step)
    if (static_cast<uint64_t>(args.indices[i]) >=
        static_cast<uint64_t>(args.num_rows))
      keep(1, i);
  grid_barrier();
  if (global_rank() != 0)
    return;
  // The order of the rules in cpu/formats.h.
  enum Rule { kNone, kFirst, kDescends, kLast, kIndices };
  const auto tell = [&](int64_t rule, int64_t where, int64_t value) {
    args.out[0] = rule;
    args.out[1] = where;
    args.out[2] = value;
  };
  if (args.indptr[0] != 0)
    tell(kFirst, 0, args.indptr[0]);
  else if (args.lowest[0] <= last)
    tell(kDescends, args.lowest[0], args.indptr[args.lowest[0]]);
  else if (args.indptr[last] != args.num_edges)
    tell(kLast, last, args.indptr[last]);
  else if (args.lowest[1] < args.num_edges)
    tell(kIndices, args.lowest[1], args.indices[args.lowest[1]]);
  else
    tell(kNone, 0, 0);
}

template <typename input_t, typename indptr_t, typename index_t>
void coo_to_csc(const CooToCscCuda<input_t, indptr_t, index_t>& args,
                StreamHandle stream) {
  launch("coo_to_csc", coo_to_csc_kernel<input_t, indptr_t, index_t>,
         shape_for(kFormatThreads, args.n + args.num_cols + 1), stream, args);
}

template <typename indptr_t, typename index_t>
LaunchShape check_csc_shape(const CheckCscCuda<indptr_t, index_t>& args) {
  return cooperative_shape(check_csc_kernel<indptr_t, index_t>, kFormatThreads,
                           args.num_cols + args.num_edges);
}

template <typename indptr_t, typename index_t>
void check_csc(const CheckCscCuda<indptr_t, index_t>& args,
               LaunchShape shape,
               StreamHandle stream) {
  launch_cooperative("check_csc", check_csc_kernel<indptr_t, index_t>, shape,
                     stream, args);
}

#define GSAMPLE_INSTANTIATE(indptr_t, index_t)                                 \
  template void coo_to_csc(const CooToCscCuda<int32_t, indptr_t, index_t>&,    \
                           StreamHandle);                                      \
  template void coo_to_csc(const CooToCscCuda<int64_t, indptr_t, index_t>&,    \
                           StreamHandle);                                      \
  template LaunchShape check_csc_shape(                                        \
      const CheckCscCuda<indptr_t, index_t>&);                                 \
  template void check_csc(const CheckCscCuda<indptr_t, index_t>&, LaunchShape, \
                          StreamHandle);
GSAMPLE_INSTANTIATE(int32_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int64_t)

}  // namespace gsample
