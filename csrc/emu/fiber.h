// Coroutines with their own stacks, known to the sanitizers.
#pragma once

#include <stddef.h>

namespace gsample {
namespace emu {

class Fiber {
 public:
  Fiber();  // the running thread, once it switches away
  Fiber(void (*entry)(), char* stack, size_t stack_size);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  // Returns when another fiber switches back to `from`.
  static void switch_to(Fiber& from, Fiber& to);
  // The first call of an entry, with the fiber that switched to it.
  static void entered(Fiber& from);

 private:
  struct State;
  State* state_;
};

}  // namespace emu
}  // namespace gsample
