// A persistent kernel that visits a random tree through a task queue. Prints
// what went wrong first under some seeds, or how many tasks there were.
//   task_queue_test FIRST_SEED LAST_SEED CAPACITY
#include <stdio.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "core/hash.h"
#include "cuda/launch.cuh"
#include "cuda/task_queue.cuh"

using namespace gsample;

namespace {

constexpr uint32_t kClaim = 4;  // tasks of a block at a time
constexpr uint32_t kMostChildren = 5;
constexpr uint32_t kLeaf = 300;  // nodes from here on have no children
constexpr int kThreads = 64;

// The children of node v are the nodes from first_child(v) on, those of
// node v + 1 come next, so that every node has one parent.
struct Tree {
  const uint32_t* first_child;  // [nodes + 1]
};

struct Visit {
  Tree tree;
  TaskQueue queue;
  uint32_t* visits;  // [nodes]
  uint32_t* early;   // blocks that left while tasks were pending
};

struct VisitShared {
  uint64_t task[kClaim];
  uint64_t child[kClaim * kMostChildren];
  uint32_t children;
  uint32_t first;
  int count;
  bool room;
};

__device__ void fetch(const Visit& visit, VisitShared& shared) {
  uint32_t first = 0;
  shared.children = 0;
  shared.count = claim_tasks(visit.queue, kClaim, &first);
  for (int i = 0; i < shared.count; ++i)
    shared.task[i] = read_task(visit.queue, first + i);
  if (shared.count == 0)
    back_off();
}

__global__ void visit_tree(Visit visit) {
  GSAMPLE_SHARED(VisitShared, shared);
  const uint32_t t = threadIdx.x;
  for (;;) {
    if (t == 0)
      fetch(visit, shared);
    __syncthreads();  // fetched
    if (shared.count == kNoMoreTasks)
      break;
    for (int i = t / 32; i < shared.count; i += kThreads / 32) {
      const uint64_t v = shared.task[i];
      const uint32_t first = visit.tree.first_child[v];
      if (t % 32 == 0)
        Atomic<uint32_t>(visit.visits[v]).fetch_add(1, kRelaxed);
      if (first + t % 32 < visit.tree.first_child[v + 1])
        shared.child[Atomic<uint32_t>(shared.children).fetch_add(1, kRelaxed)] =
            first + t % 32;
    }
    __syncthreads();  // worked
    if (t == 0)
      shared.room = announce_tasks(visit.queue, shared.children, &shared.first);
    __syncthreads();  // announced
    for (uint32_t i = t; shared.room && i < shared.children; i += kThreads)
      publish_task(visit.queue, shared.first + i, shared.child[i]);
    __syncthreads();  // published
    if (t == 0)
      retire_tasks(visit.queue, shared.count);
  }
  if (t == 0 && Atomic<uint32_t>(*visit.queue.pending).load(kRelaxed) != 0)
    Atomic<uint32_t>(*visit.early).fetch_add(1, kRelaxed);
}

std::string run(uint64_t seed, uint32_t capacity) {
  std::vector<uint32_t> first_child{1};  // node 0 is the root
  for (uint32_t v = 0; v < first_child.back(); ++v) {
    const uint32_t children =
        v == 0 ? 3 : mix64(seed << 32 | v) % (kMostChildren + 1);
    first_child.push_back(first_child.back() + (v < kLeaf ? children : 0));
  }
  const uint32_t nodes = first_child.back();
  std::vector<uint64_t> task(capacity);
  std::vector<uint32_t> ready(capacity), visits(nodes);
  uint32_t head = 0, tail = 1, pending = 1, full = 0, early = 0;
  ready[0] = 1;
  const Visit visit{
      {first_child.data()},
      {task.data(), ready.data(), &head, &tail, &pending, &full, capacity},
      visits.data(),
      &early};
  emu::config().seed = seed;
  try {
    launch("visit_tree", visit_tree, {3, kThreads}, nullptr, visit);
  } catch (const emu::Error& error) {
    return error.what();
  }
  if (full != 0)
    return "the queue is full";
  for (uint32_t v = 0; v < nodes; ++v)
    if (visits[v] != 1)
      return "task " + std::to_string(v) + " ran " + std::to_string(visits[v]) +
             " times";
  if (early != 0)
    return std::to_string(early) + " blocks left early";
  if (head != tail || pending != 0)
    return std::to_string(pending) + " tasks are pending at the end";
  return "";
}

}  // namespace

int main(int, char** argv) {
  const uint64_t last = strtoull(argv[2], nullptr, 10);
  emu::config().max_switches = 2000000;
  for (uint64_t seed = strtoull(argv[1], nullptr, 10); seed <= last; ++seed) {
    const std::string wrong = run(seed, strtoul(argv[3], nullptr, 10));
    if (!wrong.empty()) {
      printf("seed %llu: %s\n", static_cast<unsigned long long>(seed),
             wrong.c_str());
      return 0;
    }
  }
  printf("ok\n");
}
