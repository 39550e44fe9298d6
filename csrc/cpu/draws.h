// Vectorised draws: the numbers of core/philox.h, with several columns in a
// vector register where the CPU has AVX2.
#pragma once

#include <stdint.h>

namespace gsample {

// Whether the processor has AVX2.
bool has_avx2();

// Size of a group of lanes; arrays are padded to a multiple of it.
constexpr int kLaneGroup = 4;

// out[slot * stride + lane] = Stream{key, root[lane], id[lane]}(slot)
// for slot in [0, slots) and lane in [0, lanes). `out` has room for an even
// number of slots and `stride >= lanes` rounded up to kLaneGroup.
void draw_lanes(uint64_t key,
                const uint64_t* root,
                const uint64_t* id,
                int lanes,
                int slots,
                int stride,
                uint64_t* out);

// first[lane] and second[lane] = the halves of block index[lane] of
// Stream{key, root[lane], id[lane]}, for lane in [0, lanes). All arrays are
// padded to kLaneGroup.
void draw_blocks(uint64_t key,
                 const uint64_t* index,
                 const uint64_t* root,
                 const uint64_t* id,
                 int lanes,
                 uint64_t* first,
                 uint64_t* second);

}  // namespace gsample
