// Copies rows of a slab to the lists that need them: each list has a region of
// a scratch file, and a buffer that is written there when full.
#include <errno.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#include "../cpu/platform.h"
#include "crc32c.h"

namespace gsample {

namespace {

// Arguments of a call, see `_Call` in torch_gsample/storage/packed_rows.py.
struct RowPack {
  int64_t fd;
  const char* rows;      // the rows [first, last), contiguous
  int64_t first;         // rows of the source
  int64_t last;          //
  int64_t row_bytes;     // > 0
  const void* lists;     // rows, ascending in each list
  int64_t item;          // bytes per item: 4 (unsigned) or 8
  int64_t n;             // number of lists
  int64_t* cursor;       // [n] the next item of each list
  const int64_t* end;    // [n] end of each list
  char* buffers;         // [n, buffer_bytes], page-aligned
  int64_t buffer_bytes;  // a multiple of kBlockBytes
  int64_t* used;         // [n] bytes in each buffer
  int64_t* offset;       // [n] file offset of each buffer
  uint32_t* sums;        // [n] CRC-32C of the rows, without padding
  int64_t flush;         // whether to write partly full buffers
  int64_t threads;       // > 0
  int64_t failed;        // result: offset of the failed write
};

class Packer {
 public:
  explicit Packer(RowPack& call) : call_(call) {}

  int run() {
    const int64_t wanted = std::min(call_.threads, call_.n);
    std::vector<std::thread> helpers;
    try {
      for (int64_t i = 1; i < wanted; ++i)
        helpers.emplace_back(&Packer::work, this);
    } catch (const std::system_error&) {
      // Thread creation failed: the existing threads do the work.
    }
    work();
    for (std::thread& helper : helpers)
      helper.join();
    call_.failed = failed_;
    return error_;
  }

 private:
  void work() {
    for (int64_t i; error_ == 0 && (i = next_.fetch_add(1)) < call_.n;) {
      const int error = call_.item == 4
                            ? take(static_cast<const uint32_t*>(call_.lists), i)
                            : take(static_cast<const int64_t*>(call_.lists), i);
      if (error != 0)
        error_ = error;
    }
  }

  template <typename item_t>
  int take(const item_t* lists, int64_t i) {
    int64_t& at = call_.cursor[i];
    for (; at < call_.end[i]; ++at) {
      const int64_t row = static_cast<int64_t>(lists[at]);
      if (row >= call_.last)
        break;
      if (row < call_.first)
        return EINVAL;  // the list does not ascend
      const int error =
          append(i, call_.rows + (row - call_.first) * call_.row_bytes);
      if (error != 0)
        return error;
    }
    return call_.flush != 0 && call_.used[i] > 0 ? write(i) : 0;
  }

  // Appends a row, which may span two buffers.
  int append(int64_t i, const char* row) {
    char* buffer = call_.buffers + i * call_.buffer_bytes;
    int64_t& used = call_.used[i];
    for (int64_t left = call_.row_bytes; left > 0;) {
      const int64_t count = std::min(left, call_.buffer_bytes - used);
      memcpy(buffer + used, row, count);
      used += count;
      row += count;
      left -= count;
      if (used == call_.buffer_bytes) {
        const int error = write(i);
        if (error != 0)
          return error;
      }
    }
    return 0;
  }

  int write(int64_t i) {
    char* buffer = call_.buffers + i * call_.buffer_bytes;
    int64_t& used = call_.used[i];
    call_.sums[i] = crc32c(call_.sums[i], buffer, used);
    const int64_t size = (used + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    memset(buffer + used, 0, size - used);
    for (int64_t done = 0; done < size;) {
      const int64_t count = write_at(static_cast<int>(call_.fd), buffer + done,
                                     size - done, call_.offset[i] + done);
      if (count < 0 && errno == EINTR)
        continue;
      if (count <= 0) {
        failed_ = call_.offset[i] + done;
        return count < 0 ? errno : ENOSPC;
      }
      done += count;
    }
    call_.offset[i] += size;
    used = 0;
    return 0;
  }

  RowPack& call_;
  std::atomic<int64_t> next_{0};
  std::atomic<int> error_{0};
  std::atomic<int64_t> failed_{0};
};

}  // namespace

}  // namespace gsample

// Called from Python. Returns an errno.
extern "C" __attribute__((visibility("default"))) int gsample_pack_rows(
    gsample::RowPack* call) {
  return gsample::Packer(*call).run();
}
