// glibc's swapcontext makes a system call for the signal mask, which would take
// most of an emulation's time: on x86-64 the registers are swapped by hand.
#include "fiber.h"

#include "sanitizers.h"

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace gsample {
namespace emu {

struct Fiber::State {
#if defined(__x86_64__)
  void* stack_pointer;
#else
  ucontext_t context;
#endif
  const void* stack;  // low end of the stack
  size_t stack_size;
  bool owned;  // by a Fiber; false for the thread's own stack
  void* tsan_fiber;
  void* fake_stack;  // of AddressSanitizer
};

#if defined(__x86_64__)

// Saves the callee-saved registers (System V ABI), swaps stacks, and returns on
// the other one.
extern "C" void gsample_emu_swap(void** from, void* to);
asm(R"(
.text
.type gsample_emu_swap, @function
gsample_emu_swap:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size gsample_emu_swap, . - gsample_emu_swap
)");

#endif

Fiber::Fiber() : state_(new State{}) {
  state_->tsan_fiber = __tsan_get_current_fiber();
}

Fiber::Fiber(void (*entry)(), char* stack, size_t stack_size)
    : state_(new State{}) {
  state_->stack = stack;
  state_->stack_size = stack_size;
  state_->owned = true;
  state_->tsan_fiber = __tsan_create_fiber(0);
#if defined(__x86_64__)
  // Six registers, the return address, and the alignment of a called function.
  void** top = reinterpret_cast<void**>(stack + stack_size) - 2;
  top[0] = reinterpret_cast<void*>(entry);
  top[1] = nullptr;
  for (int i = 1; i <= 6; ++i)
    top[-i] = nullptr;
  state_->stack_pointer = top - 6;
#else
  getcontext(&state_->context);
  state_->context.uc_stack.ss_sp = stack;
  state_->context.uc_stack.ss_size = stack_size;
  state_->context.uc_link = nullptr;
  makecontext(&state_->context, entry, 0);
#endif
}

Fiber::~Fiber() {
  if (state_->owned) {
    __tsan_destroy_fiber(state_->tsan_fiber);
    // Abandoned frames leave their poison on the stack.
    __asan_unpoison_memory_region(state_->stack, state_->stack_size);
  }
  delete state_;
}

void Fiber::switch_to(Fiber& from, Fiber& to) {
  constexpr unsigned kNoOrder = 1;  // a switch orders no memory accesses
  __tsan_switch_to_fiber(to.state_->tsan_fiber, kNoOrder);
  __sanitizer_start_switch_fiber(&from.state_->fake_stack, to.state_->stack,
                                 to.state_->stack_size);
#if defined(__x86_64__)
  gsample_emu_swap(&from.state_->stack_pointer, to.state_->stack_pointer);
#else
  swapcontext(&from.state_->context, &to.state_->context);
#endif
  __sanitizer_finish_switch_fiber(from.state_->fake_stack, nullptr, nullptr);
}

void Fiber::entered(Fiber& from) {
  __sanitizer_finish_switch_fiber(nullptr, &from.state_->stack,
                                  &from.state_->stack_size);
}

}  // namespace emu
}  // namespace gsample
