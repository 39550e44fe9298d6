// Device memory for outputs and scratch of an operator. All of it is allocated
// here, so that all out-of-memory errors read alike.
#pragma once

#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "sizes.h"

namespace gsample {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// An allocation failed; the text says what was requested.
class NoMemory : public std::runtime_error {
 public:
  NoMemory(std::string op, std::string asked, std::string cause);
  // The same for a whole sample with room for m and n items.
  NoMemory in_all(int64_t m,
                  const char* of_m,
                  int64_t n,
                  const char* of_n,
                  int64_t words) const;

 private:
  NoMemory(const std::string& text, const NoMemory& of);

  std::string op_;
  std::string asked_;
  std::string cause_;  // torch's error text, or empty
};

// The operator call that owns the memory, and the amount it allocated. The
// innermost scope of a thread allocates.
class MemoryScope {
 public:
  explicit MemoryScope(const char* op);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

  static MemoryScope* current();
  const char* op() const { return op_; }
  int64_t bytes() const { return bytes_; }
  void add(int64_t bytes) { bytes_ += bytes; }

 private:
  const char* const op_;
  MemoryScope* const outer_;
  int64_t bytes_ = 0;
};

// Raises NoMemory if the call that threw `error` ran out of memory, otherwise
// an error that names the fault.
[[noreturn]] void raise_lack(const char* what,
                             int64_t elements,
                             int64_t bytes,
                             const std::exception& error);

// Lets tests run the emulated device out of memory.
#if defined(GSAMPLE_EMULATE)
void take_memory(int64_t bytes);
#else
inline void take_memory(int64_t) {}
#endif

// Returns the result of `make`, which allocates elements on the device.
template <typename make_t>
auto allocate(const char* what,
              int64_t elements,
              int64_t element_bytes,
              const make_t& make) {
  const int64_t bytes = multiply_sizes(elements, element_bytes);
  try {
    take_memory(bytes);
    auto out = make();
    if (MemoryScope* scope = MemoryScope::current())
      scope->add(bytes);
    return out;
  } catch (const std::exception& error) {
    raise_lack(what, elements, bytes, error);
  }
}

// An uninitialised tensor on the device of `like`; errors call it `what`.
Tensor device_tensor(const char* what,
                     const Tensor& like,
                     const std::vector<int64_t>& sizes,
                     ScalarType dtype,
                     int64_t element_bytes);

// A vector of 32- or 64-bit integers.
Tensor device_vector(const char* what,
                     const Tensor& like,
                     int64_t size,
                     ScalarType dtype = ScalarType::Long);

// int64 zeros.
Tensor device_zeros(const char* what, const Tensor& like, int64_t size);

// A copy of the start of a vector, which does not hold the memory of the rest.
Tensor device_clone(const char* what, const Tensor& tensor, int64_t size);

}  // namespace gsample
