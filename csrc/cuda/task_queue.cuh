// A queue of tasks that make tasks, for persistent kernels without a grid
// barrier (after PGSampler, but for its end: blocks there may leave early).
//
//   take     one thread takes tickets for a block: slots that no other block
//            reads, perhaps before they have a task;
//   read     each thread looks at the slot of its own ticket;
//   announce counts new tasks as pending, retires those that made them, and
//            makes room, all at once;
//   publish  writes a task, then says so (release, to the acquire of read).
//
// Nothing is pending exactly when all is done: a task is no longer pending when
// all that it makes is, which it is before anybody reads it.
#pragma once

#include "portable.h"
#include "task_queue.h"

namespace gsample {

constexpr int kPendingShift = 32;

// By one thread, before a grid barrier. `pending` are not announced, but
// retired: what makes the first tasks.
__device__ inline void clear_counts(const TaskQueue& queue, uint32_t pending) {
  *queue.head = 0;
  *queue.tail = uint64_t{pending} << kPendingShift;
}

// Takes tickets from `*first` on, and returns how many: up to `most`, and as
// many as are half of a block's share of the backlog. So blocks take more at a
// time where there is much, and end together.
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

// Whether the slot of a ticket has a task, which is read then.
__device__ inline bool read_task(const TaskQueue& queue,
                                 uint32_t slot,
                                 uint64_t* task) {
  if (slot >= queue.capacity ||
      Atomic<uint32_t>(queue.ready[slot]).load(kAcquire) == 0)
    return false;
  *task = queue.task[slot];
  return true;
}

// Whether no task is left, and none will come.
__device__ inline bool is_done(const TaskQueue& queue) {
  return Atomic<uint64_t>(*queue.tail).load(kRelaxed) >> kPendingShift == 0;
}

__device__ inline void retire_tasks(const TaskQueue& queue, uint32_t count) {
  Atomic<uint64_t>(*queue.tail)
      .fetch_sub(uint64_t{count} << kPendingShift, kRelaxed);
}

// Makes room for `made` tasks from `*first` on, and retires those that made
// them. False when the queue is full: the tasks are lost, and their room is
// given back, so that the lower half stays below the capacity and what is
// announced at this time. Nobody got slots meanwhile: those of others begin
// behind these.
__device__ inline bool announce_tasks(const TaskQueue& queue,
                                      uint32_t made,
                                      uint32_t retired,
                                      uint32_t* first) {
  const Atomic<uint64_t> tail(*queue.tail);
  // Counts are those modulo 2^32. No carry comes from the lower half.
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
