// Barriers, warp collectives and shared memory, and checks of their use.
#include <stdlib.h>
#include <string.h>

#include "grid.h"
#include "sanitizers.h"

namespace gsample {
namespace emu {

namespace {

constexpr size_t kMaxShared = size_t{48} << 10;  // static, on every GPU
constexpr int kPoison = 0xCD;

void wait(State state, const Site& site) {
  thread->state = state;
  thread->site = site;
}

// All threads at a barrier must wait at the same source location.
void check_site(unsigned waiting, Site* first, const Site& site) {
  if (waiting == 0)
    *first = site;
  else if (!same(*first, site))
    fail("divergent barrier: reaches %s while others wait in %s",
         describe(site).c_str(), describe(*first).c_str());
}

void release_grid_barrier(Grid& g) {
  g.at_barrier = 0;
  g.generation ^= 1;
  for (unsigned r = 0; r < g.resident; ++r)
    for (unsigned i = 0; i < g.block[r].threads; ++i)
      if (g.block[r].thread[i].state == State::kGridBarrier)
        make_ready(g.block[r], g.block[r].thread[i]);
}

Warp& warp_of(const Thread& t) {
  return block->warps[t.rank / 32];
}

Thread* lane_of(const Thread& t, int lane) {
  const unsigned i = t.rank / 32 * 32 + lane;
  return i < block->threads ? &block->thread[i] : nullptr;
}

void check_mask(const Site& site, uint32_t mask) {
  if (!(mask >> thread->rank % 32 & 1))
    fail("%s: its mask %08x does not name the lane that calls it",
         describe(site).c_str(), mask);
  for (int lane = 0; lane < 32; ++lane) {
    const Thread* other = lane_of(*thread, lane);
    if (mask >> lane & 1 && (!other || other->state == State::kLeft))
      fail("%s: its mask %08x names lane %d, which has left",
           describe(site).c_str(), mask, lane);
  }
}

// The collective of this mask that the lane joins; the first lane creates it.
Collective& join(const Site& site, uint32_t mask) {
  Warp& warp = warp_of(*thread);
  for (uint32_t used = warp.used; used != 0; used &= used - 1) {
    Collective& c = warp.slots[__builtin_ctz(used)];
    if (c.mask != mask)
      continue;
    if (!same(c.site, site))
      fail("divergent collective: reaches %s while others wait in %s",
           describe(site).c_str(), describe(c.site).c_str());
    return c;
  }
  const int slot = __builtin_ctz(~warp.used);
  warp.used |= 1u << slot;
  warp.slots[slot].mask = mask;
  warp.slots[slot].arrived = 0;
  warp.slots[slot].site = site;
  return warp.slots[slot];
}

// All lanes have arrived: they see each other's values.
void finish(Collective& c) {
  Warp& warp = warp_of(*thread);
  for (int lane = 0; lane < 32; ++lane)
    if (c.mask >> lane & 1) {
      Thread& t = *lane_of(*thread, lane);
      memcpy(t.lanes, c.values, sizeof t.lanes);
      make_ready(*block, t);
    }
  warp.used &= ~(1u << (&c - warp.slots));
}

}  // namespace

void release_block_barrier(Block& b) {
  b.at_barrier = 0;
  b.total = b.sum;
  b.sum = 0;
  b.generation ^= 1;
  for (unsigned i = 0; i < b.threads; ++i)
    if (b.thread[i].state == State::kBlockBarrier)
      make_ready(b, b.thread[i]);
}

int block_reduce(Site site, int value) {
  Block& b = *block;
  check_site(b.at_barrier, &b.barrier, site);
  char* order = &b.order[b.generation];
  __tsan_release(order);
  b.sum += value;
  wait(State::kBlockBarrier, site);
  if (++b.at_barrier == b.live)
    release_block_barrier(b);
  to_scheduler();
  __tsan_acquire(order);
  return b.total;
}

void block_barrier(Site site) {
  block_reduce(site, 0);
}

void grid_barrier(Site site) {
  Grid& g = *grid;
  if (!g.cooperative)
    fail("%s in a launch that is not cooperative", describe(site).c_str());
  check_site(g.at_barrier, &g.barrier, site);
  char* order = &g.order[g.generation];
  __tsan_release(order);
  wait(State::kGridBarrier, site);
  if (++g.at_barrier == g.num_blocks * block->threads)
    release_grid_barrier(g);
  to_scheduler();
  __tsan_acquire(order);
}

void warp_collective(Site site,
                     uint32_t mask,
                     uint64_t value,
                     bool orders,
                     uint64_t values[32]) {
  maybe_yield();
  check_mask(site, mask);
  Collective& c = join(site, mask);
  char* order = &c.order;
  if (orders)
    __tsan_release(order);
  c.values[thread->rank % 32] = value;
  c.arrived |= 1u << thread->rank % 32;
  wait(State::kCollective, site);
  if (c.arrived == mask)
    finish(c);
  to_scheduler();
  if (orders)
    __tsan_acquire(order);
  memcpy(values, thread->lanes, sizeof thread->lanes);
}

void check_collectives_of(const Thread& t) {
  const uint32_t lane = 1u << t.rank % 32;
  const Warp& warp = warp_of(t);
  for (uint32_t used = warp.used; used != 0; used &= used - 1) {
    const Collective& c = warp.slots[__builtin_ctz(used)];
    if (c.mask & lane)
      fail("leaves, while others wait for it in %s with mask %08x",
           describe(c.site).c_str(), c.mask);
  }
}

void* shared_memory(size_t size) {
  Block& b = *block;
  if (size > kMaxShared)
    fail("uses %zu bytes of shared memory, more than %zu", size, kMaxShared);
  if (b.shared == nullptr) {
    b.shared = malloc(size);
    b.shared_size = size;
    memset(b.shared, kPoison, size);
    __tsan_release(&b.shared_order);
  } else if (b.shared_size != size) {
    fail("uses structs of %zu and %zu bytes: a kernel has one struct", size,
         b.shared_size);
  }
  __tsan_acquire(&b.shared_order);
  return b.shared;
}

}  // namespace emu
}  // namespace gsample
