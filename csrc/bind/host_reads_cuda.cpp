#include "host_reads_cuda.h"

#include <torch/headeronly/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <mutex>
#include <utility>

namespace gsample {

namespace {

struct Held {
  std::vector<Tensor> tensors;
  EventHandle end;
};

std::mutex mutex;
std::atomic<size_t> num_held{0};
thread_local HostReads* innermost = nullptr;

std::vector<Held>& all_held() {
  static auto* held = new std::vector<Held>;  // outlives all users
  return *held;
}

void hold_until_done(std::vector<Tensor> tensors, StreamHandle stream) {
  if (is_captured(stream) || is_idle(stream))
    return;
  const std::lock_guard<std::mutex> lock(mutex);
  all_held().push_back({std::move(tensors), record_event(stream)});
  num_held = all_held().size();
}

void drop_done(StreamHandle stream) {
  // Releasing pinned memory would end the capture of a CUDA graph.
  if (num_held == 0 || is_captured(stream))
    return;
  std::vector<Held> done;  // destroyed outside the lock, because Python runs
                           // then
  const std::lock_guard<std::mutex> lock(mutex);
  std::vector<Held>& held = all_held();
  const auto first_done = std::stable_partition(
      held.begin(), held.end(),
      [](const Held& of) { return !event_passed(of.end); });
  std::move(first_done, held.end(), std::back_inserter(done));
  held.erase(first_done, held.end());
  num_held = held.size();
}

}  // namespace

HostReads::HostReads() : outer_(innermost) {
  innermost = this;
}

HostReads::~HostReads() {
  innermost = outer_;
  if (tensors_.empty())
    return;
  try {
    hold_until_done(std::move(tensors_), stream_);
  } catch (const std::exception&) {
    // Recording an event fails only on a failed device, which runs no kernel.
  }
}

void HostReads::start(StreamHandle stream) {
  stream_ = stream;
  drop_done(stream);
}

void HostReads::add(const Tensor& tensor) {
  STD_TORCH_CHECK(innermost != nullptr, "HostReads::add outside a DeviceScope");
  innermost->tensors_.push_back(tensor);
}

}  // namespace gsample
