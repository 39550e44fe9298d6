#include "sample_cols.cuh"

#include "launch.cuh"

namespace gsample {

namespace {

// As many lanes as a column has slots, if they fit in a warp.
template <typename indptr_t>
int lanes_for(const SampleColsCuda<indptr_t>& args) {
  if (needs_taken(args))
    return 1;
  int lanes = 4;
  while (lanes < kLaneSlots && (args.k < 0 || lanes < args.k))
    lanes *= 2;
  return lanes;
}

}  // namespace

template <typename indptr_t>
LaunchShape sample_cols_shape(const SampleColsCuda<indptr_t>& args) {
  return cooperative_shape(sample_cols_indptr_kernel<indptr_t>, kSelectThreads,
                           args.num_cols);
}

template <typename indptr_t>
void sample_cols_indptr(const SampleColsCuda<indptr_t>& args,
                        LaunchShape shape,
                        StreamHandle stream) {
  launch_cooperative("sample_cols_indptr", sample_cols_indptr_kernel<indptr_t>,
                     shape, stream, args);
}

template <typename indptr_t>
void sample_cols_edges(const SampleColsCuda<indptr_t>& args,
                       StreamHandle stream) {
  if (needs_trees(args)) {
    launch("sample_weighted_cols", sample_weighted_cols_kernel<indptr_t>,
           shape_for(kSelectThreads, 32 * args.trees), stream, args);
    return;
  }
  const int lanes = lanes_for(args);
  launch("sample_cols_edges", sample_cols_edges_kernel<indptr_t>,
         shape_for(kSelectThreads, args.num_cols * lanes), stream, args, lanes);
  if (args.k >= 0 && args.k <= kManySlots)
    return;
  launch("sample_long_cols", sample_long_cols_kernel<indptr_t>,
         shape_for(kSelectThreads, args.num_cols * kSelectThreads), stream,
         args);
}

#define GSAMPLE_INSTANTIATE(indptr_t)                                      \
  template LaunchShape sample_cols_shape(const SampleColsCuda<indptr_t>&); \
  template void sample_cols_indptr(const SampleColsCuda<indptr_t>&,        \
                                   LaunchShape, StreamHandle);             \
  template void sample_cols_edges(const SampleColsCuda<indptr_t>&,         \
                                  StreamHandle);
GSAMPLE_INSTANTIATE(int32_t)
GSAMPLE_INSTANTIATE(int64_t)

}  // namespace gsample
