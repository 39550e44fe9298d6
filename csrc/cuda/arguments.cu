// Writes its arguments to memory.
#include "arguments.h"

#include <algorithm>

#include "launch.cuh"
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

void store_arguments(void* to,
                     const int64_t* from,
                     int64_t words,
                     StreamHandle stream) {
  constexpr int64_t kWords = StoredArguments::kWords;
  StoredArguments args;
  for (int64_t done = 0; done < words; done += kWords) {
    args.words = static_cast<int>(std::min(kWords, words - done));
    args.to = static_cast<int64_t*>(to) + done;
    std::copy(from + done, from + done + args.words, args.word);
    launch("store_arguments", store_arguments_kernel, {1, 32}, stream, args);
  }
}

}  // namespace gsample
