// cuda::atomic_ref for the emulator: other threads may run before and after
// every access.
#pragma once

#include "emulator.h"

namespace gsample {
namespace emu {

template <typename value_t>
class Atomic {
 public:
  explicit Atomic(value_t& value) : address_(&value) {}

  value_t load(int order) const {
    maybe_yield();
    return __atomic_load_n(address_, order);
  }
  void store(value_t value, int order) const {
    maybe_yield();
    __atomic_store_n(address_, value, order);
    maybe_yield();
  }
  value_t exchange(value_t value, int order) const {
    const Turn turn;
    return __atomic_exchange_n(address_, value, order);
  }
  value_t fetch_add(value_t value, int order) const {
    const Turn turn;
    return __atomic_fetch_add(address_, value, order);
  }
  value_t fetch_sub(value_t value, int order) const {
    const Turn turn;
    return __atomic_fetch_sub(address_, value, order);
  }
  value_t fetch_or(value_t value, int order) const {
    const Turn turn;
    return __atomic_fetch_or(address_, value, order);
  }
  value_t fetch_and(value_t value, int order) const {
    const Turn turn;
    return __atomic_fetch_and(address_, value, order);
  }
  value_t fetch_min(value_t value, int order) const {
    const Turn turn;
    value_t old = __atomic_load_n(address_, __ATOMIC_RELAXED);
    while (value < old && !swap(old, value, order)) {
    }
    return old;
  }
  value_t fetch_max(value_t value, int order) const {
    const Turn turn;
    value_t old = __atomic_load_n(address_, __ATOMIC_RELAXED);
    while (old < value && !swap(old, value, order)) {
    }
    return old;
  }
  // `expected` becomes the old value.
  bool compare_exchange_strong(value_t& expected,
                               value_t desired,
                               int order) const {
    const Turn turn;
    return swap(expected, desired, order);
  }

 private:
  // Other threads may run before and after the access inside the scope.
  struct Turn {
    Turn() { maybe_yield(); }
    ~Turn() { maybe_yield(); }
  };

  bool swap(value_t& expected, value_t desired, int order) const {
    const int failure = order == __ATOMIC_ACQ_REL   ? __ATOMIC_ACQUIRE
                        : order == __ATOMIC_RELEASE ? __ATOMIC_RELAXED
                                                    : order;
    return __atomic_compare_exchange_n(address_, &expected, desired, false,
                                       order, failure);
  }

  value_t* address_;
};

}  // namespace emu
}  // namespace gsample
