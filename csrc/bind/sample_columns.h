// The operator sample_columns on all devices: checks, with one wording of
// errors, and arguments.
#pragma once

#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "check.h"

namespace gsample {

constexpr const char* kColumnsOp = "sample_columns";

using Optional = const std::optional<Tensor>&;

inline void check_columns(const Tensor& indptr, int64_t k, bool replace) {
  check_vector(kColumnsOp, "indptr", indptr, indptr.scalar_type());
  STD_TORCH_CHECK(indptr.numel() > 0, kColumnsOp,
                  ": 'indptr' must not be empty");
  STD_TORCH_CHECK(indptr.scalar_type() == ScalarType::Int ||
                      indptr.scalar_type() == ScalarType::Long,
                  kColumnsOp, ": 'indptr' must be int32 or int64");
  STD_TORCH_CHECK(k >= -1, kColumnsOp, ": 'k' must be -1 or more (got ", k,
                  ")");
  STD_TORCH_CHECK(!replace || k <= INT32_MAX, kColumnsOp,
                  ": 'k' must be less than 2^31 with replacement (got ", k,
                  ")");
}

// The options of a hop: [num_threads, relation, last] and an optional time
// window.
struct HopOptions {
  explicit HopOptions(const std::optional<std::vector<int64_t>>& options) {
    if (!options)
      return;
    const std::vector<int64_t>& given = *options;
    STD_TORCH_CHECK(given.size() == 3 || given.size() == 4, kColumnsOp,
                    ": 'options' must be num_threads, relation, last and "
                    "time_window (got ",
                    given.size(), " numbers)");
    STD_TORCH_CHECK(given[1] >= 0 && given[1] < kMaxRelations, kColumnsOp,
                    ": 'relation' must be in [0, 65280) (got ", given[1], ")");
    STD_TORCH_CHECK(given.size() == 3 || given[3] >= 0, kColumnsOp,
                    ": 'time_window' must not be negative");
    num_threads = given[0];
    relation = static_cast<uint32_t>(given[1]);
    last = given[2] != 0;
    if (given.size() == 4)
      time_window = given[3];
  }

  int64_t num_threads = 0;
  uint32_t relation = 0;
  bool last = false;
  std::optional<int64_t> time_window;
};

// Properties of columns that are frontier nodes: the first edge of each, its
// tree and, with edge times, its time.
struct HopColumns {
  explicit HopColumns(const std::optional<std::vector<Tensor>>& columns) {
    if (!columns)
      return;
    const std::vector<Tensor>& given = *columns;
    STD_TORCH_CHECK(given.size() == 2 || given.size() == 4, kColumnsOp,
                    ": 'columns' must be start, root and times of edges and "
                    "columns (got ",
                    given.size(), " tensors)");
    if (given[0].numel() > 0)
      start = given[0];
    if (given[1].numel() > 0)
      root = given[1];
    if (given.size() == 4) {
      edge_time = given[2];
      column_time = given[3];
    }
  }

  std::optional<Tensor> start, root, edge_time, column_time;
};

// No result may have more edges than `indptr_t` or a tensor can hold.
template <typename indptr_t>
void check_result(int64_t n, int64_t k, bool replace) {
  constexpr bool kNarrow = sizeof(indptr_t) == 4;
  constexpr int64_t kMost = kNarrow ? INT32_MAX : INT64_MAX / 16;
  const bool fits = !replace || k <= 0 || n <= kMost / k;
  STD_TORCH_CHECK(fits || !kNarrow, kColumnsOp, ": 'indptr' must be int64 for ",
                  n, " columns of ", k, " edges");
  STD_TORCH_CHECK(fits, kColumnsOp, ": ", n, " columns of ", k,
                  " edges are too many");
}

// `device_t` returns addresses for the kernels of a device: of the relation
// (graph), of columns (vector), of batches (pointers).
template <typename device_t>
std::tuple<Tensor, Tensor> sample_columns(
    Tensor indptr,
    int64_t k,
    Tensor key,
    int64_t call_id,
    std::optional<Tensor> cols,
    std::optional<Tensor> id,
    std::optional<Tensor> cum_weight,
    bool replace,
    std::optional<Tensor> ptr,
    std::optional<std::vector<Tensor>> columns,
    std::optional<std::vector<int64_t>> options) {
  check_columns(indptr, k, replace);
  const HopOptions hop(options);
  const HopColumns of(columns);
  const int64_t all_cols = indptr.numel() - 1;
  const int64_t n = cols ? cols->numel() : all_cols;
  const device_t device(cols ? *cols : indptr, cols ? "cols" : "indptr");
  std::vector<uint64_t> streams;
  if (ptr)
    streams =
        read_streams(kColumnsOp, key, ptr->numel() - 1, call_id, hop.relation);
  const uint64_t stream =
      ptr ? 0 : read_stream(kColumnsOp, key, call_id, hop.relation);
  const auto call = [&](auto indptr_type) {
    using indptr_t = decltype(indptr_type);
    check_result<indptr_t>(n, k, replace);
    SampleColumnsArgs<indptr_t> args{};
    args.edges.indptr = device.template graph<indptr_t>(indptr);
    const int64_t num_edges = args.edges.num_edges =
        device.num_edges(args.edges.indptr, all_cols, cum_weight, of.edge_time);
    const auto graph = [&](const char* name, Optional tensor, int64_t size) {
      int64_vector(kColumnsOp, name, tensor, size);
      return tensor ? device.template graph<int64_t>(*tensor) : nullptr;
    };
    const auto vector = [&](const char* name, Optional tensor) {
      return device.vector(name, tensor, n);
    };
    args.edges.cum_weight =
        graph("cum_weight", cum_weight, cum_weight_size(num_edges, all_cols));
    args.edges.edge_time = graph("edge_time", of.edge_time, num_edges);
    args.edges.fanouts = &k;
    args.all_cols = all_cols;
    args.n = n;
    args.cols = vector("cols", cols);
    args.id = vector("id", id);
    args.root = vector("root", of.root);
    args.column_time = vector("column_time", of.column_time);
    args.start = vector("start", of.start);
    args.ptr = ptr ? device.pointers(*ptr, n) : nullptr;
    args.streams = ptr ? streams.data() : &stream;
    args.batches = ptr ? ptr->numel() - 1 : 1;
    args.k = k;
    args.options.replace = replace;
    args.options.last = hop.last && of.edge_time.has_value();
    args.options.has_window = hop.time_window.has_value();
    args.options.window = hop.time_window.value_or(0);
    args.options.num_threads = device.threads(hop.num_threads);
    return device.select(args, indptr.scalar_type());
  };
  return indptr.scalar_type() == ScalarType::Int ? call(int32_t{})
                                                 : call(int64_t{});
}

}  // namespace gsample
