// Errors of sampling on the CPU, worded for the heterogeneous operators.
#pragma once

#include "../cpu/sample_hops.h"
#include "graph.h"

namespace gsample {

template <typename inputs_t>
[[noreturn]] void raise(const inputs_t& in, const Fault& fault) {
  switch (fault.kind.load()) {
    case Fault::kSeed:
      STD_TORCH_CHECK(false, in.op, ": 'seeds' must be in [0, ",
                      in.num_nodes[fault.type_or_relation], ") (got ",
                      fault.value, " at position ", fault.node, ")");
    case Fault::kIndptr:
      STD_TORCH_CHECK(false, in.op, ": 'indptr' must ascend from 0 to the ",
                      fault.value, " edges (it does not at a column near ",
                      fault.node, " of relation ", fault.type_or_relation, ")");
    case Fault::kIndices:
      STD_TORCH_CHECK(false, in.op, ": 'indices' must be in [0, ", fault.value,
                      ") (they are not near edge ", fault.node, " of relation ",
                      fault.type_or_relation, ")");
    default:
      STD_TORCH_CHECK(false, in.op,
                      ": a sample must have less than 2^31 nodes of a type "
                      "(this one may have ",
                      fault.value, "); use fewer seeds or smaller fan-outs");
  }
  throw 0;  // not reached
}

template <typename inputs_t>
void check_status(const inputs_t& in, Status status, const Fault& fault) {
  if (status == Status::kFault)
    raise(in, fault);
  STD_TORCH_CHECK(status != Status::kInterrupted, in.op, ": interrupted");
}

}  // namespace gsample
