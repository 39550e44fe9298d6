// The emulator as a device, and how tests set it.
#include "../cuda/device.h"

#include <string.h>

#include <stdexcept>

#include "../bind/device_cuda.h"
#include "emulator.h"

namespace gsample {

void copy_to_host(void* to, const void* from, size_t bytes, StreamHandle) {
  memcpy(to, from, bytes);
}

void copy_to_device(void* to, const void* from, size_t bytes, StreamHandle) {
  memcpy(to, from, bytes);
}

const void* device_address(const void* host) {
  return host;
}

void poison(void* memory, size_t bytes) {
  memset(memory, 0xCD, bytes);
}

DeviceScope::DeviceScope(const char*, const Tensor&) : stream_(nullptr) {}

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
