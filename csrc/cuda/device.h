// The device services that the operators in bind/ use, without CUDA's headers:
// device.cu for a GPU, emu/device.cpp for the emulator.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace gsample {

using StreamHandle = void*;  // a cudaStream_t
using EventHandle = void*;   // a cudaEvent_t

struct LaunchShape {
  int blocks;
  int threads;  // per block
};

// Copies to the host and waits for the copy, and all earlier work of the
// stream, to finish.
void copy_to_host(void* to, const void* from, size_t bytes, StreamHandle);

// Copies to the device. `from` may be reused at once.
void copy_to_device(void* to, const void* from, size_t bytes, StreamHandle);

// Whether the stream is idle. Not allowed during the capture of a CUDA graph.
bool is_idle(StreamHandle);

// Whether the stream is captured into a CUDA graph.
bool is_captured(StreamHandle);

// An event after all current work of the stream.
EventHandle record_event(StreamHandle);

// Whether the stream has reached an event; destroys the event if so.
bool event_passed(EventHandle);

// The device's address of `host`, or null unless it is pinned memory.
const void* device_address(const void* host);

// Fills memory that a kernel must not read before writing it: only in the
// emulator.
void poison(void* memory, size_t bytes);

// Raises an exception with the text of a CUDA runtime error.
[[noreturn]] void throw_cuda_error(const char* what, int error);

}  // namespace gsample
