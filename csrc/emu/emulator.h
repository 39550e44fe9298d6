// Runs a CUDA kernel on the CPU, to find its bugs: the whole grid on one OS
// thread, one fiber per CUDA thread, in an order that a seed determines, so
// that every failure is reproducible.
//
// Checks: barriers and warp collectives that threads reach at different places,
// masks that lack their caller or include an exited thread, deadlock, livelock,
// and too much shared memory. Shared memory starts with garbage. Under
// ThreadSanitizer only CUDA's orderings (barriers, __syncwarp, atomics by their
// memory orders) count, so that every data race of a kernel is reported,
// harmful or not.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <stdexcept>

namespace gsample {
namespace emu {

struct Config {
  uint64_t seed = 1;
  int resident_blocks = 3;           // blocks that the "GPU" holds at a time
  int block_threads = 64;            // of a launch that does not set it
  int yield_percent = 20;            // chance of a switch at an atomic access
  uint64_t max_switches = 20000000;  // per launch: beyond, it is a livelock
};

Config& config();

// Whether a kernel ran since the host last waited for the device.
bool& runs_since_wait();

// A bug of a kernel: its name, block, thread and source location.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Dim3 {
  unsigned x, y, z;
  constexpr Dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1)
      : x(a), y(b), z(c) {}
};

// The source location of a kernel's call, for messages.
struct Site {
  const char* what;
  const char* file;
  int line;
};

// Calls body(argument) in every thread of a grid.
void run_grid(const char* kernel,
              Dim3 grid,
              Dim3 block,
              bool cooperative,
              void (*body)(void*),
              void* argument);

// The state of the running CUDA thread, as its kernel sees it.
Dim3 thread_index();
Dim3 block_index();
Dim3 block_size();
Dim3 grid_size();

void yield();        // lets other threads run
void maybe_yield();  // sometimes
[[noreturn]] void fail(const char* format, ...)
    __attribute__((format(printf, 1, 2)));

void block_barrier(Site site);
int block_reduce(Site site, int value);  // a barrier and the sum over the block
void grid_barrier(Site site);

// The values of all lanes of the mask. With `orders`, also a memory barrier.
void warp_collective(Site site,
                     uint32_t mask,
                     uint64_t value,
                     bool orders,
                     uint64_t values[32]);

// The shared memory of the block: one struct per kernel.
void* shared_memory(size_t size);

}  // namespace emu
}  // namespace gsample
