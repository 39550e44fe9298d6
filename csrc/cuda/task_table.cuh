// Tasks of layers as entries of the node table.
#pragma once

#include "node_table.cuh"
#include "report.cuh"

namespace gsample {

constexpr uint64_t kMostSteps = 1024;  // of a table that is half full

// Tasks as entries of the table.
template <typename args_t>
struct TaskTable {
  const args_t& a;

  __device__ uint64_t key(uint64_t entry) const {
    return Atomic<uint64_t>(a.table.entry[entry].key).load(kRelaxed);
  }
  // The entry of a key, and whether it is new. If the table is full, reports it
  // and returns entry 0.
  __device__ uint64_t entry(uint64_t key, bool* added) const {
    const uint64_t found = find_or_insert(a.table, key, kMostSteps, added);
    if (found != NodeTable::kNoEntry)
      return found;
    note_fault(a.report, Report::kOverflow, 0, a.max_columns);
    return 0;
  }
};

}  // namespace gsample
