// Checks of the operators, with one wording of each error. The Python wrappers
// (torch_gsample/ops) first raise ValueError, TypeError or IndexError for
// errors of a user; these checks guard callers of torch.ops.gsample.
#pragma once

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/device.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "../args.h"
#include "../core/weighted.h"
#include "../cpu/parallel.h"
#include "sizes.h"

namespace gsample {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

inline void check_vector(const char* op,
                         const char* name,
                         const Tensor& tensor,
                         ScalarType dtype) {
  STD_TORCH_CHECK(tensor.dim() == 1 && tensor.is_contiguous(), op, ": '", name,
                  "' must be a contiguous vector (got ", tensor.dim(),
                  " dimensions)");
  STD_TORCH_CHECK(tensor.scalar_type() == dtype, op, ": '", name,
                  "' has the wrong dtype");
}

inline void check_size(const char* op,
                       const char* name,
                       const Tensor& tensor,
                       int64_t size) {
  STD_TORCH_CHECK(tensor.numel() == size, op, ": '", name, "' must have ", size,
                  " elements (got ", tensor.numel(), ")");
}

// Checks that a tensor can hold as many rows of `row_bytes` as an argument
// sets.
inline void check_rows_fit(const char* op,
                           const char* name,
                           int64_t rows,
                           int64_t row_bytes) {
  const int64_t most = INT64_MAX / std::max<int64_t>(row_bytes, 1);
  STD_TORCH_CHECK(rows < most, op, ": '", name, "' must be less than ", most,
                  " (got ", rows, ")");
}

inline const int64_t* int64_vector(const char* op,
                                   const char* name,
                                   const Tensor& tensor,
                                   int64_t size) {
  check_vector(op, name, tensor, ScalarType::Long);
  check_size(op, name, tensor, size);
  return tensor.const_data_ptr<int64_t>();
}

inline const int64_t* int64_vector(const char* op,
                                   const char* name,
                                   const std::optional<Tensor>& tensor,
                                   int64_t size) {
  return tensor.has_value() ? int64_vector(op, name, *tensor, size) : nullptr;
}

// The number of keys, one per batch; 0 without keys.
inline int64_t num_rows_of(const Tensor& key) {
  return key.dim() > 0 ? key.size(0) : 0;
}

// The key of each batch, one per row.
inline std::vector<Key> read_keys(const char* op,
                                  const Tensor& key,
                                  int64_t num_batches) {
  STD_TORCH_CHECK(key.scalar_type() == ScalarType::Long && key.dim() == 2 &&
                      key.size(0) == num_batches && key.size(1) == 3 &&
                      key.is_contiguous() && !key.is_cuda(),
                  op, ": 'key' must be a contiguous int64 tensor [",
                  num_batches, ", 3] on the CPU");
  const int64_t* data = key.const_data_ptr<int64_t>();
  std::vector<Key> keys;
  for (int64_t i = 0; i < num_batches; ++i, data += 3)
    keys.push_back({data[0], data[1], data[2]});
  return keys;
}

inline Key read_key(const char* op, const Tensor& key) {
  return read_keys(op, key, 1)[0];
}

inline void check_call_id(const char* op, int64_t call_id) {
  STD_TORCH_CHECK(call_id >= 0 && call_id < kMaxCalls, op,
                  ": 'call_id' must be in [0, 65536) (got ", call_id, ")");
}

// The stream of a one-hop operator.
inline uint64_t read_stream(const char* op,
                            const Tensor& key,
                            int64_t call_id,
                            uint32_t relation) {
  check_call_id(op, call_id);
  return stream_key(read_key(op, key), static_cast<uint32_t>(call_id),
                    relation);
}

// The streams of a one-hop operator in some batches.
inline std::vector<uint64_t> read_streams(const char* op,
                                          const Tensor& key,
                                          int64_t num_batches,
                                          int64_t call_id,
                                          uint32_t relation) {
  check_call_id(op, call_id);
  std::vector<uint64_t> streams;
  for (const Key& k : read_keys(op, key, num_batches))
    streams.push_back(stream_key(k, static_cast<uint32_t>(call_id), relation));
  return streams;
}

// The start of each batch, [num_batches + 1] from 0 to `size`.
inline const int64_t* read_ptr(const char* op,
                               const char* name,
                               const Tensor& ptr,
                               int64_t size) {
  check_vector(op, name, ptr, ScalarType::Long);
  const int64_t last = ptr.numel() - 1;
  const int64_t* data = ptr.const_data_ptr<int64_t>();
  bool ascends = last >= 0 && data[0] == 0 && data[last] == size;
  for (int64_t i = 0; ascends && i < last; ++i)
    ascends = data[i] <= data[i + 1];
  STD_TORCH_CHECK(ascends, op, ": '", name, "' must ascend from 0 to ", size);
  return data;
}

// The items of each batch: split by `ptr`, or one batch.
struct Batches {
  Batches(const char* op,
          const char* name,
          const std::optional<Tensor>& ptr,
          int64_t size)
      : all{0, size},
        start(ptr ? read_ptr(op, name, *ptr, size) : all),
        count(ptr ? ptr->numel() - 1 : 1) {}
  Batches(const Batches&) = delete;

