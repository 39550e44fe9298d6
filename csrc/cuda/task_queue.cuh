// A queue of tasks that create tasks, for persistent kernels without a grid
// barrier (after PGSampler, except for its termination: blocks there may leave
// early).
//
//   take     one thread takes tickets for a block: slots that no other block
//            reads, perhaps before they have a task;
//   read     each thread looks at the slot of its own ticket;
//   announce counts new tasks as pending, retires those that made them, and
//            makes room, all at once;
//   publish  writes a task, then says so (release, to the acquire of read).
//
// Nothing is pending exactly when all is done: a task stops being pending only
// after all tasks it creates are, and they are before any thread reads them.
#pragma once

#include "portable.h"
#include "task_queue.h"

namespace gsample {

constexpr int kPendingShift = 32;

// Called by one thread, before a grid barrier. `pending` are the creators of
// the first tasks: they retire without being announced.
__device__ inline void clear_counts(const TaskQueue& queue, uint32_t pending) {
  *queue.head = 0;
  *queue.tail = uint64_t{pending} << kPendingShift;
}

// Takes tickets from `*first` on, and returns their number: up to `most`, and
// at most half of a block's share of the backlog. So blocks take many at a time
// from a long queue, and finish together.
__device__ inline uint32_t take_tickets(const TaskQueue& queue,
                                        uint32_t most,
                                        uint32_t* first) {
  const Atomic<uint32_t> head(*queue.head);
  const uint32_t taken = head.load(kRelaxed);
  const uint32_t announced =
      static_cast<uint32_t>(Atomic<uint64_t>(*queue.tail).load(kRelaxed));
  const uint32_t backlog = announced > taken ? announced - taken : 0;
  const uint32_t share = backlog / (2 * gridDim.x);
  const uint32_t count = share < 1 ? 1 : share < most ? share : most;
  *first = head.fetch_add(count, kRelaxed);
  return count;
}

// Whether the slot of a ticket has a task; reads it if so.
__device__ inline bool read_task(const TaskQueue& queue,
                                 uint32_t slot,
                                 uint64_t* task) {
  if (slot >= queue.capacity ||
      Atomic<uint32_t>(queue.ready[slot]).load(kAcquire) == 0)
    return false;
  *task = queue.task[slot];
  return true;
}

// Whether no task is left, and none will be created.
__device__ inline bool is_done(const TaskQueue& queue) {
  return Atomic<uint64_t>(*queue.tail).load(kRelaxed) >> kPendingShift == 0;
}

__device__ inline void retire_tasks(const TaskQueue& queue, uint32_t count) {
  Atomic<uint64_t>(*queue.tail)
      .fetch_sub(uint64_t{count} << kPendingShift, kRelaxed);
}

// Reserves room for `made` tasks from `*first` on, and retires the tasks that
// created them. Returns false if the queue is full: the tasks are lost and
// their room is returned, so that the lower half stays below the capacity plus
// the announcements in progress. No other announcement succeeded meanwhile: its
// slots would start after these.
__device__ inline bool announce_tasks(const TaskQueue& queue,
                                      uint32_t made,
                                      uint32_t retired,
                                      uint32_t* first) {
  const Atomic<uint64_t> tail(*queue.tail);
  // Counts are modulo 2^32. The lower half never carries.
  const uint64_t pending = uint64_t{made} - retired;
  *first = static_cast<uint32_t>(
      tail.fetch_add((pending << kPendingShift) + made, kRelaxed));
  if (*first <= queue.capacity && made <= queue.capacity - *first)
    return true;
  tail.fetch_sub((uint64_t{made} << kPendingShift) + made, kRelaxed);
  return false;
}

// Every announced slot must be published.
__device__ inline void publish_task(const TaskQueue& queue,
                                    uint32_t slot,
                                    uint64_t task) {
  queue.task[slot] = task;
  Atomic<uint32_t>(queue.ready[slot]).store(1, kRelease);
}

}  // namespace gsample
