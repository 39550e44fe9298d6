// cuda::atomic_ref over all of the device, for the words and operations that
// kernels use. In PTX, since nvcc takes longer to read <cuda/atomic> than to
// compile most kernels.
#pragma once

#include <stdint.h>

namespace gsample {

enum Order { kRelaxed, kAcquire, kRelease, kAcqRel };

template <typename value_t>
class Atomic;

// Runs an instruction and returns `old`, its output.
#define GSAMPLE_RUN(instruction, reg, ...)                             \
  do {                                                                 \
    asm volatile(instruction : "=" reg(old) : __VA_ARGS__ : "memory"); \
    return old;                                                        \
  } while (false)

// The order is known where a function is inlined.
#define GSAMPLE_ATOM(operation, reg, ...)                           \
  switch (order) {                                                  \
    case kRelaxed:                                                  \
      GSAMPLE_RUN("atom.relaxed.gpu." operation, reg, __VA_ARGS__); \
    case kAcquire:                                                  \
      GSAMPLE_RUN("atom.acquire.gpu." operation, reg, __VA_ARGS__); \
    case kRelease:                                                  \
      GSAMPLE_RUN("atom.release.gpu." operation, reg, __VA_ARGS__); \
    default:                                                        \
      GSAMPLE_RUN("atom.acq_rel.gpu." operation, reg, __VA_ARGS__); \
  }

#define GSAMPLE_OPERATION(name, operation, value_t, reg)                      \
  __device__ __forceinline__ value_t name(value_t value, Order order) const { \
    value_t old;                                                              \
    GSAMPLE_ATOM(operation " %0, [%1], %2;", reg, "l"(address_), reg(value)); \
  }

// `bits`, `sum` and `number` are PTX's types of words, of sums that wrap and of
// compared numbers.
#define GSAMPLE_WORD(value_t, reg, bits, sum, number)                         \
  template <>                                                                 \
  class Atomic<value_t> {                                                     \
   public:                                                                    \
    __device__ __forceinline__ explicit Atomic(value_t& value)                \
        : address_(&value) {}                                                 \
                                                                              \
    __device__ __forceinline__ value_t load(Order order) const {              \
      value_t old;                                                            \
      if (order == kRelaxed) {                                                \
        GSAMPLE_RUN("ld.relaxed.gpu." bits " %0, [%1];", reg, "l"(address_)); \
      }                                                                       \
      GSAMPLE_RUN("ld.acquire.gpu." bits " %0, [%1];", reg, "l"(address_));   \
    }                                                                         \
    __device__ __forceinline__ void store(value_t value, Order order) const { \
      if (order == kRelaxed) {                                                \
        asm volatile("st.relaxed.gpu." bits " [%0], %1;" ::"l"(address_),     \
                     reg(value)                                               \
                     : "memory");                                             \
      } else {                                                                \
        asm volatile("st.release.gpu." bits " [%0], %1;" ::"l"(address_),     \
                     reg(value)                                               \
                     : "memory");                                             \
      }                                                                       \
    }                                                                         \
    __device__ __forceinline__ value_t fetch_sub(value_t value,               \
                                                 Order order) const {         \
      return fetch_add(-value, order);                                        \
    }                                                                         \
    __device__ __forceinline__ bool compare_exchange_strong(                  \
        value_t& expected,                                                    \
        value_t desired,                                                      \
        Order order) const {                                                  \
      const value_t before = expected;                                        \
      expected = compare_exchange(before, desired, order);                    \
      return expected == before;                                              \
    }                                                                         \
    GSAMPLE_OPERATION(exchange, "exch." bits, value_t, reg)                   \
    GSAMPLE_OPERATION(fetch_add, "add." sum, value_t, reg)                    \
    GSAMPLE_OPERATION(fetch_or, "or." bits, value_t, reg)                     \
    GSAMPLE_OPERATION(fetch_min, "min." number, value_t, reg)                 \
    GSAMPLE_OPERATION(fetch_max, "max." number, value_t, reg)                 \
                                                                              \
   private:                                                                   \
    __device__ __forceinline__ value_t compare_exchange(value_t expected,     \
                                                        value_t desired,      \
                                                        Order order) const {  \
      value_t old;                                                            \
      GSAMPLE_ATOM("cas." bits " %0, [%1], %2, %3;", reg, "l"(address_),      \
                   reg(expected), reg(desired));                              \
    }                                                                         \
                                                                              \
    value_t* address_;                                                        \
  };

GSAMPLE_WORD(uint32_t, "r", "b32", "u32", "u32")
GSAMPLE_WORD(uint64_t, "l", "b64", "u64", "u64")
GSAMPLE_WORD(int64_t, "l", "b64", "u64", "s64")

#undef GSAMPLE_WORD
#undef GSAMPLE_OPERATION
#undef GSAMPLE_ATOM
#undef GSAMPLE_RUN

}  // namespace gsample
