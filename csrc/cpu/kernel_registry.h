// Kernels that were generated, compiled and loaded: kept as long as the process
// lives, and found by their numbers.
#pragma once

#include <dlfcn.h>
#include <stdint.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <utility>

namespace gsample {

template <typename Kernel>
class KernelRegistry {
 public:
  static KernelRegistry& get() {
    static auto* all = new KernelRegistry();  // for threads that run on at exit
    return *all;
  }

  // Returns its number.
  int64_t add(Kernel kernel) {
    const std::lock_guard<std::mutex> lock(mutex_);
    kernels_.push_back(std::move(kernel));
    return static_cast<int64_t>(kernels_.size()) - 1;
  }

  // Null if there is none of a number.
  const Kernel* find(int64_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const int64_t size = static_cast<int64_t>(kernels_.size());
    return number >= 0 && number < size ? &kernels_[number] : nullptr;
  }

 private:
  std::mutex mutex_;
  std::deque<Kernel> kernels_;  // elements stay where they are
};

// The function of a library; null if there is no such library or function.
template <typename Function>
Function open_function(const char* path, const char* name) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return nullptr;
  return reinterpret_cast<Function>(dlsym(library, name));
}

// Keeps the greatest of what kernels return in several threads.
inline void keep_worst(std::atomic<int>& worst, int status) {
  int known = worst.load();
  while (status > known && !worst.compare_exchange_weak(known, status)) {
  }
}

}  // namespace gsample
