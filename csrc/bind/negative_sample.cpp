// The operator negative_sample on the CPU.
#include "negative_sample.h"

#include <torch/csrc/stable/library.h>

#include "../cpu/negative_sample.h"

namespace gsample {

namespace {

Tensor negative_sample_op(Tensor id,
                          int64_t num_nodes,
                          bool target,
                          Tensor key,
                          int64_t call_id,
                          std::optional<Tensor> cum_weight,
                          std::optional<Tensor> order,
                          std::optional<Tensor> order_time,
                          std::optional<Tensor> max_time,
                          std::optional<Tensor> anchor,
                          std::optional<Tensor> indptr,
                          std::optional<Tensor> indices) {
  const char* op = "negative_sample";
  const NegativeArgs args = read_negative_args(
      op, id, num_nodes,
      {cum_weight, order, order_time, max_time, anchor, indptr, indices},
      negative_stream(op, key, call_id, target));
  for (int64_t i = 0; i < args.n && args.anchor != nullptr; ++i)
    check_anchor(op, NegativeCandidates(args, i).has_neighbors(),
                 args.num_anchors, args.anchor[i]);
  Tensor out = empty_vector(args.n);
  negative_sample(args, out.mutable_data_ptr<int64_t>());
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gsample, CPU, m) {
  m.impl("negative_sample", TORCH_BOX(&negative_sample_op));
}

}  // namespace gsample
