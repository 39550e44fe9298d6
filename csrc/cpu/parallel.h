// Threads and interruption, the only services kernels need from their host.
#pragma once

#include <stdint.h>

#include <atomic>
#include <chrono>
#include <functional>

namespace gsample {

// The outcome of a kernel.
enum class Status { kDone, kFault, kInterrupted };

// The number of threads torch uses for one operator in the calling thread.
int max_threads();

// The number of CPUs the calling thread may run on.
int num_cores();

// Runs task(0) ... task(n - 1), on up to n threads of torch's pool. Tasks may
// also run in sequence: none may wait for another to start.
void run_tasks(int n, const std::function<void(int)>& task);

// Splits [0, size) into ranges of at least `grain` for up to `threads` threads.
void parallel_ranges(int64_t size,
                     int64_t grain,
                     int threads,
                     const std::function<void(int64_t, int64_t)>& body);

// Runs body(0) ... body(n - 1); each thread takes the next item when it is
// free.
void parallel_items(int64_t n,
                    int threads,
                    const std::function<void(int64_t)>& body);

// Lets Ctrl-C end a long kernel. Only the thread that created the object asks
// Python, at most ten times a second; the others read `stopped`.
class Interrupt {
 public:
  Interrupt();
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  // Cheap enough to call every few thousand edges, from any thread.
  void poll();

 private:
  std::atomic<bool> stopped_{false};
  uint64_t owner_;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace gsample
