// Reads of neighbour lists, in the graph or in the cache of them.
#pragma once

#include "cached_relation.h"
#include "sample_column.cuh"

namespace gsample {

// The neighbours of the candidates of column v. One thread counts.
template <typename indptr_t, typename index_t>
__device__ const index_t* read_list(
    const CachedRelation<indptr_t, index_t>& graph,
    int64_t v,
    const SampleColumn& column,
    bool counts) {
  const int64_t start = graph.cache == nullptr ? -1 : graph.cache_start[v];
  if (start < 0)
    return graph.indices + column.start;
  if (counts)
    Atomic<int64_t>(graph.cache_reads[0]).fetch_add(column.count, kRelaxed);
  return graph.cache + start + (column.start - graph.indptr[v]);
}

// Counts edges of any lists.
template <typename indptr_t, typename index_t>
__device__ void count_reads(const CachedRelation<indptr_t, index_t>& graph,
                            int64_t edges) {
  if (graph.cache != nullptr)
    Atomic<int64_t>(graph.cache_reads[1]).fetch_add(edges, kRelaxed);
}

}  // namespace gsample
