// Reads by io_uring through the kernel's interface, <linux/io_uring.h>: a
// request queue and a completion queue in memory shared with the kernel. See
// io_uring(7).
#include <errno.h>

#include "read_ranges.h"

#if defined(__linux__) && __has_include(<linux/io_uring.h>)

#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace gsample {

namespace {

constexpr unsigned kEntries = 256;  // requests in flight

// Memory shared with the kernel.
class Mapping {
 public:
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (data_ != MAP_FAILED)
      munmap(data_, size_);
  }
  bool map(int fd, size_t size, off_t offset) {
    size_ = size;
    data_ = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_POPULATE, fd, offset);
    return data_ != MAP_FAILED;
  }
  template <typename T>
  T* at(unsigned offset) const {
    return reinterpret_cast<T*>(static_cast<char*>(data_) + offset);
  }

 private:
  void* data_ = MAP_FAILED;
  size_t size_ = 0;
};

class Ring {
 public:
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  Ring() {
    fd_ = static_cast<int>(syscall(__NR_io_uring_setup, kEntries, &params_));
    // IORING_OP_READ and this feature arrived in the same kernel (5.6).
    ready_ =
        fd_ >= 0 && (params_.features & IORING_FEAT_RW_CUR_POS) != 0 && map();
  }
  ~Ring() {
    if (fd_ >= 0)
      close(fd_);
  }
  bool ready() const { return ready_; }
  unsigned room() const { return params_.sq_entries - in_flight_; }
  unsigned in_flight() const { return in_flight_; }

  // Adds a request; there must be room.
  void add(int fd, int64_t offset, void* to, unsigned size, uint64_t id) {
    const unsigned tail = *sq_tail_;
    const unsigned i = tail & *sq_mask_;
    io_uring_sqe* request = requests_.at<io_uring_sqe>(0) + i;
    memset(request, 0, sizeof(*request));
    request->opcode = IORING_OP_READ;
    request->fd = fd;
    request->off = static_cast<uint64_t>(offset);
    request->addr = reinterpret_cast<uint64_t>(to);
    request->len = size;
    request->user_data = id;
    sq_array_[i] = i;
    __atomic_store_n(sq_tail_, tail + 1, __ATOMIC_RELEASE);
    ++in_flight_;
    ++unsent_;
  }

  // Submits the added requests and waits for a result. Returns an errno.
  int submit_and_wait() {
    const long sent = syscall(__NR_io_uring_enter, fd_, unsent_, 1,
                              IORING_ENTER_GETEVENTS, nullptr, 0);
    if (sent >= 0) {
      unsent_ -= static_cast<unsigned>(sent);
      return 0;
    }
    if (errno == EINTR || errno == EAGAIN || errno == EBUSY)
      return 0;
    in_flight_ -= unsent_;  // the kernel will not process them
    unsent_ = 0;
    return errno;
  }

  // Calls function(id, result) for each completed request.
  template <typename function_t>
  void reap(const function_t& function) {
    unsigned head = *cq_head_;
    while (head != __atomic_load_n(cq_tail_, __ATOMIC_ACQUIRE)) {
      const io_uring_cqe result = results_[head & *cq_mask_];
      __atomic_store_n(cq_head_, ++head, __ATOMIC_RELEASE);
      --in_flight_;
      function(result.user_data, result.res);
    }
  }

 private:
  bool map() {
    const io_sqring_offsets& sq = params_.sq_off;
    const io_cqring_offsets& cq = params_.cq_off;
    if (!sq_.map(fd_, sq.array + params_.sq_entries * sizeof(unsigned),
                 IORING_OFF_SQ_RING) ||
        !cq_.map(fd_, cq.cqes + params_.cq_entries * sizeof(io_uring_cqe),
                 IORING_OFF_CQ_RING) ||
        !requests_.map(fd_, params_.sq_entries * sizeof(io_uring_sqe),
                       IORING_OFF_SQES))
      return false;
    sq_tail_ = sq_.at<unsigned>(sq.tail);
    sq_mask_ = sq_.at<unsigned>(sq.ring_mask);
    sq_array_ = sq_.at<unsigned>(sq.array);
    cq_head_ = cq_.at<unsigned>(cq.head);
    cq_tail_ = cq_.at<unsigned>(cq.tail);
    cq_mask_ = cq_.at<unsigned>(cq.ring_mask);
    results_ = cq_.at<io_uring_cqe>(cq.cqes);
    return true;
  }

  int fd_ = -1;
  io_uring_params params_{};
  bool ready_ = false;
  unsigned in_flight_ = 0, unsent_ = 0;
  Mapping sq_, cq_, requests_;
  unsigned *sq_tail_, *sq_mask_, *sq_array_, *cq_head_, *cq_tail_, *cq_mask_;
  io_uring_cqe* results_;
};

}  // namespace

ReadResult read_by_io_uring(int fd,
                            const ReadRange* ranges,
                            int64_t n,
                            char* out) {
  constexpr int64_t kMostBytes = int64_t{1} << 30;  // per request
  Ring ring;
  if (!ring.ready())
    return {ENOSYS, 0};
  ReadResult result{0, 0};
  std::vector<int64_t> again;  // ranges that were read in part
  std::vector<int64_t> done(n, 0);
  const auto fail = [&](int error, int64_t range) {
    if (result.error == 0)
      result = {error, range};
  };
  // After an error, requests in flight must complete before memory is freed.
  for (int64_t next = 0; ring.in_flight() > 0 || next < n || !again.empty();) {
    while (result.error == 0 && ring.room() > 0 &&
           (next < n || !again.empty())) {
      int64_t i = next;
      if (again.empty()) {
        ++next;
      } else {
        i = again.back();
        again.pop_back();
      }
      const int64_t size = std::min(ranges[i].size - done[i], kMostBytes);
      if (size > 0)
        ring.add(fd, ranges[i].offset + done[i], out + ranges[i].to + done[i],
                 static_cast<unsigned>(size), static_cast<uint64_t>(i));
    }
    if (ring.in_flight() == 0)
      break;
    const int error = ring.submit_and_wait();
    if (error != 0)
      fail(error, 0);
    ring.reap([&](uint64_t id, int count) {
      const int64_t i = static_cast<int64_t>(id);
      if (count > 0)
        done[i] += count;
      if (count < 0 && count != -EINTR && count != -EAGAIN)
        fail(-count, i);
      else if (count == 0)
        fail(kEndOfFile, i);
      else if (done[i] < ranges[i].size)
        again.push_back(i);
    });
  }
  return result;
}

}  // namespace gsample

#else

namespace gsample {

ReadResult read_by_io_uring(int, const ReadRange*, int64_t, char*) {
  return {ENOSYS, 0};
}

}  // namespace gsample

#endif
