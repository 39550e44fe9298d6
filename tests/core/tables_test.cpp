// csrc/cpu/tables.h against std::map over many calls, so many ids that the
// bases of the tables run out again and again, and calls that do not end.
// Prints how often each happened; ends with 1 at the first difference.
#include "cpu/tables.h"

#include <stdint.h>
#include <stdio.h>

#include <map>

using namespace gsample;

namespace {

uint64_t state = 1;

uint64_t random_below(uint64_t n) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (state >> 33) % n;
}

// One call: keys below `num_nodes` get local ids by first occurrence.
template <typename table_t>
bool call(table_t& table, uint64_t num_nodes, uint32_t ids_used, bool ends) {
  std::map<uint64_t, uint32_t> known;
  table.begin_call(num_nodes);
  for (int hop = 0; hop < 3; ++hop) {
    const int keys = static_cast<int>(random_below(200));
    table.reserve(known.size(), keys);
    for (int i = 0; i < keys; ++i) {
      const uint64_t key = random_below(num_nodes);
      const uint32_t next = static_cast<uint32_t>(known.size());
      const uint32_t want = known.emplace(key, next).first->second;
      table.prefetch(key);
      if (table.find_or_insert(key, next) != want)
        return false;
    }
  }
  if (ends)
    table.end_call(ids_used);
  return true;
}

template <typename table_t>
bool many_calls(const char* name) {
  table_t table;
  uint64_t ids = 0, broken = 0;
  for (int i = 0; i < 2000; ++i) {
    // A call may use up to 2^31 - 1 ids; most use few.
    const uint32_t ids_used = random_below(4) > 0
                                  ? static_cast<uint32_t>(600)
                                  : static_cast<uint32_t>(INT32_MAX);
    const bool ends = random_below(8) > 0;
    if (!call(table, 1 + random_below(500), ids_used, ends))
      return false;
    ids += ids_used;
    broken += !ends;
  }
  printf("%s: %d %d\n", name, static_cast<int>(ids >> 32),
         static_cast<int>(broken));
  return true;
}

// Keys of a stride whose multiples start in a few places of the table.
template <typename key_t>
bool crowded_keys() {
  constexpr uint64_t kStride = 1853, kKeys = 1 << 17;
  HashTable<key_t> table;
  table.begin_call(0);
  table.reserve(0, kKeys);
  for (int round = 0; round < 2; ++round)
    for (uint32_t i = 0; i < kKeys; ++i)
      if (table.find_or_insert(i * kStride, round == 0 ? i : kKeys) != i)
        return false;
  return true;
}

}  // namespace

int main() {
  const bool equal = crowded_keys<uint32_t>() && crowded_keys<uint64_t>() &&
                     many_calls<DenseTable>("dense") &&
                     many_calls<HashTable<uint32_t>>("narrow hash") &&
                     many_calls<HashTable<uint64_t>>("wide hash");
  return equal ? 0 : 1;
}
