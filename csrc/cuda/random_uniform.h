// Uniform numbers on a GPU. All pointers are to device memory.
#pragma once

#include "device.h"

namespace gsample {

struct RandomUniformCuda {
  const int64_t* id;  // [n]
  int64_t n;
  uint64_t stream;  // key of the draws
  double* out;      // [n]
};

// Launches the kernel that writes the high 53 bits of each id's draw.
void random_uniform(const RandomUniformCuda& args, StreamHandle stream);

}  // namespace gsample
