// Arguments of variable length.
#pragma once

#include "device.h"

namespace gsample {

// Copies 64-bit words to the device. They travel as kernel arguments: nothing
// waits, and a CUDA graph holds its own copy.
void store_arguments(void* to,
                     const int64_t* from,
                     int64_t words,
                     StreamHandle stream);

}  // namespace gsample
