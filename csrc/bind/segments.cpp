// Operators of several batches on the CPU: each batch as the operator of one
// batch has it, and all of them one after another.
#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "../cpu/formats.h"
#include "../cpu/sample_matrix.h"
#include "../cpu/slice_matrix.h"
#include "../cpu/unique_nodes.h"
#include "check.h"
#include "output_pool.h"

namespace gsample {

namespace {

constexpr int64_t kGrain = 4096;  // elements of a thread, at least

// Threads for `batches` that hold `size` elements.
int threads_for(int64_t size, int threads) {
  return static_cast<int>(
      std::max<int64_t>(1, std::min<int64_t>(threads, size / kGrain)));
}

// Moves what each batch wrote from its start on together, and writes where it
// is then: sizes become `ptr` [batches + 1].
template <typename value_t>
void close_gaps(const int64_t* start,
                const int64_t* size,
                int64_t batches,
                value_t* data) {
  int64_t to = 0;
  for (int64_t b = 0; b < batches; to += size[b++])
    if (to != start[b])
      std::copy(data + start[b], data + start[b] + size[b], data + to);
}

Tensor to_ptr(const std::vector<int64_t>& sizes) {
  Tensor out = empty_vector(static_cast<int64_t>(sizes.size()) + 1);
  int64_t* ptr = out.mutable_data_ptr<int64_t>();
  ptr[0] = 0;
  for (size_t b = 0; b < sizes.size(); ++b)
    ptr[b + 1] = ptr[b] + sizes[b];
  return out;
}

int64_t last_of(const Tensor& ptr) {
  return ptr.const_data_ptr<int64_t>()[ptr.numel() - 1];
}

Tensor first_of(Tensor vector, int64_t size) {
  return torch::stable::clone(torch::stable::narrow(vector, 0, 0, size));
}

std::tuple<Tensor, Tensor, Tensor> unique_nodes_segments_op(Tensor id,
                                                            Tensor ptr,
                                                            int64_t num_nodes,
                                                            bool sorted) {
  const char* op = "unique_nodes_segments";
  const int64_t n = id.numel(), batches = ptr.numel() - 1;
  const bool narrow = id.scalar_type() == ScalarType::Int;
  check_vector(op, "id", id, narrow ? ScalarType::Int : ScalarType::Long);
  STD_TORCH_CHECK(n <= INT32_MAX, op,
                  ": 'id' must have less than 2^31 elements (got ", n, ")");
  STD_TORCH_CHECK(num_nodes >= 0, op, ": 'num_nodes' must not be negative");
  const int64_t* start = read_ptr(op, "ptr", ptr, n);
  Tensor node = empty_vector(n);
  Tensor local =
      pooled_tensor({n}, id.scalar_type(), narrow ? sizeof(int32_t) : 8);
  std::vector<int64_t> size(batches);
  int64_t* nodes = node.mutable_data_ptr<int64_t>();
  const auto call = [&](auto id_type) {
    using id_t = decltype(id_type);
    const id_t* ids = id.const_data_ptr<id_t>();
    id_t* locals = local.mutable_data_ptr<id_t>();
    parallel_items(batches, threads_for(n, max_threads()), [&](int64_t b) {
      size[b] = unique_nodes(ids + start[b], start[b + 1] - start[b], num_nodes,
                             sorted, nodes + start[b], locals + start[b]);
    });
    STD_TORCH_CHECK(
        std::all_of(size.begin(), size.end(), [](int64_t s) { return s >= 0; }),
        op, ": 'id' must be in [0, ", num_nodes, ")");
    int64_t before = 0;
    for (int64_t b = 0; b < batches; before += size[b++])
      for (int64_t i = start[b]; i < start[b + 1]; ++i)
        locals[i] += static_cast<id_t>(before);
  };
  narrow ? call(int32_t{}) : call(int64_t{});
  close_gaps(start, size.data(), batches, nodes);
  Tensor out_ptr = to_ptr(size);
  return {first_of(node, last_of(out_ptr)), local, out_ptr};
}

std::tuple<Tensor, Tensor, Tensor> positive_weights_segments_op(Tensor weight,
                                                                Tensor ptr) {
  const char* op = "positive_weights_segments";
  const bool wide = weight.scalar_type() == ScalarType::Double;
  check_vector(op, "weight", weight,
               wide ? ScalarType::Double : ScalarType::Float);
  const int64_t batches = ptr.numel() - 1;
  const int64_t* start = read_ptr(op, "ptr", ptr, weight.numel());
  std::vector<int64_t> size(batches);
  Tensor index, cum_weight;
  const auto call = [&](auto weight_type) {
    using weight_t = decltype(weight_type);
    const weight_t* data = weight.const_data_ptr<weight_t>();
    std::vector<WeightSummary> summary(batches);
    int64_t total = 0;
    for (int64_t b = 0; b < batches; ++b) {
      summary[b] = summarize_weights(data + start[b], start[b + 1] - start[b]);
      STD_TORCH_CHECK(summary[b].count >= 0, op,
                      ": 'weight' must be finite and not negative");
      total += size[b] = summary[b].count;
    }
    const int64_t words = cum_weight_size(total, batches);
    index = pooled_vector(total);
    cum_weight = pooled_vector(words);
    int64_t* indices = index.mutable_data_ptr<int64_t>();
    int64_t* cum = cum_weight.mutable_data_ptr<int64_t>();
    int64_t to = 0;
    for (int64_t b = 0; b < batches; to += size[b++]) {
      // The bit behind a batch's sums is where the next ones are written.
      positive_weights(data + start[b], start[b + 1] - start[b], summary[b],
                       indices + to, cum + to);
      for (int64_t i = to; i < to + size[b]; ++i)
        indices[i] += start[b];
    }
    std::fill(cum + total, cum + words, 0);
  };
  wide ? call(double{}) : call(float{});
  return {index, cum_weight, to_ptr(size)};
}

std::tuple<Tensor, Tensor> sample_nodes_segments_op(
    int64_t num_nodes,
    int64_t k,
    Tensor key,
    int64_t call_id,
    std::optional<Tensor> ptr,
    std::optional<Tensor> cum_weight,
    bool replace,
    std::optional<Tensor>) {
  const char* op = "sample_nodes_segments";
  STD_TORCH_CHECK(num_nodes >= 0, op, ": 'num_nodes' must not be negative");
  STD_TORCH_CHECK(k >= 0 && k <= INT32_MAX, op,
                  ": 'k' must be in [0, 2^31) (got ", k, ")");
  const int64_t batches = ptr ? ptr->numel() - 1 : key.size(0);
  const int64_t* start = ptr ? read_ptr(op, "ptr", *ptr, num_nodes) : nullptr;
  const int64_t columns = ptr ? batches : 1;
  const int64_t* cum = int64_vector(op, "cum_weight", cum_weight,
                                    cum_weight_size(num_nodes, columns));
  const std::vector<uint64_t> streams =
      read_streams(op, key, batches, call_id, kSampleNodes);
  std::vector<int64_t> room(batches + 1, 0), size(batches);
  for (int64_t b = 0; b < batches; ++b) {
    const int64_t n = start ? start[b + 1] - start[b] : num_nodes;
    room[b + 1] = room[b] + (!replace || n == 0 ? std::min(k, n) : k);
  }
  Tensor node = empty_vector(room[batches]);
  int64_t* out = node.mutable_data_ptr<int64_t>();
  parallel_items(batches, threads_for(room[batches], max_threads()),
                 [&](int64_t b) {
                   const int64_t first = start ? start[b] : 0;
                   const int64_t n = start ? start[b + 1] - first : num_nodes;
                   const bool has_zero =
                       cum && has_zero_weight(cum + num_nodes, start ? b : 0);
                   size[b] = sample_nodes(cum ? cum + first : nullptr, has_zero,
                                          n, room[b + 1] - room[b], replace,
                                          streams[b], out + room[b]);
                   for (int64_t i = 0; i < size[b]; ++i)
                     out[room[b] + i] += first;
                 });
  close_gaps(room.data(), size.data(), batches, out);
  Tensor out_ptr = to_ptr(size);
  const int64_t total = last_of(out_ptr);
  return {total == room[batches] ? node : first_of(node, total), out_ptr};
}

// The rows of some batches in one matrix, or in a part of its columns each.
template <typename indptr_t, typename index_t>
struct RowSlices {
  std::vector<Matrix<indptr_t, index_t>> matrix;
  std::vector<RowSlice<indptr_t, index_t>> slice;

