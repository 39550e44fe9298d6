// The CUDA runtime's report on the current device: device.cu for a GPU,
// emu/device.cpp for the emulator.
#pragma once

#include <stdint.h>

#include <string>

namespace gsample {

struct DeviceState {
  std::string fault;  // CUDA's error; empty if the device works
  int64_t free_bytes;
};

DeviceState device_state();

}  // namespace gsample
