// Negatives on a GPU. All pointers are to the device's memory.
#pragma once

#include "../core/negative.h"
#include "device.h"
#include "report.h"

namespace gsample {

struct NegativeSampleCuda {
  NegativeArgs args;
  int64_t* out;    // [n]
  Report* report;  // of anchors, or null if there are none
};

// Starts to write a node for each item, or -1.
void negative_sample(const NegativeSampleCuda& args, StreamHandle stream);

}  // namespace gsample
