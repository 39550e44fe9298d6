// Runs a CUDA kernel on the CPU, to find its mistakes: the whole grid on one
// thread of the system, a fiber for each CUDA thread, in an order that a seed
// decides, so that every failure can be repeated.
//
// What is checked: barriers and warp collectives that threads reach at
// different places, masks that do not name their caller or name a thread that
// has left, deadlock, livelock, and shared memory beyond its limit. Shared
// memory begins as rubbish. Under ThreadSanitizer only what CUDA orders
// (barriers, __syncwarp, atomics by their memory orders) is ordered, so that
// every data race of a kernel is reported, whether it did harm or not.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <stdexcept>

namespace gsample {
namespace emu {

struct Config {
  uint64_t seed = 1;
  int resident_blocks = 3;  // how many blocks the "GPU" holds at a time
  int block_threads = 64;   // of a launch that leaves it open
  int yield_percent = 20;   // chance of a switch at an atomic access
  uint64_t max_switches = 20000000;  // of a launch: beyond, it is a livelock
};

Config& config();

// Whether a kernel ran since the host last waited for the device.
bool& runs_since_wait();

// A mistake of a kernel: its name, block, thread and place.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Dim3 {
  unsigned x, y, z;
  constexpr Dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1)
      : x(a), y(b), z(c) {}
};

// Where a kernel calls something, for messages.
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

// The state that a kernel sees, in the thread that runs.
Dim3 thread_index();
Dim3 block_index();
Dim3 block_size();
Dim3 grid_size();

void yield();        // lets other threads run
void maybe_yield();  // sometimes
[[noreturn]] void fail(const char* format, ...)
    __attribute__((format(printf, 1, 2)));

void block_barrier(Site site);
int block_reduce(Site site, int value);  // a barrier and the sum of all values
void grid_barrier(Site site);

// The values of all lanes of the mask. `orders` makes it a barrier for memory.
void warp_collective(Site site,
                     uint32_t mask,
                     uint64_t value,
                     bool orders,
                     uint64_t values[32]);

// The shared memory of the block: one struct a kernel.
void* shared_memory(size_t size);

}  // namespace emu
}  // namespace gsample
