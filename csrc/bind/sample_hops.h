// The operator sample_hops: what its kernels on the CPU and on a GPU share.
#pragma once

#include <tuple>
#include <vector>

#include "check.h"

namespace gsample {

using Tensors = std::vector<Tensor>;
using Hops = std::tuple<Tensors, Tensors, Tensors, Tensors>;

constexpr const char* kSampleHops = "sample_hops";

// The arguments, checked; what is in tensors but the keys may be on a GPU.
struct HopInputs {
  Tensor indptr;
  Tensor indices;
  Tensor seeds;
  std::vector<int64_t> fanouts;
  std::vector<uint64_t> streams;  // of each hop
  std::optional<Tensor> cum_weight;
  Frontier frontier;
  bool sorted;
  bool replace;
  bool return_frontier;
  int64_t num_threads;

  int64_t num_nodes() const { return indptr.numel() - 1; }
  template <typename indptr_t, typename index_t>
  Relation<indptr_t, index_t> relation() const {
    return {indptr.const_data_ptr<indptr_t>(),
            indices.const_data_ptr<index_t>(),
            cum_weight ? cum_weight->const_data_ptr<int64_t>() : nullptr,
            nullptr,
            fanouts.data(),
            indices.numel(),
            0,
            0};
  }
};

// Each hop has a key, and the number of its draw.
inline void check_keys(const char* op,
                       const Tensors& key,
                       const std::vector<int64_t>& call_id,
                       size_t hops) {
  STD_TORCH_CHECK(key.size() == hops && call_id.size() == hops, op,
                  ": 'key' and 'call_id' must have one item for each of ", hops,
                  " hops (got ", key.size(), " and ", call_id.size(), ")");
}

inline Frontier read_frontier(int64_t frontier) {
  STD_TORCH_CHECK(frontier >= 0 && frontier < 4, kSampleHops,
                  ": 'frontier' must be 0 for 'row', 1 for 'nodes', 2 for "
                  "'new' or 3 for 'unseen' (got ",
                  frontier, ")");
  return static_cast<Frontier>(frontier);
}

template <Hops (*sample)(const HopInputs&)>
Hops sample_hops(Tensor indptr,
                 Tensor indices,
                 Tensor seeds,
                 std::vector<int64_t> fanouts,
                 Tensors key,
                 std::vector<int64_t> call_id,
                 std::optional<Tensor> cum_weight,
                 int64_t frontier,
                 bool sorted,
                 bool replace,
                 bool return_frontier,
                 int64_t num_threads) {
  const char* op = kSampleHops;
  check_matrix(op, indptr, indices);
  check_vector(op, "seeds", seeds, ScalarType::Long);
  const size_t hops = fanouts.size();
  check_keys(op, key, call_id, hops);
  std::vector<uint64_t> streams;
  for (size_t hop = 0; hop < hops; ++hop) {
    check_fanout(op, fanouts[hop], replace);
    streams.push_back(read_stream(op, key[hop], call_id[hop], 0));
  }
  int64_vector(op, "cum_weight", cum_weight,
               cum_weight_size(indices.numel(), indptr.numel() - 1));
  return sample({indptr, indices, seeds, fanouts, streams, cum_weight,
                 read_frontier(frontier), sorted, replace, return_frontier,
                 num_threads});
}

}  // namespace gsample
