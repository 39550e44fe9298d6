// Copies rows of fixed width from and to positions of two arrays.
#include <stdint.h>
#include <string.h>

#include <algorithm>

namespace gsample {

namespace {

constexpr int64_t kAhead = 8;       // rows between a prefetch and its use
constexpr int64_t kLine = 64;       // bytes of a line of the cache
constexpr int64_t kPrefetched = 4;  // lines; the processor continues by itself

void prefetch_row(const char* row, int64_t row_bytes) {
  const int64_t size = std::min(row_bytes, kPrefetched * kLine);
  for (int64_t i = 0; i < size; i += kLine)
    __builtin_prefetch(row + i);
}

}  // namespace

}  // namespace gsample

// out[to[i]] = data[at[i]] for each i < n; a missing `at` or `to` counts from
// 0.
extern "C" __attribute__((visibility("default"))) void gsample_copy_rows(
    const char* data,
    const int64_t* at,
    char* out,
    const int64_t* to,
    int64_t n,
    int64_t row_bytes) {
  using gsample::kAhead;
  for (int64_t i = 0; i < n; ++i) {
    if (at != nullptr && i + kAhead < n)
      gsample::prefetch_row(data + at[i + kAhead] * row_bytes, row_bytes);
    const int64_t from = at == nullptr ? i : at[i];
    memcpy(out + (to == nullptr ? i : to[i]) * row_bytes,
           data + from * row_bytes, row_bytes);
  }
}
