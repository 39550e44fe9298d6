#include "unique_nodes.h"

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "radix_sort.h"
#include "tables.h"

namespace gsample {

namespace {

constexpr int64_t kPrefetch = 16;  // table accesses in flight
// With more nodes per id, sorting is faster than a scan over all nodes.
constexpr int64_t kNodesPerId = 256;

// Numbers ids by first occurrence: writes the distinct ones and returns their
// number, or -1.
template <typename table_t, typename id_t>
int64_t number(table_t& table,
               const id_t* id,
               int64_t n,
               int64_t num_nodes,
               int64_t* node,
               id_t* local) {
  table.begin_call(num_nodes);
  table.reserve(0, n);
  uint32_t next = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (i + kPrefetch < n && static_cast<uint64_t>(id[i + kPrefetch]) <
                                 static_cast<uint64_t>(num_nodes))
      table.prefetch(id[i + kPrefetch]);
    if (static_cast<uint64_t>(id[i]) >= static_cast<uint64_t>(num_nodes))
      return -1;    // the next call clears the table
    *node = id[i];  // there is room for n, and at most i are written
    const uint32_t found = table.find_or_insert(id[i], next);
    local[i] = static_cast<id_t>(found);
    node += found == next;
    next += found == next;
  }
  table.end_call(next);
  return next;
}

template <typename id_t>
int64_t number(const id_t* id,
               int64_t n,
               int64_t num_nodes,
               int64_t* node,
               id_t* local) {
  static thread_local DenseTable dense;
  static thread_local HashTable<uint64_t> hash;
  const auto by = [&](auto& table) {
    return number(table, id, n, num_nodes, node, local);
  };
  return prefers_dense(num_nodes, n) ? by(dense) : by(hash);
}

// A set of nodes, one bit each, that counts the nodes below a node.
class NodeBits {
 public:
  explicit NodeBits(int64_t num_nodes)
      : bits_(num_nodes / 64 + 1), before_(new uint32_t[bits_.size()]) {}

  void insert(uint64_t id) { bits_[id / 64] |= uint64_t{1} << id % 64; }

  // Writes the nodes in ascending order, and counts them; `node` has capacity
  // `room`. If most words have some, their number is unpredictable: four are
  // always written.
  int64_t number(int64_t* node, int64_t room) {
    constexpr int kAtOnce = 4;
    const bool guesses = 2 * room >= 3 * static_cast<int64_t>(bits_.size());
    const int64_t* end = node + (guesses ? room : 0);
    int64_t size = 0;
    for (size_t i = 0; i < bits_.size(); ++i) {
      uint64_t left = bits_[i];
      const int count = __builtin_popcountll(left);
      const int64_t first = static_cast<int64_t>(64 * i);
      int64_t* out = node + size;
      before_[i] = static_cast<uint32_t>(size);
      size += count;
      if (out + kAtOnce <= end)
        for (int k = 0; k < kAtOnce; ++k, left &= left - 1)
          *out++ = first + __builtin_ctzll(left | kLast);
      for (; left != 0; left &= left - 1)
        *out++ = first + __builtin_ctzll(left);
    }
    return size;
  }
  uint32_t number_of(uint64_t id) const {
    const uint64_t below = bits_[id / 64] & ((uint64_t{1} << id % 64) - 1);
    return before_[id / 64] +
           static_cast<uint32_t>(__builtin_popcountll(below));
  }

 private:
  static constexpr uint64_t kLast = uint64_t{1} << 63;

  std::vector<uint64_t> bits_;
  std::unique_ptr<uint32_t[]> before_;
};

// Sorts ids below 2^32 with their positions, both in one number.
template <typename id_t>
int64_t number_by_radix(const id_t* id,
                        int64_t n,
                        uint64_t highest,
                        int64_t* node,
                        id_t* local) {
  static thread_local std::vector<uint64_t> items, other;
  items.resize(n);
  for (int64_t i = 0; i < n; ++i)
    items[i] = static_cast<uint64_t>(id[i]) << 32 | static_cast<uint64_t>(i);
  radix_sort(items, other, 32, 64 - __builtin_clzll(highest | 1));
  int64_t size = 0;
  for (const uint64_t item : items) {
    const int64_t next = static_cast<int64_t>(item >> 32);
    size += size == 0 || node[size - 1] != next;
    node[size - 1] = next;
    local[static_cast<uint32_t>(item)] = static_cast<id_t>(size - 1);
  }
  return size;
}

template <typename id_t>
int64_t number_by_search(const id_t* id,
                         int64_t n,
                         int64_t* node,
                         id_t* local) {
  std::copy(id, id + n, node);
  std::sort(node, node + n);
  const int64_t size = std::unique(node, node + n) - node;
  for (int64_t i = 0; i < n; ++i)
    local[i] =
        static_cast<id_t>(std::lower_bound(node, node + size, id[i]) - node);
  return size;
}

template <typename id_t>
int64_t number_by_bits(const id_t* id,
                       int64_t n,
                       int64_t num_nodes,
                       int64_t* node,
                       id_t* local) {
  NodeBits bits(num_nodes);
  for (int64_t i = 0; i < n; ++i)
    bits.insert(id[i]);
  const int64_t size = bits.number(node, n);
  for (int64_t i = 0; i < n; ++i)
    local[i] = static_cast<id_t>(bits.number_of(id[i]));
  return size;
}

template <typename id_t>
int64_t number_ascending(const id_t* id,
                         int64_t n,
                         int64_t num_nodes,
                         int64_t* node,
                         id_t* local) {
  uint64_t highest = 0;
  for (int64_t i = 0; i < n; ++i)  // negative ids become the largest
    highest = std::max(highest, static_cast<uint64_t>(id[i]));
  if (n > 0 && highest >= static_cast<uint64_t>(num_nodes))
    return -1;
  // The bound of a caller that knows none is far above all ids.
  const auto bound = static_cast<int64_t>(highest + 1);
  if (bound / kNodesPerId <= n)
    return number_by_bits(id, n, bound, node, local);
  if (highest >> 32 == 0 && n >> 32 == 0)
    return number_by_radix(id, n, highest, node, local);
  return number_by_search(id, n, node, local);
}

}  // namespace

template <typename id_t>
int64_t unique_nodes(const id_t* id,
                     int64_t n,
                     int64_t num_nodes,
                     bool sorted,
                     int64_t* node,
                     id_t* local) {
  if (sorted)
    return number_ascending(id, n, num_nodes, node, local);
  return number(id, n, num_nodes, node, local);
}

template int64_t unique_nodes(const int32_t*,
                              int64_t,
                              int64_t,
                              bool,
                              int64_t*,
                              int32_t*);
template int64_t unique_nodes(const int64_t*,
                              int64_t,
                              int64_t,
                              bool,
                              int64_t*,
                              int64_t*);

}  // namespace gsample
