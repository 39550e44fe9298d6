// Finds items in blocks that a cache holds, see
// torch_gsample/storage/blocks.py.
#include <stdint.h>
#include <string.h>

#include "crc32c.h"

namespace gsample {

namespace {

// Copies the items whose blocks are there; returns how many are missing.
template <int64_t kItem>
int64_t find_items(const int64_t* offset,
                   int64_t n,
                   const int32_t* slot,
                   int64_t num_blocks,
                   const char* data,
                   uint8_t* marked,
                   char* out,
                   int64_t* missing) {
  int64_t num_missing = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t block = static_cast<uint64_t>(offset[i]) / kBlockBytes;
    const bool exists = block < static_cast<uint64_t>(num_blocks);
    const int64_t at = exists ? slot[block] - 1 : -1;
    if (at < 0) {
      missing[num_missing++] = i;
      continue;
    }
    marked[at] = 1;
    memcpy(out + i * kItem, data + at * kBlockBytes + offset[i] % kBlockBytes,
           kItem);
  }
  return num_missing;
}

}  // namespace

}  // namespace gsample

extern "C" __attribute__((visibility("default"))) int64_t gsample_find_items(
    const int64_t* offset,  // [n] in the file, multiples of item_bytes
    int64_t n,
    int64_t item_bytes,   // 4, 8 or kBlockBytes
    const int32_t* slot,  // [num_blocks] the slot of each block + 1, or 0
    int64_t num_blocks,
    const char* data,    // [num_slots * kBlockBytes]
    uint8_t* marked,     // [num_slots] set where an item was found
    char* out,           // [n * item_bytes]
    int64_t* missing) {  // [n] the items whose blocks are not there
  const auto find = item_bytes == 4 ? gsample::find_items<4>
                    : item_bytes == 8
                        ? gsample::find_items<8>
                        : gsample::find_items<gsample::kBlockBytes>;
  return find(offset, n, slot, num_blocks, data, marked, out, missing);
}
