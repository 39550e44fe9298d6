// Reads rows of fixed width by number: sorted, adjacent ones merged, all
// requests of a group in flight; the next group is read while rows of the
// current one are checked and copied.
#include <errno.h>
#include <string.h>

#include <algorithm>
#include <functional>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "crc32c.h"
#include "read_ranges.h"

namespace gsample {

namespace {

constexpr int64_t kMostExtent = 512 << 10;  // bytes per request
constexpr int kDamaged = -2;                // a block is damaged
constexpr int kOutOfRange = -3;             // there is no such row

// Arguments of a call, see `_Call` in torch_gsample/storage/row_reads.py.
struct RowRead {
  int64_t fd;
  int64_t data;       // offset of the first row, a multiple of kBlockBytes
  int64_t row_bytes;  // > 0
  int64_t num_rows;
  const uint32_t* checksums;  // [num_blocks], or null: check nothing
  uint8_t* checked;  // [num_blocks] whether each block was checked; null: none
  uint64_t generation;
  const int64_t* index;  // [n]
  int64_t n;
  char* out;             // [n, row_bytes]
  char* staging;         // page-aligned
  int64_t staging_size;  // two halves, each at least one row and two blocks
  int64_t gap;           // largest gap of blocks to read rather than skip
  int64_t threads;       // 0: by io_uring
  // Results.
  int64_t failed;  // file offset, or the row out of range
  int64_t requests;
  int64_t blocks;
};

struct Wanted {
  int64_t row;
  int64_t to;  // position in `out`
};

// Rows that are read together: `rows[begin:end]`, from `ranges`.
struct Group {
  size_t begin = 0, end = 0;
  std::vector<ReadRange> ranges;
  std::vector<int64_t> first;  // first block of each range
  ReadResult result{0, 0};
};

class Reader {
 public:
  explicit Reader(RowRead& call)
      : call_(call), half_(call.staging_size / 2 / kBlockBytes * kBlockBytes) {}

  int run() {
    sort();
    if (!rows_.empty() &&
        (rows_.front().row < 0 || rows_.back().row >= call_.num_rows)) {
      call_.failed =
          rows_.front().row < 0 ? rows_.front().row : rows_.back().row;
      return kOutOfRange;
    }
    Group groups[2];
    int error = 0, at = 0;
    groups[at] = plan(0);
    read(groups[at], at);
    while (error == 0 && groups[at].begin < groups[at].end) {
      Group& now = groups[at];
      if (now.result.error != 0) {
        call_.failed = now.ranges[now.result.failed].offset;
        return now.result.error;
      }
      Group& next = groups[1 - at];
      next = plan(now.end);
      std::thread helper = start(next, 1 - at);
      error = copy(now, at);
      if (helper.joinable())
        helper.join();
      at = 1 - at;
    }
    // A row larger than a half would never be read.
    return error == 0 && groups[at].end < rows_.size() ? EINVAL : error;
  }

 private:
  void sort() {
    rows_.resize(call_.n);
    bool ascends = true;
    for (int64_t i = 0; i < call_.n; ++i) {
      rows_[i] = {call_.index[i], i};
      ascends = ascends && (i == 0 || call_.index[i - 1] <= call_.index[i]);
    }
    if (!ascends)
      std::sort(rows_.begin(), rows_.end(), [](Wanted a, Wanted b) {
        return a.row != b.row ? a.row < b.row : a.to < b.to;
      });
  }

  int64_t first_block(int64_t row) const {
    return row * call_.row_bytes / kBlockBytes;
  }
  int64_t last_block(int64_t row) const {
    return ((row + 1) * call_.row_bytes - 1) / kBlockBytes;
  }

  // Adds rows from `begin` on while their blocks fit in a half.
  Group plan(size_t begin) {
    Group group;
    group.begin = group.end = begin;
    int64_t used = 0, last = -1;
    for (; group.end < rows_.size(); ++group.end) {
      const int64_t row = rows_[group.end].row;
      const int64_t to = last_block(row);
      const bool joins = last >= 0 && first_block(row) <= last + 1 + call_.gap;
      const int64_t from = joins ? last + 1 : first_block(row);
      const int64_t size = (to - from + 1) * kBlockBytes;
      if (used + size > half_)
        break;
      last = std::max(last, to);
      if (size <= 0)
        continue;
      used += size;
      extend(group, from, size, joins);
    }
    call_.requests += group.ranges.size();
    call_.blocks += used / kBlockBytes;
    return group;
  }

  void extend(Group& group, int64_t from, int64_t size, bool joins) {
    if (joins && group.ranges.back().size + size <= kMostExtent) {
      group.ranges.back().size += size;
      return;
    }
    const bool empty = group.ranges.empty();
    const int64_t to =
        empty ? 0 : group.ranges.back().to + group.ranges.back().size;
    group.ranges.push_back({call_.data + from * kBlockBytes, size, to});
    group.first.push_back(from);
  }

  void read(Group& group, int half) {
    const int64_t n = static_cast<int64_t>(group.ranges.size());
    if (n == 0)
      return;
    char* out = call_.staging + half * half_;
    const int fd = static_cast<int>(call_.fd);
    const int threads = static_cast<int>(call_.threads);
    try {
      group.result =
          threads > 0
              ? read_by_threads(fd, group.ranges.data(), n, out, threads)
              : read_by_io_uring(fd, group.ranges.data(), n, out);
    } catch (const std::bad_alloc&) {  // no one else catches it in a thread
      group.result = {ENOMEM, 0};
    }
  }

  std::thread start(Group& group, int half) {
    if (group.begin < group.end) {
      try {
        return std::thread(&Reader::read, this, std::ref(group), half);
      } catch (const std::system_error&) {
        read(group, half);  // thread creation failed
      }
    }
    return {};
  }

  // Checks the blocks of rows and copies the rows to their positions.
  int copy(const Group& group, int half) {
    const char* in = call_.staging + half * half_;
    size_t range = 0;
    int64_t done = -1;  // last checked block
    for (size_t i = group.begin; i < group.end; ++i) {
      const int64_t row = rows_[i].row;
      const int64_t first = first_block(row), last = last_block(row);
      while (range + 1 < group.first.size() && group.first[range + 1] <= first)
        ++range;
      // Ranges of merged blocks are consecutive in the staging memory.
      const char* base = in + group.ranges[range].to;
      const int64_t start = group.first[range];
      for (int64_t block = std::max(first, done + 1); block <= last; ++block) {
        if (!is_whole(block, base + (block - start) * kBlockBytes))
          return kDamaged;
        done = block;
      }
      memcpy(call_.out + rows_[i].to * call_.row_bytes,
             base + row * call_.row_bytes - start * kBlockBytes,
             call_.row_bytes);
    }
    return 0;
  }

  bool is_whole(int64_t block, const char* data) {
    if (call_.checksums == nullptr ||
        (call_.checked != nullptr && call_.checked[block] != 0))
      return true;
    if (block_checksum(call_.generation, block, data) !=
        call_.checksums[block]) {
      call_.failed = call_.data + block * kBlockBytes;
      return false;
    }
    if (call_.checked != nullptr)
      call_.checked[block] = 1;
    return true;
  }

  RowRead& call_;
  const int64_t half_;
  std::vector<Wanted> rows_;
};

}  // namespace

}  // namespace gsample

// Called from Python. Returns an errno, or one of the negative codes above.
extern "C" __attribute__((visibility("default"))) int gsample_read_rows(
    gsample::RowRead* call) {
  try {
    return gsample::Reader(*call).run();
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}
