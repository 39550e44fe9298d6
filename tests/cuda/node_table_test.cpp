// The table of nodes: what it finds, and which entries a probe looks at.
// Prints what is wrong.
#include <stdio.h>

#include <vector>

#include "core/hash.h"
#include "cuda/launch.cuh"
#include "cuda/node_table.cuh"

using namespace gsample;

namespace {

constexpr uint64_t kCapacity = 256;

// By one thread; writes the entries of the nodes.
__global__ void insert(NodeTable table,
                       const uint64_t* node,
                       uint64_t size,
                       uint64_t most,
                       uint64_t* entry,
                       bool* added) {
  clear_table(table);
  grid_barrier();
  if (threadIdx.x == 0)
    for (uint64_t i = 0; i < size; ++i)
      entry[i] = find_or_insert(table, node[i], most, &added[i]);
}

struct Found {
  std::vector<uint64_t> entry;
  std::vector<char> added;
};

Found insert_all(const std::vector<uint64_t>& node, uint64_t most) {
  std::vector<NodeTable::Entry> entries(kCapacity);
  Found found{std::vector<uint64_t>(node.size()),
              std::vector<char>(node.size())};
  launch_cooperative("insert", insert, {1, 32}, nullptr,
                     NodeTable{entries.data(), kCapacity}, node.data(),
                     uint64_t{node.size()}, most, found.entry.data(),
                     reinterpret_cast<bool*>(found.added.data()));
  return found;
}

void check(bool right, const char* what) {
  if (!right)
    printf("%s\n", what);
}

}  // namespace

int main() {
  // As many nodes as entries, one more, and the first again.
  std::vector<uint64_t> node;
  for (uint64_t i = 0; i <= kCapacity; ++i)
    node.push_back(i);
  node.push_back(0);
  const Found full = insert_all(node, kCapacity);
  std::vector<bool> taken(kCapacity);
  for (uint64_t i = 0; i < kCapacity; ++i) {
    check(full.added[i] && !taken.at(full.entry[i]), "an entry is not found");
    taken[full.entry[i]] = true;
  }
  check(full.entry[kCapacity] == NodeTable::kNoEntry, "a full table has room");
  check(full.entry.back() == full.entry[0] && !full.added.back(),
        "a node is there twice");

  // Nodes that begin at the same entry, of any sector and of the last one.
  for (const uint64_t first : {uint64_t{6}, uint64_t{7}, kCapacity - 1}) {
    std::vector<uint64_t> same;
    for (uint64_t i = 0; same.size() < 4; ++i)
      if ((mix64(i) & (kCapacity - 1)) == first)
        same.push_back(i);
    const Found found = insert_all(same, kCapacity);
    check(found.entry[0] == first && found.entry[1] == (first ^ 1),
          "the second probe is of another sector");
    const uint64_t next = (first + 2) % kCapacity;
    check(found.entry[2] == next && found.entry[3] == (next ^ 1),
          "the third probe is not of the next sector");
    check(insert_all(same, 2).entry[2] == NodeTable::kNoEntry,
          "more probes than there may be");
  }
  printf("ok\n");
}
