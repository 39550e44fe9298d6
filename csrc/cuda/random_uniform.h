// Uniform numbers on a GPU. All pointers are to the device's memory.
#pragma once

#include "device.h"

namespace gsample {

struct RandomUniformCuda {
  const int64_t* id;  // [n]
  int64_t n;
  uint64_t stream;  // key of the draws
  double* out;      // [n]
};

// Starts to write the 53 high bits of the draw of each id.
void random_uniform(const RandomUniformCuda& args, StreamHandle stream);

}  // namespace gsample
