#include "host_reads_cuda.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <utility>

namespace gsample {

namespace {

struct Reads {
  std::vector<Tensor> tensors;
  EventHandle end;
};

std::mutex mutex;
std::atomic<size_t> num_reads{0};

std::vector<Reads>& all_reads() {
  static auto* reads = new std::vector<Reads>;  // outlives all users
  return *reads;
}

}  // namespace

void keep_until_done(std::vector<Tensor> tensors, StreamHandle stream) {
  if (tensors.empty() || is_captured(stream))
    return;
  const std::lock_guard<std::mutex> lock(mutex);
  all_reads().push_back({std::move(tensors), record_event(stream)});
  num_reads = all_reads().size();
}

void drop_done(StreamHandle stream) {
  // Releasing pinned memory would end the capture of a CUDA graph.
  if (num_reads == 0 || is_captured(stream))
    return;
  std::vector<Reads> done;  // released without the lock: Python runs then
  const std::lock_guard<std::mutex> lock(mutex);
  std::vector<Reads>& reads = all_reads();
  const auto first_done = std::stable_partition(
      reads.begin(), reads.end(),
      [](const Reads& of) { return !event_passed(of.end); });
  std::move(first_done, reads.end(), std::back_inserter(done));
  reads.erase(first_done, reads.end());
  num_reads = reads.size();
}

}  // namespace gsample
