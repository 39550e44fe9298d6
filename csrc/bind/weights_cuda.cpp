// The operators that prepare weights on a GPU.
#include <torch/csrc/stable/library.h>

#include <tuple>

#include "../cuda/weights.h"
#include "matrix_cuda.h"

namespace gsample {

namespace {

// Runs a kernel whose arguments are complete except for scratch.
template <typename args_t>
Report run(const char* op,
           args_t args,
           const Tensor& like,
           int64_t columns,
           const DeviceScope& scope) {
  DeviceReport report(like);
  args.report = report.get();
  Tensor max_bits = device_vector("max_bits", like, columns);
  Tensor before = device_vector("before", like, columns);
  args.max_bits = static_cast<uint64_t*>(max_bits.mutable_data_ptr());
  args.before = before.mutable_data_ptr<int64_t>();
  const LaunchShape shape = weights_shape(args);
  Tensor totals = device_vector("totals", like, shape.blocks);
  args.totals = totals.mutable_data_ptr<int64_t>();
  sum_weights(args, shape, scope.stream());
  const Report found = report.read(scope);
  check_report(op, found, "weight", 0);
  return found;
}

bool is_double(const char* op, const Tensor& weight) {
  const bool wide = weight.scalar_type() == ScalarType::Double;
  check_vector(op, "weight", weight,
               wide ? ScalarType::Double : ScalarType::Float);
  return wide;
}

Tensor cumulate_weights_cuda(Tensor indptr, Tensor weight) {
  const char* op = "cumulate_weights";
  const bool narrow = indptr.scalar_type() == ScalarType::Int;
  check_vector(op, "indptr", indptr,
               narrow ? ScalarType::Int : ScalarType::Long);
  STD_TORCH_CHECK(indptr.numel() > 0, op, ": 'indptr' must not be empty");
  check_device(op, "weight", weight, indptr);
  const bool wide = is_double(op, weight);
  const DeviceScope scope(op, indptr);
  const int64_t n = weight.numel(), num_cols = indptr.numel() - 1;
  Tensor out =
      device_vector("cum_weight", indptr, cum_weight_size(n, num_cols));
  const auto call = [&](auto indptr_type, auto weight_type) {
    CumulateWeightsCuda<decltype(indptr_type), decltype(weight_type)> args{};
    args.indptr = indptr.const_data_ptr<decltype(indptr_type)>();
    args.weight = weight.const_data_ptr<decltype(weight_type)>();
    args.num_cols = num_cols;
    args.n = n;
    args.cum_weight = out.mutable_data_ptr<int64_t>();
    run(op, args, indptr, num_cols, scope);
  };
  if (narrow)
    wide ? call(int32_t{}, double{}) : call(int32_t{}, float{});
  else
    wide ? call(int64_t{}, double{}) : call(int64_t{}, float{});
  return out;
}

std::tuple<Tensor, Tensor, Tensor> positive_weights_cuda(
    Tensor weight,
    std::optional<Tensor> of) {
  const char* op = "positive_weights";
  const bool wide = is_double(op, weight);
  const int64_t n = weight.numel();
  const DeviceScope scope(op, weight);
  const Tensor ptr =
      of ? *of : to_device(weight, {0, static_cast<uint64_t>(n)}, scope);
  const int64_t* begin = device_ptr(op, "ptr", ptr, n, weight, "weight");
  const int64_t batches = ptr.numel() - 1;
  Tensor index = device_vector("index", weight, n);
  Tensor cum_weight =
      device_vector("cum_weight", weight, cum_weight_size(n, batches));
  Tensor out_ptr = device_vector("ptr", weight, batches + 1);
  const auto call = [&](auto weight_type) {
    PositiveWeightsCuda<decltype(weight_type)> args{};
    args.weight = weight.const_data_ptr<decltype(weight_type)>();
    args.ptr = begin;
    args.n = n;
    args.batches = batches;
    args.index = index.mutable_data_ptr<int64_t>();
    args.cum_weight = cum_weight.mutable_data_ptr<int64_t>();
    args.out_ptr = out_ptr.mutable_data_ptr<int64_t>();
    return run(op, args, weight, batches, scope).size;
  };
  const int64_t size = wide ? call(double{}) : call(float{});
  return {first_items(index, size),
          first_items(cum_weight, cum_weight_size(size, batches)), out_ptr};
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(GSAMPLE_CUDA_LIBRARY, GSAMPLE_CUDA_KEY, m) {
  m.impl("cumulate_weights", TORCH_BOX(&cumulate_weights_cuda));
  m.impl("positive_weights", TORCH_BOX(&positive_weights_cuda));
}

}  // namespace gsample
