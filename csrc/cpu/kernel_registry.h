// Kernels that were generated, compiled and loaded: kept as long as the process
// lives, and found by their numbers.
#pragma once

#include <dlfcn.h>
#include <stdint.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <string>
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

// Opens the library that a descriptor is open on. dlopen() takes libraries of
// one name for the same one, and descriptors are used again: each call spells
// the name in another way.
inline void* open_library(int64_t descriptor) {
  static std::atomic<uint64_t> calls{0};
  std::string path = "/proc/self/fd/";
  for (uint64_t rest = ++calls; rest > 0; rest >>= 1)
    path += (rest & 1) != 0 ? "./" : "/";
  path += std::to_string(descriptor);
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

// The function of such a library; null if there is no library or function.
template <typename Function>
Function open_function(int64_t descriptor, const char* name) {
  void* library = open_library(descriptor);
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
