// The operator negative_sample on a GPU. It waits for the kernel only if
// anchors may be invalid.
#include <torch/csrc/stable/library.h>

#include "../cuda/negative_sample.h"
#include "device_cuda.h"
#include "negative_sample.h"

namespace gsample {

namespace {

Tensor negative_sample_cuda(Tensor id,
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
  const auto check = [&](const char* name, const std::optional<Tensor>& given) {
    if (given.has_value())
      check_device(op, name, *given, id, "id");
  };
  check("cum_weight", cum_weight);
  check("order", order);
  check("order_time", order_time);
  check("max_time", max_time);
  check("anchor", anchor);
  const DeviceScope scope(op, id);
  NegativeSampleCuda args{};
  args.args = read_negative_args(
      op, id, num_nodes,
      {cum_weight, order, order_time, max_time, anchor, indptr, indices},
      negative_stream(op, key, call_id, target));
  if (anchor.has_value()) {
    args.args.indptr = readable<int64_t>(op, *indptr, id, "id");
    args.args.indices = readable<int64_t>(op, *indices, id, "id");
  }
  Tensor out = device_vector("out", id, args.args.n);
  args.out = out.mutable_data_ptr<int64_t>();
  if (!anchor.has_value()) {
    negative_sample(args, scope.stream());
    return out;
  }
  DeviceReport report(id);
  args.report = report.get();
  negative_sample(args, scope.stream());
  const Report found = report.read(scope);
  check_anchor(op, found.fault == Report::kNone, args.args.num_anchors,
               found.value);
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(GSAMPLE_CUDA_LIBRARY, GSAMPLE_CUDA_KEY, m) {
  m.impl("negative_sample", TORCH_BOX(&negative_sample_cuda));
}

}  // namespace gsample
