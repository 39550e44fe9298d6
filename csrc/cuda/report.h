// A kernel's report in addition to its outputs: faults of its input, and the
// length of outputs that it decides.
#pragma once

#include <stdint.h>

namespace gsample {

struct Report {
  enum Fault { kNone, kId, kIndptr, kIndices, kOverflow, kPtr, kRow, kWeight };

  int64_t fault;     // the first that was found
  int64_t where;     // position, column or edge that is at fault
  int64_t value;     // what stands there
  int64_t relation;  // of several graphs
  int64_t size;      // of an output
};

}  // namespace gsample
