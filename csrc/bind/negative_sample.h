// Checks of negative_sample on all devices, with one wording of errors.
#pragma once

#include <optional>

#include "../core/negative.h"
#include "check.h"

namespace gsample {

// The optional tensors of the operator.
struct NegativeTensors {
  std::optional<Tensor> cum_weight, order, order_time, max_time, anchor, indptr,
      indices;
};

inline NegativeArgs read_negative_args(const char* op,
                                       const Tensor& id,
                                       int64_t num_nodes,
                                       const NegativeTensors& t,
                                       uint64_t stream) {
  const int64_t n = id.numel();
  STD_TORCH_CHECK(num_nodes > 0 || n == 0, op,
                  ": 'num_nodes' must be positive");
  STD_TORCH_CHECK(t.order.has_value() == t.order_time.has_value() &&
                      t.order.has_value() == t.max_time.has_value(),
                  op, ": 'order', 'order_time' and 'max_time' go together");
  STD_TORCH_CHECK(t.anchor.has_value() == t.indptr.has_value() &&
                      t.anchor.has_value() == t.indices.has_value(),
                  op, ": 'anchor', 'indptr' and 'indices' go together");
  const int64_t num_neighbors = t.indices ? t.indices->numel() : 0;
  const int64_t num_anchors = t.indptr ? t.indptr->numel() - 1 : 0;
  return {int64_vector(op, "id", id, n),
          int64_vector(op, "cum_weight", t.cum_weight,
                       cum_weight_size(num_nodes, 1)),
          int64_vector(op, "order", t.order, num_nodes),
          int64_vector(op, "order_time", t.order_time, num_nodes),
          int64_vector(op, "max_time", t.max_time, n),
          int64_vector(op, "anchor", t.anchor, n),
          int64_vector(op, "indptr", t.indptr, num_anchors + 1),
          int64_vector(op, "indices", t.indices, num_neighbors),
          n,
          num_nodes,
          num_anchors,
          num_neighbors,
          stream};
}

inline uint64_t negative_stream(const char* op,
                                const Tensor& key,
                                int64_t call_id,
                                bool target) {
  return read_stream(op, key, call_id,
                     target ? kNegativeTarget : kNegativeSource);
}

// Raises an error if `valid` is false: the neighbours of an anchor are out of
// bounds.
inline void check_anchor(const char* op,
                         bool valid,
                         int64_t num_anchors,
                         int64_t anchor) {
  STD_TORCH_CHECK(valid, op, ": 'anchor' must be in [0, ", num_anchors,
                  ") (got ", anchor, ") and 'indptr' must ascend");
}

}  // namespace gsample
