// Adjacency lists of a graph in host memory that the device caches. The cache
// changes the speed of sampling, never the sample.
#pragma once

#include "../cuda/cached_relation.h"
#include "check.h"

namespace gsample {

struct CachedLists {
  const void* indices = nullptr;   // of the cached lists, with the graph's
                                   // dtype; or null
  const int64_t* start = nullptr;  // [num_cols] position of each list in them,
                                   // or -1
  int64_t* reads = nullptr;        // [2] edges read from the cache, and in all
};

// The cache of the graph whose indices are at this host address.
CachedLists find_cached_lists(const void* indices,
                              int64_t num_cols,
                              int64_t num_edges);

template <typename indptr_t, typename index_t>
CachedRelation<indptr_t, index_t> with_cache(
    const Relation<indptr_t, index_t>& relation,
    const Tensor& indptr,
    const Tensor& indices) {
  const CachedLists lists = find_cached_lists(
      indices.const_data_ptr(), indptr.numel() - 1, indices.numel());
  return {relation, static_cast<const index_t*>(lists.indices), lists.start,
          lists.reads};
}

}  // namespace gsample
