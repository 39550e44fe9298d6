#include "sample_by_kernel.h"

#include <algorithm>
#include <atomic>

#include "entries.h"
#include "fix_weights.h"
#include "prefetch.h"

namespace gsample {

namespace {

constexpr int64_t kGrain = 256;        // fewest columns of a task
constexpr int kLanes = 64;             // most columns of a block
constexpr int64_t kBlockEdges = 2048;  // in a block of several columns
constexpr int64_t kInvalid = -2;

// The selection of select_weighted_*() for one slot: the first weight whose
// cumulative sum exceeds the draw; -1 if no weight is positive, -2 if one is
// negative or not finite. `fixed` [size] and `sums` [size / kWeightBlock + 1]
// are scratch.
template <typename weight_t>
inline __attribute__((always_inline)) int64_t choose(const weight_t* weight,
                                                     int64_t size,
                                                     uint64_t draw,
                                                     uint64_t* fixed,
                                                     uint64_t* sums) {
  const double max_weight = find_range(weight, size).most;
  if (max_weight < 0)
    return kInvalid;
  const int shift = fixed_point_shift(max_weight, size);
  uint64_t total = 0;
  for (int64_t first = 0; first < size; first += kWeightBlock) {
    const int64_t last = std::min(first + kWeightBlock, size);
    fix_block(weight + first, last - first, shift, fixed + first);
    uint64_t sum = 0;
    for (int64_t j = first; j < last; ++j)
      sum += fixed[j];
    total += sums[first / kWeightBlock] = sum;
  }
  if (total == 0)
    return -1;
  uint64_t r = bounded(draw, total);
  int64_t j = 0;
  for (; j + kWeightBlock < size && r >= sums[j / kWeightBlock];
       j += kWeightBlock)
    r -= sums[j / kWeightBlock];
  for (; j < size - 1 && r >= fixed[j]; ++j)
    r -= fixed[j];
  return j;
}

#if defined(__x86_64__)
template <typename weight_t>
__attribute__((target("avx2"))) int64_t choose_avx2(const weight_t* weight,
                                                    int64_t size,
                                                    uint64_t draw,
                                                    uint64_t* fixed,
                                                    uint64_t* sums) {
  return choose(weight, size, draw, fixed, sums);
}
#endif

template <typename weight_t>
int64_t choose_weight(const weight_t* weight,
                      int64_t size,
                      uint64_t draw,
                      uint64_t* fixed,
                      uint64_t* sums) {
#if defined(__x86_64__)
  if (has_avx2())
    return choose_avx2(weight, size, draw, fixed, sums);
#endif
  return choose(weight, size, draw, fixed, sums);
}

// The columns of one thread, in blocks whose weights stay in the cache.
template <typename indptr_t, typename index_t>
class KernelSampler {
 public:
  using Args = SampleByKernelArgs<indptr_t, index_t>;

  explicit KernelSampler(const Args& args)
      : a_(args),
        entries_(args.matrix.num_cols / 16 + 1),
        copies_(args.operands.size()),
        data_(args.operands.size()),
        sizes_(args.operands.size() + 2) {}

  KernelFault run(int64_t first, int64_t last, int64_t* edge) {
    int64_t i = first;
    while (i < last) {
      const int lanes = take(i, last);
      if (lanes == 0 || !weigh(i, lanes))
        return KernelFault::kRange;
      if (!select(i, lanes, edge))
        return KernelFault::kWeight;
      i += lanes;
    }
    return KernelFault::kNone;
  }

 private:
  // Looks up the columns of a block; returns their number.
  int take(int64_t i, int64_t last) {
    int lanes = 0;
    ptr_[0] = 0;
    for (; lanes < kLanes && i + lanes < last; ++lanes) {
      if (i + lanes + kLanes < a_.n)
        prefetch_item(a_.matrix.indptr, a_.cols[i + lanes + kLanes]);
      const int64_t v = a_.cols[i + lanes];
      if (!is_column(a_.matrix, v))
        return 0;
      const int64_t begin = a_.matrix.indptr[v];
      const int64_t size = a_.matrix.indptr[v + 1] - begin;
      if (lanes > 0 && ptr_[lanes] + size > kBlockEdges)
        break;
      begin_[lanes] = begin;
      ptr_[lanes + 1] = static_cast<indptr_t>(ptr_[lanes] + size);
    }
    return lanes;
  }

  // Prefetches the rows of column cols[i], if it has any.
  void prefetch(const int64_t* cols, int64_t i) const {
    const Matrix<indptr_t, index_t>& m = a_.matrix;
    if (i < a_.n && is_column(m, cols[i])) {
      prefetch_item(m.indices, m.indptr[cols[i]]);
      prefetch_item(m.indices, int64_t{m.indptr[cols[i] + 1]} - 1);
    }
  }

  // Computes the weights of a block.
  bool weigh(int64_t i, int lanes) {
    const int64_t edges = ptr_[lanes];
    if (a_.before != nullptr && !search(i, lanes))
      return false;
    sizes_[0] = edges;
    for (size_t k = 0; k < a_.operands.size(); ++k) {
      const RoleOperand& operand = a_.operands[k];
      const int64_t rows[kRoles] = {operand.rows, lanes, edges, edges,
                                    lanes + 1};
      sizes_[k + 1] = rows[static_cast<int>(operand.role)];
      data_[k] = place(operand, copies_[k], i, lanes);
    }
    weights_.reserve((edges + 1) * sizeof(double));
    void* const out = weights_.data();
    const int64_t end = a_.kernel->pointers >= 0 ? lanes : edges;
    return a_.kernel->run(0, end, sizes_.data(), nullptr, data_.data(), &out) ==
           0;
  }

