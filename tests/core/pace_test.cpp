// Prints for how long a thread works alone, in milliseconds, after each of
// some rounds of its team: a digit is how late the team was, in tenths of a
// millisecond.
#include "cpu/pace.h"

#include <cstdio>

int main(int, char** argv) {
  gsample::Pace pace;
  int64_t now = 1'000'000'000;
  for (const char* late = argv[1]; *late; ++late) {
    pace.ended(now, (*late - '0') * int64_t{100'000});
    int64_t alone = 0;
    while (pace.is_alone(now + alone))
      alone += 1'000'000;
    std::printf("%d ", static_cast<int>(alone / 1'000'000));
    now += alone;
  }
}
