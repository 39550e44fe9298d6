// Start, scheduling and end of the threads of a grid.
#include "emulator.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <new>

#include "grid.h"
#include "sanitizers.h"

namespace gsample {
namespace emu {

Grid* grid = nullptr;
Block* block = nullptr;
Thread* thread = nullptr;

namespace {

constexpr size_t kStack = size_t{128} << 10;
constexpr unsigned kMaxThreads = 1024;
constexpr unsigned kSameWeights = 64;  // turns until other blocks stall

void leave() {
  check_collectives_of(*thread);
  __tsan_release(&grid->ended);
  thread->state = State::kLeft;
  --block->live;
  if (block->live > 0 && block->at_barrier == block->live)
    release_block_barrier(*block);
  for (;;)
    to_scheduler();
}

void enter() {
  Fiber::entered(*grid->scheduler);
  __tsan_acquire(&grid->begun);
  grid->body(grid->argument);
  leave();
}

Dim3 position(unsigned i, const Dim3& size) {
  return Dim3(i % size.x, i / size.x % size.y, i / size.x / size.y);
}

void start_block(Block& b) {
  const Dim3& size = grid->block_size;
  b = Block{};
  b.index = position(grid->started++, grid->blocks);
  b.threads = b.live = size.x * size.y * size.z;
  b.thread.reset(new Thread[b.threads]());
  b.ready.reset(new Thread*[b.threads]);
  b.warps.reset(new Warp[(b.threads + 31) / 32]());
  void* stacks = mmap(nullptr, kStack * b.threads, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stacks == MAP_FAILED)
    throw std::bad_alloc();
  b.stacks = static_cast<char*>(stacks);
  b.weight = 1;
  for (unsigned i = 0; i < b.threads; ++i) {
    Thread& t = b.thread[i];
    t.rank = i;
    t.index = position(i, size);
    t.fiber.reset(new Fiber(enter, b.stacks + i * kStack, kStack));
    make_ready(b, t);
  }
}

void end_block(Block& b) {
  const size_t threads = b.threads;
  __tsan_acquire(&grid->ended);
  b.thread.reset();
  munmap(b.stacks, kStack * threads);
  free(b.shared);
  b = Block{};
}

// Runs a thread of the block until it waits or yields. Half of the seeds mostly
// pick the thread that became ready last, so that a warp runs far ahead.
void step(Block& b) {
  const bool last = grid->greedy && grid->random.below(8) != 0;
  const unsigned at =
      last ? b.ready_count - 1 : grid->random.below(b.ready_count);
  block = &b;
  thread = b.ready[at];
  b.ready[at] = b.ready[--b.ready_count];
  Fiber::switch_to(*grid->scheduler, *thread->fiber);
}

// Reports the first waiting thread, and the number that wait at the same site.
void report_deadlock() {
  for (unsigned r = 0; r < grid->resident; ++r) {
    Block& b = grid->block[r];
    for (unsigned i = 0; i < b.threads; ++i) {
      const Thread& t = b.thread[i];
      if (t.state == State::kLeft)
        continue;
      unsigned alike = 0;
      for (unsigned j = 0; j < b.threads; ++j)
        alike += b.thread[j].state == t.state && same(b.thread[j].site, t.site);
      return record(describe(b, t) + "deadlock: waits forever in " +
                    describe(t.site) + ", as do " + std::to_string(alike) +
                    " of " + std::to_string(b.threads) + " threads");
    }
  }
}

// Lets blocks stall, or race ahead of one another, for a while.
void change_weights() {
  for (unsigned r = 0; r < grid->resident; ++r) {
    const unsigned kind = grid->random.below(8);
    grid->block[r].weight = kind < 2 ? 0 : kind == 2 ? 512 : 32;
  }
}

// Ends finished blocks and starts others. Returns false when none is left.
bool refill() {
  unsigned live = 0, ready = 0;
  for (unsigned r = 0; r < grid->resident; ++r) {
    Block& b = grid->block[r];
    if (b.threads > 0 && b.live == 0)
      end_block(b);
    if (b.threads == 0 && grid->started < grid->num_blocks)
      start_block(b);
    live += b.live;
    ready += b.ready_count;
  }
  if (live > 0 && ready == 0)
    report_deadlock();
  return live > 0;
}

void schedule() {
  for (unsigned turn = 0; refill() && !grid->failed; ++turn) {
    if (turn % kSameWeights == 0)
      change_weights();
    Block& b = grid->block[grid->random.below(grid->resident)];
    const bool stalls = b.weight == 0 && grid->random.below(32) != 0;
    const int steps = b.weight == 0 ? 1 : b.weight;
    for (int i = 0; !stalls && i < steps && b.ready_count > 0; ++i) {
      step(b);
      if (grid->failed)
        return;
      if (++grid->switches > config().max_switches)
        return record(describe(b, *thread) + "livelock: still runs after " +
                      std::to_string(grid->switches) + " switches");
    }
  }
}

}  // namespace

std::string describe(const Block& b, const Thread& t) {
  char text[200];
  snprintf(text, sizeof text,
           "kernel %s, block (%u, %u, %u), thread (%u, %u, %u): ", grid->kernel,
           b.index.x, b.index.y, b.index.z, t.index.x, t.index.y, t.index.z);
  return text;
}

std::string describe(const Site& site) {
  const char* slash = strrchr(site.file, '/');
  return std::string(site.what) + " at " +
         (slash != nullptr ? slash + 1 : site.file) + ":" +
         std::to_string(site.line);
}

bool same(const Site& a, const Site& b) {
  return a.line == b.line && strcmp(a.what, b.what) == 0 &&
         strcmp(a.file, b.file) == 0;
}

void record(const std::string& message) {
  if (!grid->failed)
    grid->error = message;
  grid->failed = true;
}

void to_scheduler() {
  Fiber::switch_to(*thread->fiber, *grid->scheduler);
}

void make_ready(Block& b, Thread& t) {
  t.state = State::kReady;
  b.ready[b.ready_count++] = &t;
}

Config& config() {
  static Config instance;
  return instance;
}

bool& runs_since_wait() {
  static bool runs = false;
  return runs;
}

void run_grid(const char* kernel,
              Dim3 blocks,
              Dim3 block_size,
              bool cooperative,
              void (*body)(void*),
              void* argument) {
  runs_since_wait() = true;
  const unsigned threads = block_size.x * block_size.y * block_size.z;
  const unsigned capacity = config().resident_blocks;
  Fiber scheduler;
  Grid g{};
  g.kernel = kernel;
  g.blocks = blocks;
  g.block_size = block_size;
  g.num_blocks = blocks.x * blocks.y * blocks.z;
  g.cooperative = cooperative;
  g.body = body;
  g.argument = argument;
  g.scheduler = &scheduler;
  g.random = Generator{config().seed * 0x9E3779B97F4A7C15ull | 1};
  g.greedy = config().seed % 2 == 0;
  const std::string shape = std::string("kernel ") + kernel + ": " +
                            std::to_string(g.num_blocks) + " blocks of " +
                            std::to_string(threads) + " threads ";
  if (threads == 0 || threads > kMaxThreads || g.num_blocks == 0)
    throw Error(shape + "are not a valid launch");
  if (cooperative && g.num_blocks > capacity)
    throw Error(shape +
                "are not all resident, which a cooperative launch "
                "requires (at most " +
                std::to_string(capacity) + ")");
  g.resident = capacity < g.num_blocks ? capacity : g.num_blocks;
  g.block.reset(new Block[g.resident]());
  grid = &g;
  __tsan_release(&g.begun);
  schedule();
  for (unsigned r = 0; r < g.resident; ++r)
    if (g.block[r].threads > 0)
      end_block(g.block[r]);
  __tsan_acquire(&g.ended);
  grid = nullptr;
  if (g.failed)
    throw Error(g.error);
}

Dim3 thread_index() {
  return thread->index;
}
Dim3 block_index() {
  return block->index;
}
Dim3 block_size() {
  return grid->block_size;
}
Dim3 grid_size() {
  return grid->blocks;
}

void yield() {
  make_ready(*block, *thread);
  to_scheduler();
}

void maybe_yield() {
  if (static_cast<int>(grid->random.below(100)) < config().yield_percent)
    yield();
}

void fail(const char* format, ...) {
  char text[500];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  record(describe(*block, *thread) + text);
  __tsan_release(&grid->ended);
  for (;;)
    to_scheduler();
}

}  // namespace emu
}  // namespace gsample
