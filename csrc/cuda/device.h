// What the operators in bind/ need of a device, without CUDA's headers:
// device.cu for a GPU, emu/device.cpp for the emulator.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace gsample {

using StreamHandle = void*;  // a cudaStream_t
using EventHandle = void*;   // a cudaEvent_t

struct LaunchShape {
  int blocks;
  int threads;  // of a block
};

// Copies to the host and waits until the copy, and all that the stream did
// before, is done.
void copy_to_host(void* to, const void* from, size_t bytes, StreamHandle);

// Copies to the device. `from` may be used again at once.
void copy_to_device(void* to, const void* from, size_t bytes, StreamHandle);

// Whether the stream has nothing to do. No CUDA graph may record it.
bool is_idle(StreamHandle);

// Whether a CUDA graph records the stream.
bool is_captured(StreamHandle);

// An event after all that the stream has to do now.
EventHandle record_event(StreamHandle);

// Whether the stream has reached an event, which is destroyed then.
bool event_passed(EventHandle);

// Where kernels find what is at `host`, null unless it is pinned memory.
const void* device_address(const void* host);

// Fills memory that a kernel must not read before it wrote it: only in the
// emulator.
void poison(void* memory, size_t bytes);

// Raises the text of an error of CUDA's runtime.
[[noreturn]] void throw_cuda_error(const char* what, int error);

}  // namespace gsample
