// csrc/cpu/number_rows.h against a table that one thread fills, hop by hop.
// Ends with 1 at the first difference.
#include "cpu/number_rows.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <vector>

#include "cpu/node_set.h"

using namespace gsample;

namespace {

uint64_t state = 1;

uint64_t random_below(uint64_t n) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (state >> 33) % n;
}

// Rows of one hop; half of them of few nodes, so that threads meet.
template <typename index_t>
std::vector<index_t> some_rows(int64_t num_nodes, int64_t n) {
  std::vector<index_t> rows(n);
  for (index_t& row : rows)
    row = static_cast<index_t>(
        random_below(random_below(2) > 0 ? num_nodes : 1 + num_nodes / 100));
  return rows;
}

// One call of both sets, which keep their tables from call to call.
template <typename index_t>
bool call(NodeSet<index_t>& one, NodeSet<index_t>& all, int threads) {
  const int64_t num_nodes = 1 + static_cast<int64_t>(random_below(200000));
  for (NodeSet<index_t>* set : {&one, &all}) {
    set->begin_call(num_nodes, 0, num_nodes);
    set->open();
    set->reserve(2);
    set->set_columns(0, 2);
    set->node[0] = set->node[1] = 0;  // seeds, twice the same
    set->number_columns();
  }
  for (int hop = 0; hop < 3; ++hop) {
    const int64_t n = RowNumbering<index_t>::kLeastRows +
                      static_cast<int64_t>(random_below(30000));
    const std::vector<index_t> rows = some_rows<index_t>(num_nodes, n);
    std::vector<uint32_t> want(n), got(n);
    for (NodeSet<index_t>* set : {&one, &all})
      set->reserve(num_nodes + 2);
    const int64_t offset[] = {0, n};
    one.add({rows.data(), offset, 0, 1, nullptr}, want.data());
    if (!all.adds_together(n))
      return false;
    all.add_together(rows.data(), n, got.data(), threads);
    if (want != got || one.size != all.size)
      return false;
    for (int64_t i = 0; i < one.size; ++i)
      if (one.node[i] != all.node[i])
        return false;
  }
  one.close();
  all.close();
  return true;
}

template <typename index_t>
bool calls(int count) {
  NodeSet<index_t> one, all;
  for (int i = 0; i < count; ++i)
    if (!call(one, all, 1 + i % 8))
      return false;
  return true;
}

}  // namespace

int main(int, char** argv) {
  const int count = atoi(argv[1]);
  return calls<int32_t>(count) && calls<int64_t>(count) ? 0 : 1;
}
