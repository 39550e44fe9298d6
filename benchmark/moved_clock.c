// Moves the wall clock of a process that preloads it, by MOVED_BY seconds.
// Clocks that time waits stay: Java would spin. See spark_faults.py.
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec* out) {
  int failed = syscall(SYS_clock_gettime, id, out);
  if (!failed && id == CLOCK_REALTIME)
    out->tv_sec += atol(getenv("MOVED_BY"));
  return failed;
}

int gettimeofday(struct timeval* out, void* zone) {
  struct timespec now;
  int failed = clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return failed;
}
