// The rows that an inference chunk reads, and their positions in the chunk:
// each row's mark is -1, then 0, then the position of the row.
#include <stdint.h>

// Marks rows. Returns the number of newly marked ones, or -1 if an id is out of
// range.
extern "C" __attribute__((visibility("default"))) int64_t
gsample_mark_rows(const int64_t* ids,
                  int64_t n,
                  int32_t* mark,
                  int64_t num_rows) {
  int64_t added = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (ids[i] < 0 || ids[i] >= num_rows)
      return -1;
    added += mark[ids[i]] < 0;
    mark[ids[i]] = 0;
  }
  return added;
}

// Numbers the marked rows, and writes the first `count` of them to `out`.
extern "C" __attribute__((visibility("default"))) void gsample_number_rows(
    int32_t* mark,
    int64_t num_rows,
    int64_t* out,
    int64_t count) {
  int32_t next = 0;
  for (int64_t row = 0; row < num_rows && next < count; ++row) {
    if (mark[row] < 0)
      continue;
    mark[row] = next;
    out[next++] = row;
  }
}
