// The emulator as a device, and its settings for tests.
#include "../cuda/device.h"

#include <string.h>

#include <map>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "../bind/device_cuda.h"
#include "../cuda/device_state.h"
#include "emulator.h"

namespace gsample {

namespace {

// Host memory by address. Kernels see pinned memory at another address: here a
// copy. They cannot see other host memory.
std::map<const void*, std::vector<char>>& host_memory() {
  static std::map<const void*, std::vector<char>> memory;
  return memory;
}

// The number of events, and the number that has passed if not all. Kernels run
// synchronously here, so tests decide when events pass.
struct Events {
  uintptr_t recorded = 0;
  std::optional<uintptr_t> passed;
  bool capturing = false;
};

Events& events() {
  static Events all;
  return all;
}

// The number of allocations before one fails; negative: none fails.
int64_t& allocations_left() {
  static int64_t left = -1;
  return left;
}

// The runtime's report after an allocation failed for another reason than a
// lack of memory; empty if memory is lacking.
std::optional<DeviceState>& state_at_fault() {
  static std::optional<DeviceState> state;
  return state;
}

}  // namespace

#if defined(GSAMPLE_STUB)
// Results of kernels that did not run: no fault, and an empty sample.
void copy_to_host(void* to, const void*, size_t bytes, StreamHandle) {
  memset(to, 0, bytes);
}
#else
void copy_to_host(void* to, const void* from, size_t bytes, StreamHandle) {
  memcpy(to, from, bytes);
  emu::runs_since_wait() = false;
}
#endif

void copy_to_device(void* to, const void* from, size_t bytes, StreamHandle) {
  memcpy(to, from, bytes);
}

bool is_idle(StreamHandle) {
  return !emu::runs_since_wait();
}

bool is_captured(StreamHandle) {
  return events().capturing;
}

EventHandle record_event(StreamHandle) {
  return reinterpret_cast<EventHandle>(++events().recorded);
}

bool event_passed(EventHandle event) {
  return reinterpret_cast<uintptr_t>(event) <=
         events().passed.value_or(UINTPTR_MAX);
}

const void* device_address(const void* host) {
  const auto found = host_memory().find(host);
  if (found == host_memory().end())
    return host;  // device memory, which the host emulates, too
  return found->second.empty() ? nullptr : found->second.data();
}

bool on_device_of(const Tensor& tensor, const Tensor&) {
  return host_memory().count(tensor.const_data_ptr()) == 0;
}

#if defined(GSAMPLE_STUB)
void poison(void*, size_t) {}
#else
void poison(void* memory, size_t bytes) {
  memset(memory, 0xCD, bytes);
}
#endif

void take_memory(int64_t) {
  if (allocations_left() == 0 && state_at_fault())
    throw std::runtime_error("an error of torch");
  if (allocations_left() == 0)
    throw std::bad_alloc();
  allocations_left() -= allocations_left() > 0;
}

DeviceState device_state() {
  return state_at_fault().value_or(DeviceState{"", 0});
}

int64_t& max_sorted_by_torch() {
  static int64_t numbers = INT32_MAX;
  return numbers;
}

int64_t max_sorted() {
  return max_sorted_by_torch();
}

DeviceScope::DeviceScope(const char* op, const Tensor&)
    : memory_(op), stream_(nullptr) {
  host_reads_.start(stream_);
}

}  // namespace gsample

extern "C" __attribute__((visibility("default"))) void gsample_emulator(
    uint64_t seed,
    int resident_blocks,
    int block_threads,
    int yield_percent) {
  gsample::emu::Config& config = gsample::emu::config();
  config.seed = seed;
  config.resident_blocks = resident_blocks;
  config.block_threads = block_threads;
  config.yield_percent = yield_percent;
}

// Lets the device run out of memory after a number of allocations, or never if
// the number is negative.
extern "C" __attribute__((visibility("default"))) void gsample_emulator_memory(
    int64_t allocations) {
  gsample::allocations_left() = allocations;
}

// Sets the most numbers per call of torch's sort.
extern "C" __attribute__((visibility("default"))) void gsample_emulator_sort(
    int64_t numbers) {
  gsample::max_sorted_by_torch() = numbers;
}

// Lets that allocation fail for another reason: a fault of the device, or one
// unknown to CUDA while this many bytes are free. Null: a lack of memory.
extern "C" __attribute__((visibility("default"))) void gsample_emulator_fault(
    const char* fault,
    int64_t free_bytes) {
  gsample::state_at_fault().reset();
  if (fault != nullptr)
    gsample::state_at_fault() = gsample::DeviceState{fault, free_bytes};
}

// Lets all events pass except the last `pending` ones and later ones; if the
// number is negative, all present and future events. A CUDA graph may capture
// the stream.
extern "C" __attribute__((visibility("default"))) void gsample_emulator_events(
    int64_t running,
    int capturing) {
  gsample::Events& events = gsample::events();
  events.passed.reset();
  if (running >= 0)
    events.passed = events.recorded - static_cast<uintptr_t>(running);
  events.capturing = capturing != 0;
}

// Declares that memory is the host's, pinned or not, or forgets it.
extern "C" __attribute__((visibility("default"))) void
gsample_emulator_host(const void* memory, size_t bytes, int pinned) {
  const char* begin = static_cast<const char*>(memory);
  gsample::host_memory()[memory].assign(begin, pinned ? begin + bytes : begin);
}

extern "C" __attribute__((visibility("default"))) void gsample_emulator_forget(
    const void* memory) {
  gsample::host_memory().erase(memory);
}