  // The address of a block's operand for the kernel.
  const void* place(const RoleOperand& operand,
                    Buffer<char>& copy,
                    int64_t i,
                    int lanes) {
    const char* const data = operand.data;
    const int64_t bytes = operand.bytes;
    if (operand.role == Role::kWhole)
      return data;
    if (operand.role == Role::kColumn)
      return data + i * bytes;
    if (operand.role == Role::kFound)
      return found_.data();
    if (operand.role == Role::kPointers)
      return ptr_;
    return gather(data, bytes, lanes, copy);
  }

  // The rows of a block's edges: a copy, if it has several columns.
  const char* gather(const char* data,
                     int64_t bytes,
                     int lanes,
                     Buffer<char>& copy) const {
    if (lanes == 1)
      return data + begin_[0] * bytes;
    copy.reserve((ptr_[lanes] + 1) * bytes);
    for (int lane = 0; lane < lanes; ++lane)
      std::copy_n(data + begin_[lane] * bytes,
                  (ptr_[lane + 1] - ptr_[lane]) * bytes,
                  copy.data() + ptr_[lane] * bytes);
    return copy.data();
  }

  // Searches the candidates in the columns `before`.
  bool search(int64_t i, int lanes) {
    const Matrix<indptr_t, index_t>& m = a_.matrix;
    found_.reserve(ptr_[lanes] + 1);
    const index_t* const all = reinterpret_cast<const index_t*>(
        gather(reinterpret_cast<const char*>(m.indices), sizeof(index_t), lanes,
               rows_));
    for (int lane = 0; lane < lanes; ++lane) {
      if (i + lane + 2 * kAhead < a_.n)
        prefetch_item(m.indptr, a_.before[i + lane + 2 * kAhead]);
      prefetch(a_.before, i + lane + kAhead);
      const int64_t v = a_.before[i + lane];
      if (!is_column(m, v))
        return false;
      const index_t* begin = m.indices + m.indptr[v];
      const index_t* end = m.indices + m.indptr[v + 1];
      const index_t* rows = all + ptr_[lane];
      const int64_t size = ptr_[lane + 1] - ptr_[lane];
      if (a_.checks_rows && !(are_rows(begin, end, m.num_rows) &&
                              are_rows(rows, rows + size, m.num_rows)))
        return false;
      entries_.find(begin, end, rows, size, found_.data() + ptr_[lane]);
    }
    return true;
  }

  // Returns false if a weight is invalid.
  bool select(int64_t i, int lanes, int64_t* edge) {
    uint64_t id[kLanes] = {}, root[kLanes] = {}, draw[2 * kLanes];
    for (int lane = 0; lane < lanes; ++lane)
      id[lane] =
          static_cast<uint64_t>(a_.id != nullptr ? a_.id[i + lane] : i + lane);
    draw_lanes(a_.stream, root, id, lanes, 1, kLanes, draw);
    const bool wide = a_.kernel->outputs[0].type == DataType::kDouble;
    for (int lane = 0; lane < lanes; ++lane) {
      const int64_t size = ptr_[lane + 1] - ptr_[lane];
      const int64_t found = wide ? choose<double>(ptr_[lane], size, draw[lane])
                                 : choose<float>(ptr_[lane], size, draw[lane]);
      if (found == kInvalid)
        return false;
      edge[i + lane] = found < 0 ? -1 : begin_[lane] + found;
    }
    return true;
  }

  template <typename weight_t>
  int64_t choose(int64_t begin, int64_t size, uint64_t draw) {
    fixed_.reserve(size + 1);
    sums_.reserve(size / kWeightBlock + 1);
    return choose_weight(
        reinterpret_cast<const weight_t*>(weights_.data()) + begin, size, draw,
        fixed_.data(), sums_.data());
  }

  static constexpr int64_t kAhead = 8;  // columns whose rows are prefetched

  const Args& a_;
  Entries<index_t> entries_;
  std::vector<Buffer<char>> copies_;
  std::vector<const void*> data_;
  std::vector<int64_t> sizes_;  // edges, rows of each operand, none
  Buffer<char> rows_, weights_;
  Buffer<bool> found_;
  Buffer<uint64_t> fixed_, sums_;
  int64_t begin_[kLanes];
  indptr_t ptr_[kLanes + 1];
};

}  // namespace

template <typename indptr_t, typename index_t>
Status sample_by_kernel(const SampleByKernelArgs<indptr_t, index_t>& args,
                        int64_t* edge,
                        KernelFault* fault) {
  std::atomic<KernelFault> found{KernelFault::kNone};
  Interrupt interrupt;
  parallel_ranges(args.n, kGrain, args.threads, [&](int64_t i, int64_t last) {
    KernelSampler<indptr_t, index_t> sampler(args);
    for (; i < last && !interrupt.stopped(); i += kGrain) {
      if (found != KernelFault::kNone)
        return;
      const KernelFault now = sampler.run(i, std::min(last, i + kGrain), edge);
      if (now != KernelFault::kNone)
        found = now;
      interrupt.poll();
    }
  });
  *fault = found;
  if (interrupt.stopped())
    return Status::kInterrupted;
  return found == KernelFault::kNone ? Status::kDone : Status::kFault;
}

#define GSAMPLE_SAMPLE_BY_KERNEL(indptr_t, index_t) \
  template Status sample_by_kernel(                 \
      const SampleByKernelArgs<indptr_t, index_t>&, int64_t*, KernelFault*)
GSAMPLE_SAMPLE_BY_KERNEL(int32_t, int32_t);
GSAMPLE_SAMPLE_BY_KERNEL(int64_t, int32_t);
GSAMPLE_SAMPLE_BY_KERNEL(int64_t, int64_t);
#undef GSAMPLE_SAMPLE_BY_KERNEL

}  // namespace gsample