  int64_t size(int64_t b) const { return start[b + 1] - start[b]; }

  const int64_t all[2];
  const int64_t* const start;  // [count + 1]
  const int64_t count;
};

inline void check_fanout(const char* op, int64_t fanout, bool replace) {
  STD_TORCH_CHECK(
      fanout >= -1 && (!replace || fanout <= INT32_MAX), op,
      ": 'fanouts' must be -1 or more, and less than 2^31 with replacement "
      "(got ",
      fanout, ")");
}

// The number of threads of an operator: 0 means as many as torch.
inline int threads_of(int64_t num_threads) {
  constexpr int64_t kMost = 4096;
  return num_threads > 0 ? static_cast<int>(std::min(num_threads, kMost))
                         : max_threads();
}

inline void check_matrix(const char* op,
                         const Tensor& indptr,
                         const Tensor& indices) {
  check_vector(op, "indptr", indptr, indptr.scalar_type());
  check_vector(op, "indices", indices, indices.scalar_type());
  STD_TORCH_CHECK(indptr.numel() > 0, op, ": 'indptr' must not be empty");
}

// An uninitialised tensor, by default on the CPU, in half the time of
// torch::stable::empty, which looks its operator up by name.
inline Tensor empty_strided(int64_t dim,
                            const int64_t* sizes,
                            const int64_t* strides,
                            ScalarType dtype,
                            int32_t device_type = aoti_torch_device_type_cpu(),
                            int32_t device_index = 0) {
  AtenTensorHandle handle;
  TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(
      dim, sizes, strides,
      torch::stable::detail::to<int32_t>(torch::stable::detail::from(dtype)),
      device_type, device_index, &handle));
  return Tensor(handle);
}

// An uninitialised CPU vector.
inline Tensor empty_vector(int64_t size, ScalarType dtype = ScalarType::Long) {
  constexpr int64_t kStride = 1;
  return empty_strided(1, &size, &kStride, dtype);
}

inline Tensor to_tensor(const int64_t* data, int64_t rows, int64_t cols) {
  const int64_t sizes[2] = {rows, cols};
  const int64_t strides[2] = {std::max<int64_t>(cols, 1), 1};
  Tensor out = empty_strided(2, sizes, strides, ScalarType::Long);
  int64_t* to = out.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < rows * cols; ++i)
    to[i] = data[i];
  return out;
}

// Checks the batches of slice_rows, which must have both row and column
// pointers.
inline int64_t check_slices(const char* op,
                            const std::optional<Tensor>& row_ptr,
                            const std::optional<Tensor>& cols,
                            const std::optional<Tensor>& col_ptr,
                            bool whole) {
  STD_TORCH_CHECK(row_ptr.has_value() == col_ptr.has_value(), op,
                  ": 'row_ptr' and 'col_ptr' must be given together");
  STD_TORCH_CHECK(!row_ptr || row_ptr->numel() == col_ptr->numel(), op,
                  ": 'col_ptr' must have as many elements as 'row_ptr'");
  STD_TORCH_CHECK(whole || !cols.has_value(), op,
                  ": 'cols' must not be given for parts of a matrix");
  return row_ptr ? row_ptr->numel() - 1 : 1;
}

// Calls function(indptr_t{}, index_t{}) for the types of a graph.
template <typename function_t>
auto dispatch_graph(const char* op,
                    ScalarType indptr,
                    ScalarType indices,
                    const function_t& function) {
  constexpr ScalarType kInt = ScalarType::Int, kLong = ScalarType::Long;
  STD_TORCH_CHECK(
      (indptr == kInt && indices == kInt) ||
          (indptr == kLong && (indices == kInt || indices == kLong)),
      op,
      ": 'indptr' and 'indices' must be int32 or int64, and "
      "'indptr' not narrower than 'indices'");
  if (indptr == kInt)
    return function(int32_t{}, int32_t{});
  if (indices == kInt)
    return function(int64_t{}, int32_t{});
  return function(int64_t{}, int64_t{});
}

}  // namespace gsample
