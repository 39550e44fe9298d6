// What systems do differently: memory, threads, files and libraries. The
// library runs on Linux. `make test-compile-other` compiles the paths of macOS
// and Windows, which have not run; platform_windows.cpp has those of Windows.
#pragma once

#include <stddef.h>
#include <stdint.h>

#if !defined(_WIN32)
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#endif

#if defined(__linux__)
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <atomic>
#include <string>
#else
#include <thread>
#endif

#if defined(__APPLE__)
#include <fcntl.h>
#include <sys/param.h>
#endif

namespace gsample {

#if defined(_WIN32)

void* allocate_aligned(size_t align, size_t bytes);
void free_aligned(void* data);
inline bool lend_pages(void*, size_t) {
  return false;
}
// There is no fork.
inline void at_fork(void (*)(), void (*)(), void (*)()) {}
uint64_t thread_number();
int64_t thread_nanoseconds();
int64_t read_at(int fd, void* to, size_t bytes, int64_t offset);
int64_t write_at(int fd, const void* from, size_t bytes, int64_t offset);
void* open_library(int64_t descriptor);
int close_library(void* library);
void* find_symbol(void* library, const char* name);
void* find_symbol(const char* name);

#else

// Memory for free_aligned(), or null. `bytes` is a multiple of `align`.
inline void* allocate_aligned(size_t align, size_t bytes) {
  return aligned_alloc(align, bytes);
}

inline void free_aligned(void* data) {
  free(data);
}

// Lets the system reclaim whole pages under memory pressure. Until then they
// stay mapped: writing to them causes no page fault. False: not possible.
inline bool lend_pages(void* data, size_t bytes) {
  return madvise(data, bytes, MADV_FREE) == 0;
}

inline void at_fork(void (*before)(), void (*parent)(), void (*child)()) {
  pthread_atfork(before, parent, child);
}

// A number of the calling thread: `pthread_t` is an integer or a pointer.
inline uint64_t thread_number() {
  return (uint64_t)pthread_self();
}

// The time that the calling thread was on a CPU.
inline int64_t thread_nanoseconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
}

// Reads at an offset of a file; the position of the file does not count.
// Returns the number of bytes, 0 at the end of the file, or -1 with an errno.
inline int64_t read_at(int fd, void* to, size_t bytes, int64_t offset) {
  return pread(fd, to, bytes, offset);
}

inline int64_t write_at(int fd,
                        const void* from,
                        size_t bytes,
                        int64_t offset) {
  return pwrite(fd, from, bytes, offset);
}

inline int close_library(void* library) {
  return dlclose(library);
}

// A function of a library, or null.
inline void* find_symbol(void* library, const char* name) {
  return dlsym(library, name);
}

// A function of this process, or null.
inline void* find_symbol(const char* name) {
  return dlsym(RTLD_DEFAULT, name);
}

#endif

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

// Loads the library in an open file, or returns null.
inline void* open_library(int64_t descriptor) {
  // dlopen() treats libraries of one name as the same library, and descriptors
  // are reused: each call spells the name differently.
  static std::atomic<uint64_t> calls{0};
  std::string path = "/proc/self/fd/";
  for (uint64_t rest = ++calls; rest > 0; rest >>= 1)
    path += (rest & 1) != 0 ? "./" : "/";
  path += std::to_string(descriptor);
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
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

#if defined(__APPLE__)

inline bool in_main_thread() {
  return pthread_main_np() != 0;
}

inline void* open_library(int64_t descriptor) {
  char path[MAXPATHLEN];
  if (fcntl(static_cast<int>(descriptor), F_GETPATH, path) != 0)
    return nullptr;
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

#else

bool in_main_thread();

#endif

#endif

}  // namespace gsample
