#include "parallel.h"

#include <algorithm>

#include "platform.h"

#if defined(GSAMPLE_STD_THREADS)  // ThreadSanitizer cannot see into OpenMP
#include <stdlib.h>

#include <thread>
#include <vector>
#else
#include <torch/csrc/stable/ops.h>

#include "pace.h"
#endif

namespace gsample {

#if defined(GSAMPLE_STD_THREADS)

int max_threads() {
  const char* threads = getenv("OMP_NUM_THREADS");
  return threads ? std::max(1, atoi(threads)) : 4;
}

// Tests set any number of threads.
int num_cores() {
  return max_threads();
}

void run_tasks(int n, const std::function<void(int)>& task) {
  std::vector<std::thread> threads;
  for (int i = 1; i < n; ++i)
    threads.emplace_back(task, i);
  if (n > 0)
    task(0);
  for (std::thread& thread : threads)
    thread.join();
}

#else

int max_threads() {
  return static_cast<int>(torch::stable::get_num_threads());
}

int num_cores() {
  return usable_cores();
}

namespace {

int64_t nanoseconds() {
  return std::chrono::nanoseconds(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void raise(std::atomic<int64_t>& value, int64_t other) {
  int64_t known = value.load(std::memory_order_relaxed);
  while (known < other && !value.compare_exchange_weak(known, other)) {
  }
}

// Runs the tasks on a team. Returns the longest time that a member was off its
// CPU: before, during or after its work.
int64_t run_on_team(int n, const std::function<void(int)>& task) {
  const int64_t called = nanoseconds();
  std::atomic<int64_t> lateness{0}, done{called};
  torch::stable::parallel_for(0, n, 1, [&](int64_t begin, int64_t end) {
    const int64_t began = nanoseconds();
    const int64_t ran = thread_nanoseconds();
    const int64_t taken = preemptions();
    for (int64_t i = begin; i < end; ++i)
      task(static_cast<int>(i));
    const int64_t ended = nanoseconds();
    const int64_t work = thread_nanoseconds() - ran;
    const int64_t off = preemptions() > taken ? ended - began - work : 0;
    raise(lateness, std::max(began - called, off));
    raise(done, ended);
  });
  return std::max(lateness.load(), nanoseconds() - done.load());
}

}  // namespace

void run_tasks(int n, const std::function<void(int)>& task) {
  thread_local Pace pace;
  if (n == 1 || pace.is_alone(nanoseconds())) {
    for (int i = 0; i < n; ++i)
      task(i);
    return;
  }
  const int64_t lateness = run_on_team(n, task);
  pace.ended(nanoseconds(), lateness);
}

#endif

void parallel_ranges(int64_t size,
                     int64_t grain,
                     int threads,
                     const std::function<void(int64_t, int64_t)>& body) {
  const int64_t ranges =
      std::max<int64_t>(1, std::min<int64_t>(threads, size / grain));
  if (ranges == 1)
    return body(0, size);
  run_tasks(static_cast<int>(ranges),
            [&](int i) { body(size * i / ranges, size * (i + 1) / ranges); });
}

void parallel_items(int64_t n,
                    int threads,
                    const std::function<void(int64_t)>& body) {
  std::atomic<int64_t> next{0};
  run_tasks(static_cast<int>(std::min<int64_t>(n, threads)), [&](int) {
    for (int64_t i = next++; i < n; i = next++)
      body(i);
  });
}

namespace {

constexpr std::chrono::milliseconds kPollInterval{100};

// Python's own signal check, in Python processes. The extension does not link
// against Python, so that one binary serves every version.
struct PythonSignals {
  int (*is_initialized)();
  int (*acquire_gil)();
  void (*release_gil)(int);
  int (*check_signals)();
  void (*clear_error)();

  PythonSignals() {
    find(is_initialized, "Py_IsInitialized");
    find(acquire_gil, "PyGILState_Ensure");
    find(release_gil, "PyGILState_Release");
    find(check_signals, "PyErr_CheckSignals");
    find(clear_error, "PyErr_Clear");
  }

  template <typename function_t>
  static void find(function_t& function, const char* name) {
    function = reinterpret_cast<function_t>(find_symbol(name));
  }

  bool interrupted() const {
    // Python handles signals in its main thread only.
    if (!in_main_thread())
      return false;
    if (!is_initialized || !acquire_gil || !release_gil || !check_signals ||
        !clear_error || !is_initialized())
      return false;
    const int state = acquire_gil();
    const bool raised = check_signals() != 0;
    if (raised)  // the Python side raises KeyboardInterrupt instead
      clear_error();
    release_gil(state);
    return raised;
  }
};

}  // namespace

Interrupt::Interrupt()
    : owner_(thread_number()),
      next_(std::chrono::steady_clock::now() + kPollInterval) {}

void Interrupt::poll() {
  if (stopped() || thread_number() != owner_)
    return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_)
    return;
  next_ = now + kPollInterval;
  static const PythonSignals signals;
  if (signals.interrupted())
    stopped_.store(true, std::memory_order_relaxed);
}

}  // namespace gsample