  explicit RowSlices(int64_t batches) {
    matrix.reserve(batches);
    slice.reserve(batches);
  }
};

std::tuple<Tensor, Tensor, Tensor> slice_rows_segments_op(
    Tensor indptr,
    Tensor indices,
    int64_t num_rows,
    Tensor rows,
    Tensor row_ptr,
    std::optional<Tensor> cols,
    Tensor col_ptr,
    bool whole,
    int64_t num_threads) {
  const char* op = "slice_rows_segments";
  check_matrix(op, indptr, indices);
  const int64_t n = rows.numel(), all_cols = indptr.numel() - 1;
  const int64_t batches = row_ptr.numel() - 1;
  STD_TORCH_CHECK(n <= INT32_MAX, op,
                  ": 'rows' must have less than 2^31 elements (got ", n, ")");
  STD_TORCH_CHECK(col_ptr.numel() == batches + 1, op,
                  ": 'col_ptr' must have as many elements as 'row_ptr'");
  STD_TORCH_CHECK(whole || !cols.has_value(), op,
                  ": 'cols' must not be given for parts of a matrix");
  const int64_t* wanted = int64_vector(op, "rows", rows, n);
  const int64_t num_cols = cols    ? cols->numel()
                           : whole ? multiply_sizes(all_cols, batches)
                                   : all_cols;
  const int64_t* row_start = read_ptr(op, "row_ptr", row_ptr, n);
  const int64_t* col_start = read_ptr(op, "col_ptr", col_ptr, num_cols);
  const int64_t* wanted_cols = int64_vector(op, "cols", cols, num_cols);
  for (int64_t b = 0; whole && !cols && b < batches; ++b)
    STD_TORCH_CHECK(col_start[b] == b * all_cols, op,
                    ": 'col_ptr' must give each batch all columns");
  Tensor out_indptr = pooled_tensor({num_cols + 1}, indptr.scalar_type(),
                                    indptr.element_size());
  Tensor out_indices, edge;
  dispatch_graph(
      op, indptr.scalar_type(), indices.scalar_type(),
      [&](auto indptr_type, auto index_type) {
        using indptr_t = decltype(indptr_type);
        using index_t = decltype(index_type);
        const int threads = threads_of(num_threads);
        RowSlices<indptr_t, index_t> of(batches);
        for (int64_t b = 0; b < batches; ++b) {
          const int64_t first = whole ? 0 : col_start[b];
          const int64_t count = col_start[b + 1] - col_start[b];
          of.matrix.push_back({indptr.const_data_ptr<indptr_t>() + first,
                               indices.const_data_ptr<index_t>(), num_rows,
                               whole ? all_cols : count, indices.numel()});
          of.slice.emplace_back(of.matrix[b], wanted + row_start[b],
                                row_start[b + 1] - row_start[b],
                                cols ? wanted_cols + col_start[b] : nullptr,
                                count, 1);
        }
        // Each batch writes where its columns begin in an array of its own.
        std::vector<std::vector<indptr_t>> begin(batches);
        std::atomic<bool> interrupted{false}, valid{true};
        parallel_items(batches, threads, [&](int64_t b) {
          begin[b].resize(col_start[b + 1] - col_start[b] + 1);
          const Status status = of.slice[b].find(begin[b].data());
          interrupted = interrupted || status == Status::kInterrupted;
          valid = valid && status != Status::kFault;
        });
        STD_TORCH_CHECK(!interrupted, op, ": interrupted");
        int64_t total = 0;
        std::vector<int64_t> before(batches);
        for (int64_t b = 0; valid && b < batches; ++b) {
          before[b] = total;
          total += begin[b].back();
        }
        STD_TORCH_CHECK(
            valid && total <= static_cast<int64_t>(
                                  std::numeric_limits<indptr_t>::max()),
            op, ": 'cols' must be in [0, ", all_cols,
            "), 'indptr' must ascend from 0 to the number of edges and be "
            "able to count the edges of the slices");
        out_indices = pooled_tensor({total}, indices.scalar_type(),
                                    indices.element_size());
        edge = pooled_vector(total);
        indptr_t* to = out_indptr.mutable_data_ptr<indptr_t>();
        index_t* index = out_indices.mutable_data_ptr<index_t>();
        to[0] = 0;
        parallel_items(batches, threads, [&](int64_t b) {
          of.slice[b].write(begin[b].data(), index + before[b],
                            edge.mutable_data_ptr<int64_t>() + before[b]);
          for (size_t v = 1; v < begin[b].size(); ++v)
            to[col_start[b] + v] = static_cast<indptr_t>(
                before[b] + static_cast<int64_t>(begin[b][v]));
          for (int64_t i = 0; i < begin[b].back(); ++i)
            index[before[b] + i] += static_cast<index_t>(row_start[b]);
        });
      });
  return {out_indptr, out_indices, edge};
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gsample, CPU, m) {
  m.impl("slice_rows_segments", TORCH_BOX(&slice_rows_segments_op));
  m.impl("sample_nodes_segments", TORCH_BOX(&sample_nodes_segments_op));
  m.impl("unique_nodes_segments", TORCH_BOX(&unique_nodes_segments_op));
  m.impl("positive_weights_segments", TORCH_BOX(&positive_weights_segments_op));
}

}  // namespace gsample
