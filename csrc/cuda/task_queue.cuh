// A queue of tasks that make tasks, for persistent kernels without a grid
// barrier (after PGSampler, but for its end: blocks there may leave early).
//
//   claim    one thread of a block takes a few slots, never past the tail;
//   read     waits until a slot is published;
//   announce counts new tasks as pending, then makes room for them;
//   publish  writes a task, then says so (release, to the acquire of read);
//   retire   when all that the claimed tasks made is announced, they are no
//            longer pending. Nothing is pending exactly when all is done.
#pragma once

#include "portable.h"
#include "task_queue.h"

namespace gsample {

constexpr int kNoMoreTasks = -1;

// Takes up to `most` slots from `*first` on, and returns how many: perhaps 0
// for now.
__device__ inline int claim_tasks(const TaskQueue& queue,
                                  uint32_t most,
                                  uint32_t* first) {
  const Atomic<uint32_t> head(*queue.head), tail(*queue.tail);
  uint32_t from = head.load(kRelaxed);
  for (;;) {
    const uint32_t announced = tail.load(kRelaxed);
    if (from >= announced)
      break;
    const uint32_t left = announced - from;
    const uint32_t count = left < most ? left : most;
    if (head.compare_exchange_strong(from, from + count, kRelaxed)) {
      *first = from;
      return static_cast<int>(count);
    }
  }
  return Atomic<uint32_t>(*queue.pending).load(kAcquire) == 0 ? kNoMoreTasks
                                                              : 0;
}

// The task of a slot that this thread claimed.
__device__ inline uint64_t read_task(const TaskQueue& queue, uint32_t slot) {
  while (Atomic<uint32_t>(queue.ready[slot]).load(kAcquire) == 0)
    back_off();
  return queue.task[slot];
}

// Makes room for `count` tasks from `*first` on. False when the queue is full:
// the tasks are lost, and the host is told.
__device__ inline bool announce_tasks(const TaskQueue& queue,
                                      uint32_t count,
                                      uint32_t* first) {
  const Atomic<uint32_t> tail(*queue.tail);
  uint32_t from = tail.load(kRelaxed);
  Atomic<uint32_t>(*queue.pending).fetch_add(count, kRelaxed);
  do {
    if (queue.capacity - from < count) {
      Atomic<uint32_t>(*queue.pending).fetch_sub(count, kRelaxed);
      Atomic<uint32_t>(*queue.full).store(1, kRelaxed);
      return false;
    }
  } while (!tail.compare_exchange_strong(from, from + count, kRelaxed));
  *first = from;
  return true;
}

// Every announced slot must be published.
__device__ inline void publish_task(const TaskQueue& queue,
                                    uint32_t slot,
                                    uint64_t task) {
  queue.task[slot] = task;
  Atomic<uint32_t>(queue.ready[slot]).store(1, kRelease);
}

__device__ inline void retire_tasks(const TaskQueue& queue, uint32_t count) {
  Atomic<uint32_t>(*queue.pending).fetch_sub(count, kAcqRel);
}

}  // namespace gsample
