// Arguments that are too long for a kernel's own.
#pragma once

#include "device.h"

namespace gsample {

// Copies 64-bit words to the device. They travel as arguments of kernels, so
// that nothing waits, and a CUDA graph keeps its own copy of them.
void store_arguments(void* to,
                     const int64_t* from,
                     int64_t words,
                     StreamHandle stream);

}  // namespace gsample
