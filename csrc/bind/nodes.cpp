// The operators that relabel, weigh and select nodes on the CPU, for one or
// several batches: each batch as if it were alone, concatenated.
#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "../cpu/formats.h"
#include "../cpu/sample_nodes.h"
#include "../cpu/unique_nodes.h"
#include "check.h"
#include "output_pool.h"

namespace gsample {

namespace {

constexpr int64_t kGrain = 4096;  // fewest elements of a thread

// The number of threads for batches with `size` elements.
int threads_for(int64_t size) {
  return static_cast<int>(
      std::max<int64_t>(1, std::min<int64_t>(max_threads(), size / kGrain)));
}

// The start of each batch's items, from their sizes.
Tensor to_ptr(const std::vector<int64_t>& sizes) {
  Tensor out = empty_vector(static_cast<int64_t>(sizes.size()) + 1);
  int64_t* ptr = out.mutable_data_ptr<int64_t>();
  ptr[0] = 0;
  for (size_t b = 0; b < sizes.size(); ++b)
    ptr[b + 1] = ptr[b] + sizes[b];
  return out;
}

// Closes the gaps between the outputs of the batches, which start at start[b].
// Returns the items, and the start of each batch's.
std::tuple<Tensor, Tensor> close_gaps(const int64_t* start,
                                      const std::vector<int64_t>& size,
                                      Tensor items) {
  Tensor ptr = to_ptr(size);
  const int64_t* to = ptr.const_data_ptr<int64_t>();
  int64_t* data = items.mutable_data_ptr<int64_t>();
  for (size_t b = 0; b < size.size(); ++b)
    if (to[b] != start[b])
      std::copy(data + start[b], data + start[b] + size[b], data + to[b]);
  const int64_t total = to[size.size()];
  if (total != items.numel())
    items = torch::stable::clone(torch::stable::narrow(items, 0, 0, total));
  return {items, ptr};
}

template <typename number_t>
void add_to(number_t* data, int64_t begin, int64_t end, int64_t number) {
  for (int64_t i = begin; number != 0 && i < end; ++i)
    data[i] += static_cast<number_t>(number);
}

std::tuple<Tensor, Tensor, Tensor> unique_nodes_op(Tensor id,
                                                   int64_t num_nodes,
                                                   bool sorted,
                                                   std::optional<Tensor> ptr) {
  const char* op = "unique_nodes";
  const int64_t n = id.numel();
  const bool narrow = id.scalar_type() == ScalarType::Int;
  check_vector(op, "id", id, narrow ? ScalarType::Int : ScalarType::Long);
  STD_TORCH_CHECK(n <= INT32_MAX, op,
                  ": 'id' must have less than 2^31 elements (got ", n, ")");
  STD_TORCH_CHECK(num_nodes >= 0, op, ": 'num_nodes' must not be negative");
  const Batches of(op, "ptr", ptr, n);
  Tensor node = empty_vector(n);
  Tensor local = pooled_tensor({n}, id.scalar_type(), id.element_size());
  std::vector<int64_t> size(of.count);
  int64_t* nodes = node.mutable_data_ptr<int64_t>();
  const auto call = [&](auto id_type) {
    using id_t = decltype(id_type);
    const id_t* ids = id.const_data_ptr<id_t>();
    id_t* locals = local.mutable_data_ptr<id_t>();
    parallel_items(of.count, threads_for(n), [&](int64_t b) {
      size[b] = unique_nodes(ids + of.start[b], of.size(b), num_nodes, sorted,
                             nodes + of.start[b], locals + of.start[b]);
    });
    STD_TORCH_CHECK(
        std::all_of(size.begin(), size.end(), [](int64_t s) { return s >= 0; }),
        op, ": 'id' must be in [0, ", num_nodes, ")");
    int64_t before = 0;
    for (int64_t b = 0; b < of.count; before += size[b++])
      add_to(locals, of.start[b], of.start[b + 1], before);
  };
  narrow ? call(int32_t{}) : call(int64_t{});
  const auto [distinct, out_ptr] = close_gaps(of.start, size, node);
  return {distinct, local, out_ptr};
}

std::tuple<Tensor, Tensor, Tensor> positive_weights_op(
    Tensor weight,
    std::optional<Tensor> ptr) {
  const char* op = "positive_weights";
  const bool wide = weight.scalar_type() == ScalarType::Double;
  check_vector(op, "weight", weight,
               wide ? ScalarType::Double : ScalarType::Float);
  const Batches of(op, "ptr", ptr, weight.numel());
  std::vector<int64_t> size(of.count);
  Tensor index, cum_weight;
  const auto call = [&](auto weight_type) {
    using weight_t = decltype(weight_type);
    const weight_t* data = weight.const_data_ptr<weight_t>();
    std::vector<WeightSummary> summary(of.count);
    int64_t total = 0;
    for (int64_t b = 0; b < of.count; ++b) {
      summary[b] = summarize_weights(data + of.start[b], of.size(b));
      STD_TORCH_CHECK(summary[b].count >= 0, op,
                      ": 'weight' must be finite and not negative");
      total += size[b] = summary[b].count;
    }
    const int64_t words = cum_weight_size(total, of.count);
    index = pooled_vector(total);
    cum_weight = pooled_vector(words);
    int64_t* indices = index.mutable_data_ptr<int64_t>();
    int64_t* cum = cum_weight.mutable_data_ptr<int64_t>();
    int64_t to = 0;
    for (int64_t b = 0; b < of.count; to += size[b++]) {
      // The bit after a batch's sums is where the next batch starts to write.
      positive_weights(data + of.start[b], of.size(b), summary[b], indices + to,
                       cum + to);
      add_to(indices, to, to + size[b], of.start[b]);
    }
    std::fill(cum + total, cum + words, 0);
  };
  wide ? call(double{}) : call(float{});
  return {index, cum_weight, to_ptr(size)};
}

// Without `ptr`, each key's batch selects from all nodes.
std::tuple<Tensor, Tensor> sample_nodes_op(int64_t num_nodes,
                                           int64_t k,
                                           Tensor key,
                                           int64_t call_id,
                                           std::optional<Tensor> cum_weight,
                                           bool replace,
                                           std::optional<Tensor> ptr,
                                           std::optional<Tensor>) {
  const char* op = "sample_nodes";
  STD_TORCH_CHECK(num_nodes >= 0, op, ": 'num_nodes' must not be negative");
  STD_TORCH_CHECK(k >= 0 && k <= INT32_MAX, op,
                  ": 'k' must be in [0, 2^31) (got ", k, ")");
  const Batches of(op, "ptr", ptr, num_nodes);
  const int64_t batches = ptr ? of.count : num_rows_of(key);
  const int64_t* cum = int64_vector(op, "cum_weight", cum_weight,
                                    cum_weight_size(num_nodes, of.count));
  const std::vector<uint64_t> streams =
      read_streams(op, key, batches, call_id, kSampleNodes);
  std::vector<int64_t> room(batches + 1, 0), size(batches);
  for (int64_t b = 0; b < batches; ++b) {
    const int64_t n = of.size(ptr ? b : 0);
    room[b + 1] = room[b] + (!replace || n == 0 ? std::min(k, n) : k);
  }
  Tensor node = empty_vector(room[batches]);
  int64_t* out = node.mutable_data_ptr<int64_t>();
  parallel_items(batches, threads_for(room[batches]), [&](int64_t b) {
    const int64_t from = ptr ? b : 0, first = of.start[from];
    const bool has_zero = cum && has_zero_weight(cum + num_nodes, from);
    size[b] =
        sample_nodes(cum ? cum + first : nullptr, has_zero, of.size(from),
                     room[b + 1] - room[b], replace, streams[b], out + room[b]);
    add_to(out, room[b], room[b] + size[b], first);
  });
  return close_gaps(room.data(), size, node);
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gsample, CPU, m) {
  m.impl("sample_nodes", TORCH_BOX(&sample_nodes_op));
  m.impl("unique_nodes", TORCH_BOX(&unique_nodes_op));
  m.impl("positive_weights", TORCH_BOX(&positive_weights_op));
}

}  // namespace gsample
