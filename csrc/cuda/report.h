// A kernel's report, in addition to its outputs: faults of its input, and the
// length of outputs that the kernel decides.
#pragma once

#include <stdint.h>

namespace gsample {

struct Report {
  enum Fault { kNone, kId, kIndptr, kIndices, kOverflow, kPtr, kRow, kWeight };

  int64_t fault;     // the first one found
  int64_t where;     // faulty position, column or edge
  int64_t value;     // value there
  int64_t relation;  // of several graphs: which one
  int64_t size;      // of an output
};

}  // namespace gsample
