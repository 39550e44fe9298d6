// What Linux and macOS do differently. The library runs on Linux; the paths of
// macOS are compiled by `make test-compile-other`, and have not run.
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#if defined(__linux__)
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <thread>
#endif

namespace gsample {

#if defined(__linux__)

constexpr int kHugePages = MADV_HUGEPAGE;
constexpr int kCollapse = 25;  // MADV_COLLAPSE, missing in older headers

// Advice is only a hint: a failure costs speed only.
inline void advise(void* data, size_t bytes, int advice) {
  (void)madvise(data, bytes, advice);
}

// The number of CPUs that this process may use.
inline int usable_cores() {
  cpu_set_t cores;  // a machine with more than 1,024 does not fit: it has
                    // enough
  if (sched_getaffinity(0, sizeof cores, &cores) != 0)
    return CPU_SETSIZE;
  return CPU_COUNT(&cores);
}

// The number of involuntary context switches of the calling thread. Voluntary
// waits, as for pages of a mapped file, are not lateness.
inline int64_t preemptions() {
  rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

inline bool in_main_thread() {
  return syscall(SYS_gettid) == getpid();
}

#else

constexpr int kHugePages = 0;
constexpr int kCollapse = 0;

// The system chooses the size of pages.
inline void advise(void*, size_t, int) {}

// There is no affinity of a process.
inline int usable_cores() {
  const unsigned cores = std::thread::hardware_concurrency();
  return cores == 0 ? 1 : static_cast<int>(cores);
}

// Not counted for a thread: it is then late only if it starts late.
inline int64_t preemptions() {
  return 0;
}

inline bool in_main_thread() {
  return pthread_main_np() != 0;
}

#endif

}  // namespace gsample
