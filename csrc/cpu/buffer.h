// Growable, uninitialised memory that is reused between calls.
#pragma once

#include <string.h>

#include <algorithm>
#include <new>
#include <utility>

#include "platform.h"

namespace gsample {

// Advises the system about the 2-MiB pages of a range.
inline void advise_pages(void* data, size_t bytes, int advice) {
  constexpr uintptr_t kPage = uintptr_t{1} << 21;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first = (begin + kPage - 1) & ~(kPage - 1);
  const uintptr_t last = (begin + bytes) & ~(kPage - 1);
  if (first < last)
    advise(reinterpret_cast<void*>(first), last - first, advice);
}

// Requests 2-MiB pages: random access then misses the TLB far less often.
inline void advise_huge_pages(void* data, size_t bytes) {
  advise_pages(data, bytes, kHugePages);
}

// Moves memory that is already written to such pages, since Linux 6.1.
inline void collapse_pages(void* data, size_t bytes) {
  advise_pages(data, bytes, kCollapse);
}

// Aligned memory, on huge pages if it fills some. Release with free_aligned().
inline void* allocate_pages(size_t bytes) {
  constexpr size_t kLarge = size_t{4} << 20;
  const size_t align = bytes < kLarge ? 64 : size_t{2} << 20;
  bytes = (bytes + align - 1) / align * align;
  void* data = allocate_aligned(align, bytes);
  if (data == nullptr)
    throw std::bad_alloc();
  if (bytes >= kLarge)
    advise_huge_pages(data, bytes);
  return data;
}

template <typename T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  ~Buffer() { free_aligned(data_); }

  void swap(Buffer& other) {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  size_t capacity() const { return capacity_; }

  // Capacity for `size` items; the first `keep` survive.
  void reserve(size_t size, size_t keep = 0) {
    if (size <= capacity_)
      return;
    const size_t capacity = std::max(size, capacity_ + capacity_ / 2);
    T* data = allocate(capacity);
    if (keep > 0)
      memcpy(data, data_, keep * sizeof(T));
    free_aligned(data_);
    data_ = data;
    capacity_ = capacity;
  }

 private:
  static T* allocate(size_t capacity) {
    return static_cast<T*>(allocate_pages(capacity * sizeof(T)));
  }

  T* data_ = nullptr;
  size_t capacity_ = 0;
};

}  // namespace gsample
