// Reads many ranges of a file at once. Stateless: each call creates and frees
// its resources, so a process may fork at any time.
#pragma once

#include <stdint.h>

namespace gsample {

struct ReadRange {
  int64_t offset;  // in the file
  int64_t size;
  int64_t to;  // in the output
};

// The outcome of a call. At the end of the file `error` is kEndOfFile.
struct ReadResult {
  int error;       // errno, or 0
  int64_t failed;  // the range that could not be read
};

constexpr int kEndOfFile = -1;

// Reads several ranges at a time, with threads that wait in pread.
ReadResult read_by_threads(int fd,
                           const ReadRange* ranges,
                           int64_t n,
                           char* out,
                           int threads);

// Reads all ranges with one io_uring. ENOSYS: io_uring is unavailable.
ReadResult read_by_io_uring(int fd,
                            const ReadRange* ranges,
                            int64_t n,
                            char* out);

}  // namespace gsample
