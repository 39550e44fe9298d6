// Negatives on a GPU. All pointers are to device memory.
#pragma once

#include "../core/negative.h"
#include "device.h"
#include "report.h"

namespace gsample {

struct NegativeSampleCuda {
  NegativeArgs args;
  int64_t* out;    // [n]
  Report* report;  // of anchors, or null without anchors
};

// Launches the kernel that writes a node or -1 for each item.
void negative_sample(const NegativeSampleCuda& args, StreamHandle stream);

}  // namespace gsample
