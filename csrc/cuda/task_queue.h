// A queue of tasks in the device's memory: see task_queue.cuh.
#pragma once

#include <stdint.h>

namespace gsample {

struct TaskQueue {
  uint64_t* task;     // [capacity]
  uint32_t* ready;    // [capacity] 1 once a slot is published
  uint32_t* head;     // slots below are claimed
  uint32_t* tail;     // slots below are announced
  uint32_t* pending;  // tasks that are announced and not retired
  uint32_t* full;     // 1 once there was no room
  uint32_t capacity;
};

}  // namespace gsample
