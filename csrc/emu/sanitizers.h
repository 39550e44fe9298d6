// Annotations of the emulator for the sanitizers; empty without them.
// The emulator itself is compiled without ThreadSanitizer, as its fibers share
// its data; GSAMPLE_TSAN is defined if the program runs under it.
#pragma once

#include <stddef.h>

#if defined(GSAMPLE_TSAN)
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#else
inline void* __tsan_get_current_fiber() {
  return nullptr;
}
inline void* __tsan_create_fiber(unsigned) {
  return nullptr;
}
inline void __tsan_destroy_fiber(void*) {}
inline void __tsan_switch_to_fiber(void*, unsigned) {}
inline void __tsan_acquire(void*) {}
inline void __tsan_release(void*) {}
#endif

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
inline void __sanitizer_start_switch_fiber(void**, const void*, size_t) {}
inline void __sanitizer_finish_switch_fiber(void*, const void**, size_t*) {}
inline void __asan_unpoison_memory_region(const void*, size_t) {}
#endif
