// Spreads one hop over threads: any thread selects any chunk; chunks are
// relabelled in order, by one thread per node type at a time, so that the
// serial work of one chunk overlaps with the selection of later chunks.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "parallel.h"

namespace gsample {

// A run of columns of one relation.
struct Chunk {
  int relation;
  int type;  // node type of the rows
  int64_t begin;
  int64_t end;
};

class HopPipeline {
 public:
  HopPipeline(const std::vector<Chunk>& chunks, int num_types)
      : chunks_(chunks), selected_(chunks.size()), queues_(num_types) {
    for (size_t i = 0; i < chunks.size(); ++i)
      queues_[chunks[i].type].chunks.push_back(i);
  }

  // `select(chunk)` returns false to stop all threads; `relabel(chunk)` is
  // called in the order of the chunks of a type.
  template <typename select_t, typename relabel_t>
  void run(int threads,
           Interrupt& interrupt,
           const select_t& select,
           const relabel_t& relabel) {
    run_tasks(threads, [&](int) { work(interrupt, select, relabel); });
  }

 private:
  struct Queue {
    std::mutex busy;
    std::vector<size_t> chunks;
    size_t next = 0;
  };

  template <typename select_t, typename relabel_t>
  void work(Interrupt& interrupt,
            const select_t& select,
            const relabel_t& relabel) {
    while (!stopped_ && relabelled_ < chunks_.size()) {
      bool idle = true;
      const size_t i = next_.fetch_add(1);
      if (i < chunks_.size()) {
        if (!select(chunks_[i]))
          stopped_ = true;
        else
          selected_[i].store(true, std::memory_order_release);
        idle = false;
      }
      for (Queue& queue : queues_)
        idle &= !relabel_selected(queue, relabel);
      interrupt.poll();
      if (interrupt.stopped())
        stopped_ = true;
      if (idle)
        std::this_thread::yield();
    }
  }

  // Relabels the selected chunks, unless another thread is relabelling.
  template <typename relabel_t>
  bool relabel_selected(Queue& queue, const relabel_t& relabel) {
    std::unique_lock<std::mutex> lock(queue.busy, std::try_to_lock);
    if (!lock.owns_lock())
      return false;
    const size_t first = queue.next;
    while (queue.next < queue.chunks.size() &&
           selected_[queue.chunks[queue.next]].load(std::memory_order_acquire))
      relabel(chunks_[queue.chunks[queue.next++]]);
    relabelled_ += queue.next - first;
    return queue.next > first;
  }

  const std::vector<Chunk>& chunks_;
  std::vector<std::atomic<bool>> selected_;
  std::vector<Queue> queues_;
  std::atomic<size_t> next_{0};
  std::atomic<size_t> relabelled_{0};
  std::atomic<bool> stopped_{false};
};

}  // namespace gsample
