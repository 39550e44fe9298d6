#include "output_pool.h"

#include <pthread.h>

#include <map>
#include <mutex>
#include <vector>

#include "../cpu/buffer.h"
#include "check.h"

namespace gsample {

namespace {

constexpr size_t kSmall = size_t{1} << 16;      // malloc is as good below
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

  void* allocate(size_t bytes) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      std::vector<void*>& idle = idle_[bytes];
      if (!idle.empty()) {
        void* block = idle.back();
        idle.pop_back();
        idle_bytes_ -= bytes;
        return block;
      }
    }
    return allocate_pages(bytes);
  }

  void release(void* block, size_t bytes) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (idle_bytes_ + bytes <= kMaxIdle) {
        idle_[bytes].push_back(block);
        idle_bytes_ += bytes;
        return;
      }
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
  std::map<size_t, std::vector<void*>> idle_;
  size_t idle_bytes_ = 0;
};

}  // namespace

Tensor pooled_vector(int64_t size) {
  if (size * sizeof(int64_t) < kSmall)
    return torch::stable::empty({size}, ScalarType::Long);
  const size_t bytes = block_size(size * sizeof(int64_t));
  void* block = OutputPool::get().allocate(bytes);
  return torch::stable::from_blob(
      block, {size}, {1}, torch::stable::Device("cpu"), ScalarType::Long,
      [bytes](void* data) { OutputPool::get().release(data, bytes); });
}

}  // namespace gsample
