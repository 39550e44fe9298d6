// A finalizer that spreads the bits of a 64-bit key (Stafford's variant 13 of
// MurmurHash3's finalizer), for hash tables. It decides where a key is stored,
// never what is sampled.
#pragma once

#include "hd.h"

namespace gsample {

GSAMPLE_HD uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace gsample
