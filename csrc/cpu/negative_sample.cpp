#include "negative_sample.h"

#include "parallel.h"

namespace gsample {

void negative_sample(const NegativeArgs& args, int64_t* out) {
  parallel_ranges(args.n, 512, max_threads(), [&](int64_t a, int64_t b) {
    for (int64_t i = a; i < b; ++i)
      out[i] = draw_negative(NegativeCandidates(args, i));
  });
}

}  // namespace gsample
