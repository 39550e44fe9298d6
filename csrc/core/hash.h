// A finalizer that mixes the bits of a 64-bit key (variant 13 in Stafford's
// study of MurmurHash3's finalizer), for hash tables. It decides the slot of a
// key, never a sample.
#pragma once

#include "hd.h"

namespace gsample {

GSAMPLE_HD uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace gsample
