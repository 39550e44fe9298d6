// The memory of a sample on a GPU, and the copies of its variable-length
// arguments.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#include "../args.h"
#include "../cuda/arguments.h"
#include "device_memory_cuda.h"
#include "graph.h"

namespace gsample {

constexpr int64_t kMaxEdges = INT32_MAX - 1;  // positions have 31 bits
constexpr int64_t kFirstTry = int64_t{1} << 24;

// Capacity for edges, and for nodes of each type.
struct Capacity {
  int64_t edges;
  std::vector<int64_t> nodes;

  int64_t all_nodes() const {
    return std::accumulate(nodes.begin(), nodes.end(), int64_t{0});
  }
};

// Capacity for a number of edges, all of which may be of one relation.
inline Capacity capacity_for(const std::vector<NodeType>& types,
                             bool disjoint,
                             int64_t edges) {
  Capacity capacity{edges, {}};
  for (const NodeType& type : types)
    capacity.nodes.push_back(most_nodes(type, disjoint, edges));
  return capacity;
}

// The first capacity to try. Fan-outs bound the edges of a sample; where they
// do not (or the bound is loose), a second try with the capacity the sample
// needs is cheaper than memory for the worst case.
template <typename relation_t>
Capacity first_capacity(const std::vector<relation_t>& relations,
                        const std::vector<NodeType>& types,
                        bool disjoint,
                        int num_hops) {
  std::vector<int64_t> frontier, into(types.size(), 0);
  for (const NodeType& type : types)
    frontier.push_back(type.num_seeds);
  int64_t total = 0;
  bool bounded = true;
  for (int hop = 0; hop < num_hops; ++hop) {
    std::vector<int64_t> next(types.size(), 0);
    for (const relation_t& relation : relations) {
      const int64_t fanout = relation.fanouts[hop];
      const int64_t columns = frontier[relation.dst];
      const int64_t cols = types[relation.dst].num_nodes;
      const int64_t degree =
          relation.num_edges / std::max<int64_t>(cols, 1) + 1;
      const int64_t k = fanout >= 0 ? fanout : degree;
      bounded &= fanout >= 0;
      if (columns > 0 && k > kFirstTry / columns)
        return capacity_for(types, disjoint, kFirstTry);
      next[relation.src] += columns * k;
      total += columns * k;
    }
    if (total > kFirstTry)
      return capacity_for(types, disjoint, kFirstTry);
    for (size_t t = 0; t < types.size(); ++t) {
      into[t] += next[t];
      frontier[t] =
          most_nodes(types[t], disjoint, next[t]) - types[t].num_seeds;
    }
  }
  constexpr int64_t kSpare = 4096;
  if (!bounded)
    return capacity_for(types, disjoint,
                        std::min(2 * total + kSpare, kFirstTry));
  Capacity capacity{total, {}};
  for (size_t t = 0; t < types.size(); ++t)
    capacity.nodes.push_back(most_nodes(types[t], disjoint, into[t]));
  return capacity;
}

// 64-bit words to be copied to the device.
class Words {
 public:
  // Adds items, and returns the position of the first.
  template <typename item_t>
  size_t add(const std::vector<item_t>& items) {
    static_assert(sizeof(item_t) % sizeof(int64_t) == 0);
    const size_t first = words_.size();
    words_.resize(first + items.size() * sizeof(item_t) / sizeof(int64_t));
    if (!items.empty())
      std::memcpy(words_.data() + first, items.data(),
                  items.size() * sizeof(item_t));
    return first;
  }
  // Overwrites items added before.
  template <typename item_t>
  void set(size_t first, const std::vector<item_t>& items) {
    std::memcpy(words_.data() + first, items.data(),
                items.size() * sizeof(item_t));
  }
  int64_t size() const { return static_cast<int64_t>(words_.size()); }
  void store(int64_t* to, StreamHandle stream) const {
    store_arguments(to, words_.data(), size(), stream);
  }

 private:
  std::vector<int64_t> words_;
};

// The counts of each hop on the host, [num_hops, num_kinds], of items whose
// ends are in `end`; the array begins `before` items early. Returns the total
// of each kind.
inline Ints count_hops(const int64_t* end,
                       int before,
                       int num_hops,
                       int num_kinds,
                       int64_t** counts) {
  Ints sizes(num_kinds);
  for (int kind = 0; kind < num_kinds; ++kind)
    for (int hop = 0; hop < num_hops; ++hop) {
      const int64_t* at = end + int64_t{hop} * num_kinds + kind;
      *(*counts)++ = at[0] - at[-before];
      sizes[kind] += at[0] - at[-before];
    }
  return sizes;
}

// Scratch of a call, in one allocation.
class Scratch {
 public:
  // Reserves words and writes their address to `*pointer`: null for none.
  template <typename item_t>
  void add(item_t** pointer, int64_t words) {
    parts_.push_back(
        {[=](int64_t* at) { *pointer = reinterpret_cast<item_t*>(at); },
         words});
  }
  Tensor allocate(const Tensor& like) const {
    int64_t words = 0;
    for (const Part& part : parts_)
      words = add_sizes(words, part.words);
    Tensor memory = device_vector("scratch", like, words);
    int64_t* at = words == 0 ? nullptr : memory.mutable_data_ptr<int64_t>();
    for (const Part& part : parts_) {
      part.set(part.words == 0 ? nullptr : at);
      at += part.words;
    }
    return memory;
  }

 private:
  struct Part {
    std::function<void(int64_t*)> set;
    int64_t words;
  };
  std::vector<Part> parts_;
};

}  // namespace gsample
