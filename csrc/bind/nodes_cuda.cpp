// The operators that relabel and select nodes on a GPU, for one or several
// batches.
#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "../cuda/sample_nodes.h"
#include "../cuda/taken_tree.h"
#include "../cuda/unique_nodes.h"
#include "aten_cuda.h"
#include "matrix_cuda.h"

namespace gsample {

namespace {

// Unique nodes of the batches, the local id of each input, and the start of
// each batch.
struct Unique {
  Tensor node;
  Tensor local;
  Tensor ptr;
};

template <typename id_t>
Unique number_nodes(const char* op,
                    const Tensor& id,
                    const std::optional<Tensor>& ptr,
                    int64_t num_nodes,
                    bool sorted,
                    const DeviceScope& scope) {
  const int64_t n = id.numel();
  Unique out{device_vector("node", id, n), vector_like("local", id, n),
             device_vector("ptr", id, ptr ? ptr->numel() : 2)};
  DeviceReport report(id);
  UniqueNodesCuda<id_t> args{};
  args.id = id.const_data_ptr<id_t>();
  args.n = n;
  args.num_nodes = num_nodes;
  args.ptr = ptr ? device_ptr(op, "ptr", *ptr, n, id, "id") : nullptr;
  args.batches = ptr ? ptr->numel() - 1 : 1;
  args.node = out.node.mutable_data_ptr<int64_t>();
  args.local = out.local.mutable_data_ptr<id_t>();
  args.out_ptr = out.ptr.mutable_data_ptr<int64_t>();
  args.report = report.get();
  const LaunchShape shape = unique_nodes_shape(args, sorted);
  Tensor totals = device_vector("totals", id, shape.blocks);
  args.totals = totals.mutable_data_ptr<int64_t>();
  args.table.capacity = NodeTable::capacity_for(sorted ? 0 : n);
  const int64_t entries =
      NodeTable::kEntryWords * static_cast<int64_t>(args.table.capacity);
  Tensor table = device_vector("table", id, sorted ? 0 : entries);
  Tensor entry = device_vector("entry", id, sorted ? 0 : n);
  Tensor bits = device_vector("bits", id, sorted ? args.num_words() : 0);
  Tensor before = device_vector("before", id, sorted ? args.num_words() : 0);
  args.table.entry = static_cast<NodeTable::Entry*>(table.mutable_data_ptr());
  args.entry = entry.mutable_data_ptr<int64_t>();
  args.bits = static_cast<uint64_t*>(bits.mutable_data_ptr());
  args.before = before.mutable_data_ptr<int64_t>();
  unique_nodes(args, sorted, shape, scope.stream());
  const Report found = report.read(scope);
  check_report(op, found, "id", num_nodes);
  out.node = device_clone("node", out.node, found.size);
  return out;
}

Unique number_nodes(const char* op,
                    const Tensor& id,
                    const std::optional<Tensor>& ptr,
                    int64_t num_nodes,
                    bool sorted,
                    const DeviceScope& scope) {
  const bool narrow = id.scalar_type() == ScalarType::Int;
  check_vector(op, "id", id, narrow ? ScalarType::Int : ScalarType::Long);
  STD_TORCH_CHECK(id.numel() <= INT32_MAX, op,
                  ": 'id' must have less than 2^31 elements (got ", id.numel(),
                  ")");
  STD_TORCH_CHECK(num_nodes >= 0, op, ": 'num_nodes' must not be negative");
  return narrow ? number_nodes<int32_t>(op, id, ptr, num_nodes, sorted, scope)
                : number_nodes<int64_t>(op, id, ptr, num_nodes, sorted, scope);
}

// Whether one bit per node takes little memory.
bool has_few_bits(int64_t num_nodes) {
  return num_nodes <= int64_t{1} << 30;
}

// Relabels any number of nodes, in ascending order: by first occurrence in the
// sorted input.
Unique number_sorted(const char* op,
                     const Tensor& id,
                     int64_t num_nodes,
                     const DeviceScope& scope) {
  const auto [ascending, from] = stable_sort(id, scope);
  Unique out =
      number_nodes(op, ascending, std::nullopt, num_nodes, false, scope);
  out.local = index_select(out.local, stable_sort(from, scope).second);
  return out;
}

std::tuple<Tensor, Tensor, Tensor> unique_nodes_cuda(
    Tensor id,
    int64_t num_nodes,
    bool sorted,
    std::optional<Tensor> ptr) {
  const char* op = "unique_nodes";
  const DeviceScope scope(op, id);
  const int64_t batches = ptr ? std::max<int64_t>(ptr->numel() - 1, 1) : 1;
  if (num_nodes <= std::numeric_limits<int64_t>::max() / batches &&
      (!sorted || has_few_bits(num_nodes * batches))) {
    const Unique out = number_nodes(op, id, ptr, num_nodes, sorted, scope);
    return {out.node, out.local, out.ptr};
  }
  // (batch, node) exceeds 64 bits, or one bit per pair is too much memory:
  // nodes are relabelled over all batches first, then their ids within each
  // batch.
  const Unique all =
      sorted ? number_sorted(op, id, num_nodes, scope)
             : number_nodes(op, id, std::nullopt, num_nodes, false, scope);
  if (!ptr)
    return {all.node, all.local, all.ptr};
  const Unique out =
      number_nodes(op, all.local, ptr, all.node.numel(), sorted, scope);
  return {index_select(all.node, out.node), out.local, out.ptr};
}

struct Selected {
  Tensor node;
  Tensor ptr;
};

// One tree per batch, or several for all nodes.
void size_trees(SampleNodesCuda* args) {
  args->tree_words = taken_tree_words(args->num_nodes);
  args->trees = count_trees(args->batches, args->tree_words);
  args->tree_size = args->trees * args->tree_words;
  if (args->ptr == nullptr)
    return;
  args->trees = args->batches;
  args->tree_size = args->tree_words + 16 * args->batches;
}

// Selects with `args`; they lack outputs and scratch.
Selected select_nodes(const char* op,
                      SampleNodesCuda args,
                      const Tensor& like,
                      const std::vector<uint64_t>& streams,
                      const DeviceScope& scope) {
  args.batches = static_cast<int64_t>(streams.size());
  args.room = args.replace ? args.k : std::min(args.k, args.num_nodes);
  constexpr int64_t kMost = int64_t{1} << 40;
  STD_TORCH_CHECK(args.batches == 0 || args.room <= kMost / args.batches, op,
                  ": ", args.batches, " batches of ", args.room,
                  " nodes are too many");
  STD_TORCH_CHECK(
      args.ptr != nullptr || args.batches == 0 ||
          args.num_nodes <= std::numeric_limits<int64_t>::max() / args.batches,
      op, ": 'num_nodes' must be less than 2^63 for all batches together");
  const Tensor stream = to_device(like, streams, scope);
  args.streams = static_cast<const uint64_t*>(stream.const_data_ptr());
  const int64_t room = args.batches * args.room;
  const bool weighted = args.cum_weight != nullptr;
  if (weighted && !args.replace)
    size_trees(&args);
  const int64_t floyd = args.replace || weighted ? 0 : room;
  Tensor node = device_vector("node", like, room),
         slot = device_vector("slot", like, room);
  Tensor out_ptr = device_vector("ptr", like, args.batches + 1);
  Tensor size = device_vector("size", like, args.batches);
  Tensor tree = device_vector("tree", like, args.tree_size);
  Tensor drawn = device_vector("drawn", like, floyd),
         entry = device_vector("entry", like, floyd);
  args.table.capacity = NodeTable::capacity_for(floyd);
  const int64_t entries =
      NodeTable::kEntryWords * static_cast<int64_t>(args.table.capacity);
  Tensor table = device_vector("table", like, entries);
  DeviceReport report(like);
  args.node = node.mutable_data_ptr<int64_t>();
  args.out_ptr = out_ptr.mutable_data_ptr<int64_t>();
  args.report = report.get();
  args.slot = slot.mutable_data_ptr<int64_t>();
  args.size = size.mutable_data_ptr<int64_t>();
  args.tree = static_cast<uint64_t*>(tree.mutable_data_ptr());
  args.drawn = drawn.mutable_data_ptr<int64_t>();
  args.entry = entry.mutable_data_ptr<int64_t>();
  args.table.entry = static_cast<NodeTable::Entry*>(table.mutable_data_ptr());
  const LaunchShape shape = sample_nodes_shape(args);
  Tensor totals = device_vector("totals", like, shape.blocks);
  args.totals = totals.mutable_data_ptr<int64_t>();
  sample_nodes(args, shape, scope.stream());
  const Report found = report.read(scope);
  check_report(op, found, "ptr", args.num_nodes);
  return {first_items(node, found.size), out_ptr};
}

SampleNodesCuda read_counts(const char* op,
                            int64_t num_nodes,
                            int64_t k,
                            bool replace) {
  STD_TORCH_CHECK(num_nodes >= 0, op, ": 'num_nodes' must not be negative");
  STD_TORCH_CHECK(k >= 0 && k <= INT32_MAX, op,
                  ": 'k' must be in [0, 2^31) (got ", k, ")");
  SampleNodesCuda args{};
  args.num_nodes = num_nodes;
  args.k = k;
  args.replace = replace;
  return args;
}

std::tuple<Tensor, Tensor> sample_nodes_cuda(int64_t num_nodes,
                                             int64_t k,
                                             Tensor key,
                                             int64_t call_id,
                                             std::optional<Tensor> cum_weight,
                                             bool replace,
                                             std::optional<Tensor> ptr,
                                             std::optional<Tensor> device_of) {
  const char* op = "sample_nodes";
  SampleNodesCuda args = read_counts(op, num_nodes, k, replace);
  STD_TORCH_CHECK(
      ptr.has_value() || cum_weight.has_value() || device_of.has_value(), op,
      ": 'ptr', 'cum_weight' or 'device_of' must be given on a GPU");
  const Tensor& like = ptr ? *ptr : cum_weight ? *cum_weight : *device_of;
  const int64_t batches = ptr ? ptr->numel() - 1 : num_rows_of(key);
  args.ptr =
      ptr ? device_ptr(op, "ptr", *ptr, num_nodes, like, "ptr") : nullptr;
  args.cum_weight =
      device_int64(op, "cum_weight", cum_weight,
                   cum_weight_size(num_nodes, ptr ? batches : 1), like, "ptr");
  const DeviceScope scope(op, like);
  const Selected out = select_nodes(
      op, args, like, read_streams(op, key, batches, call_id, kSampleNodes),
      scope);
  return {out.node, out.ptr};
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(GSAMPLE_CUDA_LIBRARY, GSAMPLE_CUDA_KEY, m) {
  m.impl("sample_nodes", TORCH_BOX(&sample_nodes_cuda));
  m.impl("unique_nodes", TORCH_BOX(&unique_nodes_cuda));
}

}  // namespace gsample
