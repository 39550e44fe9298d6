// How fast this machine reads memory at random places when nothing but the
// reads is in the way: what bounds a sampler.
#include <stdint.h>

extern "C" uint64_t random_reads_32(const uint32_t* data,
                                    const uint32_t* place,
                                    int64_t n) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += data[place[i]];
  return sum;
}

extern "C" uint64_t random_reads_64(const uint64_t* data,
                                    const uint32_t* place,
                                    int64_t n) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += data[place[i]];
  return sum;
}
