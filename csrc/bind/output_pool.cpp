#include "output_pool.h"

#include <stdint.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "../cpu/buffer.h"
#include "check.h"

namespace gsample {

namespace {

constexpr int64_t kSmall = 1 << 16;  // malloc is as fast below
// Memory for reuse. The features of one batch may take hundreds of MiB, and two
// batches are prefetched: idle memory above kMaxHot stays only until the
// operating system needs it.
constexpr size_t kMaxHot = size_t{256} << 20;
constexpr size_t kMaxIdle = size_t{2} << 30;

// Blocks come in eight sizes for each power of two: at most 1/8 is wasted.
size_t block_size(size_t bytes) {
  const int log2 = 63 - __builtin_clzll(bytes);
  const size_t step = size_t{1} << (log2 - 3);
  return (bytes + step - 1) / step * step;
}

class OutputPool {
 public:
  // Never destroyed: tensors may be freed while the process exits.
  static OutputPool& get() {
    static OutputPool* pool = new OutputPool();
    return *pool;
  }

  // Returns a block of at least `bytes`, and its size. Batches vary a little,
  // so the block may be a quarter too large.
  std::pair<void*, size_t> allocate(size_t bytes) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = idle_.lower_bound(bytes);
      if (found != idle_.end() && found->first <= bytes + bytes / 4) {
        const std::pair<void*, size_t> block{found->second.data, found->first};
        remove(found);
        return block;
      }
    }
    return {allocate_pages(bytes), bytes};
  }

  // Called when a tensor is freed, where exceptions are not allowed. Memory is
  // lent to the system before another thread may get it. The longest idle
  // blocks are evicted first.
  void release(void* block, size_t bytes) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (bytes > kMaxIdle ||
        (idle_bytes_ + bytes > kMaxHot && !lend(block, bytes))) {
      free_aligned(block);
      return;
    }
    while (idle_bytes_ + bytes > kMaxIdle)
      free_aligned(
          remove(std::min_element(idle_.begin(), idle_.end(), is_older)));
    try {
      idle_.emplace(bytes, Idle{block, ++releases_});
      idle_bytes_ += bytes;
    } catch (const std::bad_alloc&) {  // the pool forgets the block
      free_aligned(block);
    }
  }

 private:
  // A forked worker must not inherit a mutex that another thread holds.
  OutputPool() {
    at_fork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); },
            [] { get().mutex_.unlock(); });
  }

  struct Idle {
    void* data;
    uint64_t when;
  };
  using Blocks = std::multimap<size_t, Idle>;  // by size

  static bool is_older(const Blocks::value_type& a,
                       const Blocks::value_type& b) {
    return a.second.when < b.second.when;
  }

  // Lends the whole pages of a block to the system.
  static bool lend(void* block, size_t bytes) {
    constexpr uintptr_t kPage = 1 << 16;  // no smaller than any system's
    const uintptr_t data = reinterpret_cast<uintptr_t>(block);
    const uintptr_t begin = (data + kPage - 1) & ~(kPage - 1);
    const uintptr_t end = (data + bytes) & ~(kPage - 1);
    return begin >= end ||
           lend_pages(reinterpret_cast<void*>(begin), end - begin);
  }

  void* remove(Blocks::iterator block) {
    void* data = block->second.data;
    idle_bytes_ -= block->first;
    idle_.erase(block);
    return data;
  }

  std::mutex mutex_;
  Blocks idle_;
  size_t idle_bytes_ = 0;
  uint64_t releases_ = 0;
};

}  // namespace

Tensor pooled_tensor(torch::headeronly::IntHeaderOnlyArrayRef sizes,
                     ScalarType dtype,
                     int64_t item_size) {
  int64_t items = 1, stride = 1;
  std::vector<int64_t> strides(sizes.size());
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride = multiply_sizes(stride, std::max<int64_t>(sizes[i], 1));
    items = multiply_sizes(items, sizes[i]);
  }
  const int64_t needed = multiply_sizes(items, item_size);
  // from_blob() ends the process where it throws: refuse here what it would
  // refuse.
  if (needed < 0 || needed == INT64_MAX)
    throw std::bad_alloc();
  if (needed < kSmall)
    return empty_strided(static_cast<int64_t>(sizes.size()), sizes.data(),
                         strides.data(), dtype);
  const auto [block, bytes] =
      OutputPool::get().allocate(block_size(static_cast<size_t>(needed)));
  return torch::stable::from_blob(
      block, sizes, strides, torch::stable::Device("cpu"), dtype,
      [bytes = bytes](void* data) { OutputPool::get().release(data, bytes); });
}

Tensor pooled_vector(int64_t size) {
  return pooled_tensor({size}, ScalarType::Long, sizeof(int64_t));
}

}  // namespace gsample

// For Python, see torch_gsample/storage/pooled.py: returns memory of at least
// `bytes`, or null, and writes its size; then its release.
extern "C" __attribute__((visibility("default"))) void* gsample_take_memory(
    int64_t* bytes) {
  try {
    const auto [block, size] = gsample::OutputPool::get().allocate(
        gsample::block_size(static_cast<size_t>(*bytes)));
    *bytes = static_cast<int64_t>(size);
    return block;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

extern "C" __attribute__((visibility("default"))) void gsample_give_memory(
    void* block,
    int64_t bytes) {
  gsample::OutputPool::get().release(block, static_cast<size_t>(bytes));
}
