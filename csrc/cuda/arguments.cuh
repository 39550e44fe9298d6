// Writes what it was given as arguments to memory.
#pragma once

#include "arguments.h"
#include "portable.h"

namespace gsample {

struct StoredArguments {
  static constexpr int kWords = 128;
  int64_t word[kWords];
  int64_t* to;
  int words;
};

__global__ void store_arguments_kernel(StoredArguments args) {
  for (int i = threadIdx.x; i < args.words; i += blockDim.x)
    args.to[i] = args.word[i];
}

}  // namespace gsample
