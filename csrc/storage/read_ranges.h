// Reads many ranges of a file at once. Stateless: whatever is needed for a
// call is made and ended in it, so that a process may be forked at any time.
#pragma once

#include <stdint.h>

namespace gsample {

struct ReadRange {
  int64_t offset;  // in the file
  int64_t size;
  int64_t to;  // in the output
};

// How a call ended. At the end of the file `error` is kEndOfFile.
struct ReadResult {
  int error;       // errno, or 0
  int64_t failed;  // the range that could not be read
};

constexpr int kEndOfFile = -1;

// Several ranges at a time, by threads that wait in pread.
ReadResult read_by_threads(int fd,
                           const ReadRange* ranges,
                           int64_t n,
                           char* out,
                           int threads);

// All ranges by one io_uring. ENOSYS: it cannot be had here.
ReadResult read_by_io_uring(int fd,
                            const ReadRange* ranges,
                            int64_t n,
                            char* out);

}  // namespace gsample
