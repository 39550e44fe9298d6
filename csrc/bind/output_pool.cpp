#include "output_pool.h"

#include <pthread.h>

#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "../cpu/buffer.h"
#include "check.h"

namespace gsample {

namespace {

constexpr int64_t kSmall = 1 << 16;             // malloc is as good below
constexpr size_t kMaxIdle = size_t{256} << 20;  // memory kept for later

// Blocks come in eight sizes for each power of two: at most 1/8 is wasted.
size_t block_size(size_t bytes) {
  const int log2 = 63 - __builtin_clzll(bytes);
  const size_t step = size_t{1} << (log2 - 3);
  return (bytes + step - 1) / step * step;
}

class OutputPool {
 public:
  // Lives as long as the process: tensors may be freed while it exits.
  static OutputPool& get() {
    static OutputPool* pool = new OutputPool();
    return *pool;
  }

  // Returns a block of at least `bytes`, and its size: batches vary a little,
  // so a block that is up to a quarter too large will do.
  std::pair<void*, size_t> allocate(size_t bytes) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = idle_.lower_bound(bytes);
      if (found != idle_.end() && found->first <= bytes + bytes / 4) {
        const auto [size, block] = *found;
        idle_.erase(found);
        idle_bytes_ -= size;
        return {block, size};
      }
    }
    return {allocate_pages(bytes), bytes};
  }

  // Tensors call it when they are freed, where nothing may be thrown.
  void release(void* block, size_t bytes) noexcept {
    try {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (idle_bytes_ + bytes <= kMaxIdle) {
        idle_.emplace(bytes, block);
        idle_bytes_ += bytes;
        return;
      }
    } catch (const std::bad_alloc&) {  // the pool does not remember it
    }
    free(block);
  }

 private:
  // A forked worker must not inherit a mutex that another thread holds.
  OutputPool() {
    pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); },
                   [] { get().mutex_.unlock(); });
  }

  std::mutex mutex_;
  std::multimap<size_t, void*> idle_;
  size_t idle_bytes_ = 0;
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
  // from_blob() ends the process where it throws: what it would refuse must
  // not come to it.
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
