// Threads and interruption, the two things kernels need from their host.
#pragma once

#include <stdint.h>

#include <atomic>
#include <chrono>
#include <functional>

namespace gsample {

// How a kernel ended.
enum class Status { kDone, kFault, kInterrupted };

// How many threads torch uses for one operator in the calling thread.
int max_threads();

// How many processors the calling thread may run on.
int num_cores();

// Runs task(0) ... task(n - 1), on up to n threads of torch's pool. Tasks may
// also run one after the other: none may wait for another to start.
void run_tasks(int n, const std::function<void(int)>& task);

// Splits [0, size) in ranges of at least `grain` for up to `threads` threads.
void parallel_ranges(int64_t size,
                     int64_t grain,
                     int threads,
                     const std::function<void(int64_t, int64_t)>& body);

// Runs body(0) ... body(n - 1); threads take the next item when they are free.
void parallel_items(int64_t n,
                    int threads,
                    const std::function<void(int64_t)>& body);

// Lets Ctrl-C end a long kernel. Only the thread that made the object asks
// Python, at most ten times a second; the others read `stopped`.
class Interrupt {
 public:
  Interrupt();
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  // Cheap enough for every few thousand edges. Any thread may call it.
  void poll();

 private:
  std::atomic<bool> stopped_{false};
  uint64_t owner_;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace gsample
