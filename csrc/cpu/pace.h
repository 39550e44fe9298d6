// When to work alone, because helpers come late.
#pragma once

#include <stdint.h>

#include <algorithm>

namespace gsample {

// What a thread knows of the team that helps it. A team is as slow as its
// slowest member: next to other busy processes, a member that waits for its
// processor keeps all waiting, for milliseconds. So a thread whose team was
// late works alone for a while, and for twice as long each time that it finds
// the team late again: what is lost is a small part of the time, and a team
// that is on time again is used again. Times are in nanoseconds.
class Pace {
 public:
  // Waking a sleeping thread takes less.
  static constexpr int64_t kLate = 500'000;
  static constexpr int64_t kFirstPause = 2'000'000;
  static constexpr int64_t kLastPause = 1'000'000'000;
  // Pauses grow if more than 1 round in 23 is late: (1 + 1 / 32)^22 = 2.
  static constexpr int64_t kPatience = 32;

  bool is_alone(int64_t now) const { return now < alone_until_; }

  // Notes that the team has done its work at `now`, and for how long, at most,
  // a member was off its processor.
  void ended(int64_t now, int64_t lateness) {
    if (lateness < kLate) {
      pause_ -= pause_ > kFirstPause ? pause_ / kPatience : pause_;
      return;
    }
    pause_ = std::min(std::max(2 * pause_, kFirstPause), kLastPause);
    alone_until_ = now + pause_;
  }

 private:
  int64_t alone_until_ = 0;
  int64_t pause_ = 0;
};

}  // namespace gsample
