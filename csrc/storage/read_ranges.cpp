#include "read_ranges.h"

#include <errno.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "../cpu/platform.h"

namespace gsample {

namespace {

int read_range(int fd, const ReadRange& range, char* out) {
  for (int64_t done = 0; done < range.size;) {
    const int64_t count = read_at(fd, out + range.to + done, range.size - done,
                                  range.offset + done);
    if (count > 0)
      done += count;
    else if (count == 0)
      return kEndOfFile;
    else if (errno != EINTR)
      return errno;
  }
  return 0;
}

}  // namespace

ReadResult read_by_threads(int fd,
                           const ReadRange* ranges,
                           int64_t n,
                           char* out,
                           int threads) {
  constexpr int64_t kRangesOfThread = 4;  // fewer are not worth a thread
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  ReadResult result{0, 0};
  const auto work = [&] {
    for (int64_t i; (i = next.fetch_add(1)) < n;) {
      const int error = read_range(fd, ranges[i], out);
      if (error == 0)
        continue;
      const std::lock_guard<std::mutex> lock(mutex);
      if (result.error == 0 || i < result.failed)
        result = {error, i};
      next = n;  // the others stop, too
    }
  };
  std::vector<std::thread> helpers;
  const int64_t wanted = std::min<int64_t>(threads, n / kRangesOfThread);
  try {
    while (static_cast<int64_t>(helpers.size()) + 1 < wanted)
      helpers.emplace_back(work);
  } catch (const std::system_error&) {
    // Thread creation failed: the existing threads do the work.
  }
  work();
  for (std::thread& helper : helpers)
    helper.join();
  return result;
}

}  // namespace gsample

// Called from Python, see torch_gsample/storage/reading.py. Returns an errno.
extern "C" __attribute__((visibility("default"))) int gsample_read_ranges(
    int fd,
    const gsample::ReadRange* ranges,
    int64_t n,
    char* out,
    int threads,  // 0: by io_uring
    int64_t* failed) {
  const gsample::ReadResult result =
      threads > 0 ? gsample::read_by_threads(fd, ranges, n, out, threads)
                  : gsample::read_by_io_uring(fd, ranges, n, out);
  *failed = result.failed;
  return result.error;
}
