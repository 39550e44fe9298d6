// Negatives on the CPU, see core/negative.h.
#pragma once

#include "../core/negative.h"

namespace gsample {

// Writes a node or -1 for each item into `out` [n].
void negative_sample(const NegativeArgs& args, int64_t* out);

}  // namespace gsample
