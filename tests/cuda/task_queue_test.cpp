// All neighbours of some hops through the task queue of sample_hops, against
// plain loops. Prints what went wrong first under some seeds.
//   task_queue_test FIRST_SEED LAST_SEED TASKS EDGES
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/hash.h"
#include "cuda/launch.cuh"
#include "cuda/order_hops.cuh"

using namespace gsample;

namespace {

using Args = SampleHopsCuda<int32_t, int32_t>;
using Numbers = std::vector<int64_t>;

constexpr int kHops = 3;
constexpr int kNodes = 60;

__global__ void sample(Args args, uint32_t* early) {
  GSAMPLE_SHARED(HopShared, shared);
  HopTasks<false, Args> tasks(args, shared);
  const HopOrder<Args> order(args, shared.sums);
  tasks.start();
  tasks.begin();
  grid_barrier();
  tasks.add_seeds();
  tasks.drain();
  if (threadIdx.x == 0 && !is_done(args.queue))
    Atomic<uint32_t>(*early).fetch_add(1, kRelaxed);
  grid_barrier();
  for (int hop = 0; hop < kHops; ++hop)
    if (Atomic<int64_t>(args.report->fault).load(kRelaxed) != Report::kNone ||
        !order.run(hop))
      return;
}

// The columns, and the edges, of hop after hop.
struct Sample {
  Numbers node, edge;
  bool operator==(const Sample& other) const {
    return node == other.node && edge == other.edge;
  }
};

Sample reference(const std::vector<int32_t>& indptr,
                 const std::vector<int32_t>& indices,
                 const Numbers& seeds) {
  Sample sample{seeds, {}};
  Numbers columns = seeds;
  for (int hop = 0; hop < kHops; ++hop) {
    Numbers next;
    const auto meet = [&](int64_t v) {
      if (std::find(next.begin(), next.end(), v) == next.end())
        next.push_back(v);
    };
    for (const int64_t v : columns)
      meet(v);
    for (const int64_t v : columns)
      for (int32_t e = indptr[v]; e < indptr[v + 1]; ++e) {
        sample.edge.push_back(e);
        meet(indices[e]);
      }
    sample.node.insert(sample.node.end(), next.begin(), next.end());
    columns = next;
  }
  return sample;
}

std::string run(uint64_t seed, uint32_t tasks, int64_t edges) {
  std::vector<int32_t> indptr{0}, indices;
  for (uint64_t v = 0; v < kNodes; ++v) {
    const uint64_t degree = v == 5 ? 40 : mix64(seed << 32 | v) % 4;
    for (uint64_t i = 0; i < degree; ++i)
      indices.push_back(mix64(seed << 40 | v << 20 | i) % kNodes);
    indptr.push_back(static_cast<int32_t>(indices.size()));
  }
  const Numbers seeds{7, 5, 7, 40, 11, 12}, fanouts(kHops, -1);
  const Sample want = reference(indptr, indices, seeds);
  const uint64_t columns = want.node.size();
  const uint64_t capacity = NodeTable::capacity_for(columns);
  Numbers column(columns), column_end(kHops + 2), begin(columns + kHops),
      edge_end(kHops + 1), place(edges), drawn_edge(edges), drawn_row(edges),
      candidate(columns + edges), totals(8);
  std::vector<uint64_t> streams(kHops), task(tasks);
  std::vector<NodeTable::Entry> table(capacity);
  std::vector<uint32_t> ready(tasks);
  uint32_t head = 0;
  uint64_t tail = 0;
  std::vector<TaskEdges> task_edges(capacity);
  int64_t num_drawn = 0;
  uint32_t early = 0;
  Report report{};
  Args args{};
  args.graph.indptr = indptr.data();
  args.graph.indices = indices.data();
  args.graph.fanouts = fanouts.data();
  args.graph.num_edges = static_cast<int64_t>(indices.size());
  args.num_nodes = kNodes;
  args.seeds = seeds.data();
  args.num_seeds = static_cast<int64_t>(seeds.size());
  args.streams = streams.data();
  args.options.num_hops = kHops;
  args.frontier = Frontier::kNodes;
  args.next = true;
  args.max_columns = static_cast<int64_t>(columns);
  args.max_edges = edges;
  args.column = column.data();
  args.column_end = column_end.data();
  args.begin = begin.data();
  args.edge_end = edge_end.data();
  args.place = place.data();
  args.report = &report;
  args.drawn_edge = drawn_edge.data();
  args.drawn_row = drawn_row.data();
  args.num_drawn = &num_drawn;
  args.table = {table.data(), capacity};
  args.task_edges = task_edges.data();
  args.queue = {task.data(), ready.data(), &head, &tail, tasks};
  args.candidate = candidate.data();
  args.totals = totals.data();
  emu::config().seed = seed;
  try {
    launch_cooperative("sample", sample, {3, 64}, nullptr, args, &early);
  } catch (const emu::Error& error) {
    return error.what();
  }
  if (static_cast<uint32_t>(tail) > tasks)
    return "more slots are announced than there are";
  if (report.fault != Report::kNone)
    return "fault " + std::to_string(report.fault);
  if (early != 0)
    return std::to_string(early) + " blocks left early";
  Sample out;
  for (int64_t i = 0; i < column_end[kHops + 1]; ++i)
    out.node.push_back(static_cast<int64_t>(table[column[i]].key % kNodes));
  for (int64_t p = 0; p < edge_end[kHops]; ++p)
    out.edge.push_back(drawn_edge[place[p]]);
  return out == want ? "" : "another sample";
}

}  // namespace

int main(int, char** argv) {
  const uint64_t last = strtoull(argv[2], nullptr, 10);
  emu::config().max_switches = 2000000;
  for (uint64_t seed = strtoull(argv[1], nullptr, 10); seed <= last; ++seed) {
    const std::string wrong =
        run(seed, strtoul(argv[3], nullptr, 10), strtol(argv[4], nullptr, 10));
    if (!wrong.empty()) {
      printf("seed %llu: %s\n", static_cast<unsigned long long>(seed),
             wrong.c_str());
      return 0;
    }
  }
  printf("ok\n");
}
