// A queue of tasks in device memory: see task_queue.cuh.
#pragma once

#include <stdint.h>

namespace gsample {

struct TaskQueue {
  uint64_t* task;   // [capacity]
  uint32_t* ready;  // [capacity] 1 once a slot is published
  uint32_t* head;   // slots below are taken, including those without a task
  uint64_t* tail;   // slots below the lower half are announced; the upper half
                    // counts the tasks announced and not retired
  uint32_t capacity;
};

}  // namespace gsample
