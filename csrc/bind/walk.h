// Checks of the walk operators on all devices, with one wording of errors.
#pragma once

#include <cmath>
#include <vector>

#include "../core/walk.h"
#include "check.h"

namespace gsample {

inline void check_length(const char* op, int64_t length) {
  STD_TORCH_CHECK(length >= 0 && length < kMaxSteps, op,
                  ": 'length' must be in [0, 2^31) (got ", length, ")");
}

inline uint64_t check_restart(const char* op, double restart) {
  STD_TORCH_CHECK(restart >= 0 && restart <= 1, op,
                  ": 'restart' must be in [0, 1] (got ", restart, ")");
  return restart_threshold(restart);
}

inline void check_burning(const char* op, double p) {
  STD_TORCH_CHECK(p >= 0 && p < 1, op, ": 'p' must be in [0, 1) (got ", p, ")");
}

inline SecondOrder check_law(const char* op, double p, double q) {
  STD_TORCH_CHECK(p > 0 && std::isfinite(p) && q > 0 && std::isfinite(q), op,
                  ": 'p' and 'q' must be positive and finite (got ", p, " and ",
                  q, ")");
  return second_order(p, q);
}

template <typename indptr_t, typename index_t>
WalkGraph<indptr_t, index_t> walk_graph(
    const char* op,
    const Tensor& indptr,
    const Tensor& indices,
    const std::optional<Tensor>& cum_weight) {
  const int64_t num_cols = indptr.numel() - 1, num_edges = indices.numel();
  return {indptr.const_data_ptr<indptr_t>(), indices.const_data_ptr<index_t>(),
          int64_vector(op, "cum_weight", cum_weight,
                       cum_weight_size(num_edges, num_cols)),
          num_cols, num_edges};
}

// The entries of each column in ascending order, if they were sorted before.
// They are only compared: wrong ones change walks, but never read out of
// bounds.
inline std::optional<Tensor> ascending_entries(
    const char* op,
    const Tensor& indices,
    bool is_sorted,
    const std::optional<Tensor>& ascending) {
  if (ascending) {
    check_vector(op, "ascending", *ascending, indices.scalar_type());
    check_size(op, "ascending", *ascending, indices.numel());
  }
  return is_sorted ? indices : ascending;
}

// Returns the number of columns of the first step's graph.
inline int64_t check_path(const char* op,
                          const std::vector<Tensor>& indptr,
                          const std::vector<Tensor>& indices,
                          const std::vector<int64_t>& path) {
  const int64_t relations = static_cast<int64_t>(indptr.size());
  STD_TORCH_CHECK(indptr.size() == indices.size(), op,
                  ": 'indptr' and 'indices' must have one item for each "
                  "relation (got ",
                  relations, " and ", indices.size(), ")");
  STD_TORCH_CHECK(!path.empty(), op, ": 'path' must not be empty");
  for (const int64_t relation : path)
    STD_TORCH_CHECK(relation >= 0 && relation < relations, op,
                    ": 'path' must hold relations in [0, ", relations,
                    ") (got ", relation, ")");
  for (int64_t i = 0; i < relations; ++i) {
    check_matrix(op, indptr[i], indices[i]);
    check_vector(op, "indptr", indptr[i], indptr[0].scalar_type());
    check_vector(op, "indices", indices[i], indices[0].scalar_type());
  }
  return indptr[path[0]].numel() - 1;
}

[[noreturn]] inline void raise_seed(const char* op,
                                    int64_t num_cols,
                                    int64_t seed,
                                    int64_t where) {
  STD_TORCH_CHECK(false, op, ": 'seeds' must be in [0, ", num_cols, ") (got ",
                  seed, " at position ", where, ")");
  throw 0;  // not reached
}

[[noreturn]] inline void raise_column(const char* op,
                                      int64_t num_edges,
                                      int64_t column,
                                      int64_t relation) {
  STD_TORCH_CHECK(false, op, ": 'indptr' must ascend from 0 to the ", num_edges,
                  " edges (it does not at column ", column, " of relation ",
                  relation, ")");
  throw 0;
}

[[noreturn]] inline void raise_edge(const char* op,
                                    int64_t node,
                                    int64_t edge,
                                    int64_t relation) {
  STD_TORCH_CHECK(false, op,
                  ": 'indices' must be columns of the graph of the next step "
                  "(got ",
                  node, " at edge ", edge, " of relation ", relation, ")");
  throw 0;
}

}  // namespace gsample
