#include "unique_nodes.h"

#include <algorithm>
#include <vector>

#include "tables.h"

namespace gsample {

namespace {

constexpr int64_t kPrefetch = 16;  // table accesses in flight

template <typename table_t, typename id_t>
int64_t number(table_t& table,
               const id_t* id,
               int64_t n,
               int64_t num_nodes,
               int64_t* node,
               id_t* local) {
  table.begin_call(num_nodes);
  table.reserve(0, n);
  uint32_t size = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (i + kPrefetch < n && static_cast<uint64_t>(id[i + kPrefetch]) <
                                 static_cast<uint64_t>(num_nodes))
      table.prefetch(id[i + kPrefetch]);
    if (static_cast<uint64_t>(id[i]) >= static_cast<uint64_t>(num_nodes))
      return -1;  // the next call clears the table
    const uint32_t found = table.find_or_insert(id[i], size);
    local[i] = static_cast<id_t>(found);
    node[size] = id[i];  // `node` has room for n, and size <= i
    size += found == size;
  }
  table.end_call(size);
  return size;
}

// A set of nodes, one bit each, that tells how many are below one.
class NodeBits {
 public:
  explicit NodeBits(int64_t num_nodes) : words_(num_nodes / 64 + 1) {}

  void insert(uint64_t id) { words_[id / 64].bits |= uint64_t{1} << id % 64; }

  // Writes the nodes in ascending order, and counts them.
  int64_t number(int64_t* node) {
    int64_t size = 0;
    for (size_t i = 0; i < words_.size(); ++i) {
      words_[i].before = static_cast<uint32_t>(size);
      for (uint64_t left = words_[i].bits; left != 0; left &= left - 1)
        node[size++] = static_cast<int64_t>(64 * i) + __builtin_ctzll(left);
    }
    return size;
  }
  uint32_t number_of(uint64_t id) const {
    const Word& word = words_[id / 64];
    const uint64_t below = word.bits & ((uint64_t{1} << id % 64) - 1);
    return word.before + static_cast<uint32_t>(__builtin_popcountll(below));
  }

 private:
  struct Word {
    uint64_t bits;
    uint32_t before;
  };
  std::vector<Word> words_;
};

template <typename id_t>
int64_t number_ascending(const id_t* id,
                         int64_t n,
                         int64_t num_nodes,
                         int64_t* node,
                         id_t* local) {
  for (int64_t i = 0; i < n; ++i)
    if (static_cast<uint64_t>(id[i]) >= static_cast<uint64_t>(num_nodes))
      return -1;
  constexpr int64_t kNodesPerId = 1024;  // beyond these, sorting is faster
  if (num_nodes / kNodesPerId <= n) {
    NodeBits bits(num_nodes);
    for (int64_t i = 0; i < n; ++i)
      bits.insert(id[i]);
    const int64_t size = bits.number(node);
    for (int64_t i = 0; i < n; ++i)
      local[i] = static_cast<id_t>(bits.number_of(id[i]));
    return size;
  }
  std::copy(id, id + n, node);
  std::sort(node, node + n);
  const int64_t size = std::unique(node, node + n) - node;
  for (int64_t i = 0; i < n; ++i)
    local[i] =
        static_cast<id_t>(std::lower_bound(node, node + size, id[i]) - node);
  return size;
}

}  // namespace

template <typename id_t>
int64_t unique_nodes(const id_t* id,
                     int64_t n,
                     int64_t num_nodes,
                     bool sorted,
                     int64_t* node,
                     id_t* local) {
  static thread_local DenseTable dense;
  static thread_local HashTable hash;
  if (sorted)
    return number_ascending(id, n, num_nodes, node, local);
  return prefers_dense(num_nodes, n)
             ? number(dense, id, n, num_nodes, node, local)
             : number(hash, id, n, num_nodes, node, local);
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
