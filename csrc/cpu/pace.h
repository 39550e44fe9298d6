// Decides when to work alone, because team members are late.
#pragma once

#include <stdint.h>

#include <algorithm>

namespace gsample {

// How punctual a thread's team is. A team is as slow as its slowest member:
// next to other busy processes, a member that waits for a CPU delays all, for
// milliseconds. So a thread whose team was late works alone for a while, and
// for twice as long each time the team is late again: this loses a small part
// of the time, and uses a team again once it is on time. Times are in
// nanoseconds.
class Pace {
 public:
  // More than it takes to wake a sleeping thread.
  static constexpr int64_t kLate = 500'000;
  static constexpr int64_t kFirstPause = 2'000'000;
  static constexpr int64_t kLastPause = 1'000'000'000;
  // Pauses grow if more than 1 round in 23 is late: (1 + 1 / 32)^22 = 2.
  static constexpr int64_t kPatience = 32;

  bool is_alone(int64_t now) const { return now < alone_until_; }

  // Notes that the team finished at `now`, and the longest time that a member
  // was off its CPU.
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
