// Looks items up in cached blocks, see torch_gsample/storage/blocks.py.
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <shared_mutex>

#include "cached_items.h"

namespace gsample {

namespace {

// Copies runs of items; each run lies in one block.
template <typename item_t>
void copy_runs(const int64_t* position,
               const int64_t* offset,
               const int64_t* first,
               const int64_t* length,
               const char* const* block,
               int64_t num_runs,
               item_t* out) {
  constexpr int64_t kAhead = 4;  // runs between a prefetch and its use
  for (int64_t r = 0; r < num_runs; ++r) {
    if (r + kAhead < num_runs)
      __builtin_prefetch(block[r + kAhead] + offset[r + kAhead] % kBlockBytes);
    constexpr int64_t kSize = sizeof(item_t);
    const int64_t begin = first[r], end = begin + length[r];
    const int64_t at = offset[r] % kBlockBytes - kSize * position[begin];
    for (int64_t i = begin; i < end;) {
      const char* from = block[r] + (at + kSize * position[i]);
      const int64_t n = count_adjacent(position + i, end - i);
      if (n == 1)
        memcpy(out + i, from, kSize);  // one instruction
      else
        memcpy(out + i, from, kSize * n);
      i += n;
    }
  }
}

}  // namespace

}  // namespace gsample

// Makes the guard of a cache; null if out of memory.
extern "C" __attribute__((visibility("default"))) std::shared_mutex*
gsample_new_guard() {
  return new (std::nothrow) std::shared_mutex();
}

extern "C" __attribute__((visibility("default"))) void gsample_free_guard(
    std::shared_mutex* guard) {
  delete guard;
}

// Adds distinct blocks, unless they are cached. A hand moves around the slots,
// clears marks and takes unmarked slots. A full cache refuses blocks that it
// did not refuse recently.
extern "C" __attribute__((visibility("default"))) void gsample_insert_blocks(
    const int64_t* block,  // [n]; the last ones remain in a cache not yet full
    int64_t n,
    const char* from,  // [n * kBlockBytes]
    int64_t capacity,  // positive
    int64_t num_blocks,
    int64_t most_refused,
    int32_t* slot,      // [num_blocks] the slot of each block + 1, or 0
    int64_t* held,      // [capacity] the block in each slot, or -1
    uint8_t* marked,    // [capacity]
    uint8_t* refused,   // [num_blocks]
    int64_t* position,  // [2] of the hand; the number of refused blocks
    char* data,         // [capacity * kBlockBytes]
    std::shared_mutex* guard) {
  const std::unique_lock<std::shared_mutex> lock(*guard);
  const bool is_full = held[capacity - 1] >= 0;
  int64_t &hand = position[0], &num_refused = position[1];
  for (int64_t i = is_full ? 0 : std::max(n - capacity, int64_t{0}); i < n;
       ++i) {
    if (slot[block[i]] != 0)
      continue;  // another thread read it, too
    if (is_full && !refused[block[i]]) {
      if (++num_refused > most_refused) {
        memset(refused, 0, num_blocks);
        num_refused = 1;
      }
      refused[block[i]] = 1;
      continue;
    }
    for (; marked[hand]; hand = (hand + 1) % capacity)
      marked[hand] = 0;
    if (held[hand] >= 0)
      slot[held[hand]] = 0;
    held[hand] = block[i];
    slot[block[i]] = static_cast<int32_t>(hand + 1);
    memcpy(data + hand * gsample::kBlockBytes, from + i * gsample::kBlockBytes,
           gsample::kBlockBytes);
    hand = (hand + 1) % capacity;
  }
}

// Copies runs of items from the blocks that contain them.
extern "C" __attribute__((visibility("default"))) void gsample_copy_runs(
    const int64_t* position,  // [n] of edges
    const int64_t* offset,    // [num_runs] file offset of the first item
    const int64_t* first,     // [num_runs] its index in `position`
    const int64_t* length,
    const char* const* block,  // [num_runs] address of each block
    int64_t num_runs,
    int64_t item_bytes,  // 4 or 8
    void* out) {         // [n]
  if (item_bytes == 4)
    gsample::copy_runs(position, offset, first, length, block, num_runs,
                       static_cast<int32_t*>(out));
  else
    gsample::copy_runs(position, offset, first, length, block, num_runs,
                       static_cast<int64_t*>(out));
}
