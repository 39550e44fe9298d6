// Errors that kernels report about heterogeneous graphs, worded for their
// operators.
#pragma once

#include "../cuda/report.h"
#include "graph.h"

namespace gsample {

// Raises an error if the kernel found a fault in the input.
template <typename inputs_t>
void raise_input(const inputs_t& in, const Report& report) {
  const int64_t value = report.value, where = report.where;
  const int64_t relation = report.relation;  // or a type
  switch (report.fault) {
    case Report::kId:
      STD_TORCH_CHECK(false, in.op, ": 'seeds' must be in [0, ",
                      in.num_nodes[relation], ") (got ", value, " at position ",
                      where, ")");
    case Report::kIndptr:
      STD_TORCH_CHECK(false, in.op, ": 'indptr' must ascend from 0 to the ",
                      value, " edges (it does not at column ", where,
                      " of relation ", relation, ")");
    case Report::kIndices:
      STD_TORCH_CHECK(false, in.op, ": 'indices' must be in [0, ", value,
                      ") (it is not at edge ", where, " of relation ", relation,
                      ")");
    case Report::kPtr:
      STD_TORCH_CHECK(false, in.op, ": 'ptr' must ascend from 0 to ", value);
    default:
      break;
  }
}

}  // namespace gsample
