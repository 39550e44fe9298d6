// The emulator's state of a running grid.
#pragma once

#include <memory>
#include <string>

#include "emulator.h"
#include "fiber.h"

namespace gsample {
namespace emu {

enum class State { kReady, kBlockBarrier, kGridBarrier, kCollective, kLeft };

struct Thread {
  std::unique_ptr<Fiber> fiber;
  unsigned rank;  // in its block
  Dim3 index;
  State state;
  Site site;  // where the thread waits
  uint64_t lanes[32];
};

// A collective that some lanes have not reached yet.
struct Collective {
  uint32_t mask;
  uint32_t arrived;
  Site site;
  uint64_t values[32];
  char order;  // an address for ThreadSanitizer
};

struct Warp {
  uint32_t used;         // bitmap of the used slots
  Collective slots[32];  // enough, as a lane waits in at most one
};

struct Block {
  Dim3 index;
  unsigned threads, live, ready_count, at_barrier;
  std::unique_ptr<Thread[]> thread;
  std::unique_ptr<Thread*[]> ready;  // threads that can run
  std::unique_ptr<Warp[]> warps;
  char* stacks;
  void* shared;
  size_t shared_size;
  char shared_order;
  Site barrier;  // where its threads wait
  int sum, total;
  unsigned generation;
  char order[2];
  int weight;  // steps per turn, 0: stalled
};

// xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift
// generators, scrambled", TOMS 2016).
struct Generator {
  uint64_t state;
  uint64_t operator()() {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545F4914F6CDD1Dull;
  }
  unsigned below(unsigned n) {
    return static_cast<unsigned>(((*this)() >> 32) * n >> 32);
  }
};

struct Grid {
  const char* kernel;
  Dim3 blocks, block_size;
  unsigned num_blocks, started, live;
  bool cooperative;
  void (*body)(void*);
  void* argument;
  std::unique_ptr<Block[]> block;  // [resident]
  unsigned resident;
  Fiber* scheduler;
  Generator random;
  bool greedy;
  uint64_t switches;
  unsigned at_barrier, generation;
  Site barrier;
  char order[2], begun, ended;
  bool failed;
  std::string error;
};

extern Grid* grid;      // the running grid
extern Block* block;    //
extern Thread* thread;  //

std::string describe(const Block& b, const Thread& t);
std::string describe(const Site& site);
bool same(const Site& a, const Site& b);

// Records the first message and ends the launch.
void record(const std::string& message);

void to_scheduler();
void make_ready(Block& b, Thread& t);
void release_block_barrier(Block& b);

// A thread exits: no thread may wait for it.
void check_collectives_of(const Thread& t);

}  // namespace emu
}  // namespace gsample
