// Reads of adjacency lists, from the graph or its cache.
#pragma once

#include "cached_relation.h"
#include "sample_column.cuh"

namespace gsample {

// Edges that a block reads from lists of its first relations. They are added to
// the cache's counts when the block ends: per list, all blocks would wait for
// the same word. Edges of a launch have 31 bits.
struct BlockReads {
  static constexpr int kRelations = 8;
  uint32_t cached[kRelations];
  uint32_t all[kRelations];
};

// Called by all threads of a block; a barrier must follow.
__device__ inline void clear_reads(BlockReads& reads) {
  for (unsigned r = threadIdx.x; r < BlockReads::kRelations; r += blockDim.x)
    reads.cached[r] = reads.all[r] = 0;
}

// The neighbours of the candidates of column v.
template <typename indptr_t, typename index_t>
__device__ const index_t* read_list(
    const CachedRelation<indptr_t, index_t>& graph,
    int64_t v,
    const SampleColumn& column,
    bool* cached) {
  const int64_t start = graph.cache == nullptr ? -1 : graph.cache_start[v];
  *cached = start >= 0;
  return start < 0 ? graph.indices + column.start
                   : graph.cache + start + (column.start - graph.indptr[v]);
}

// Counts edges of a list of relation r; called by one thread.
template <typename indptr_t, typename index_t>
__device__ void note_read(const CachedRelation<indptr_t, index_t>& graph,
                          int r,
                          int64_t edges,
                          bool cached,
                          BlockReads& reads) {
  if (graph.cache == nullptr)
    return;
  if (r < BlockReads::kRelations) {
    add_in_block(reads.all[r], static_cast<uint32_t>(edges));
    add_in_block(reads.cached[r], cached ? static_cast<uint32_t>(edges) : 0);
    return;
  }
  Atomic<int64_t>(graph.cache_reads[0]).fetch_add(cached ? edges : 0, kRelaxed);
  Atomic<int64_t>(graph.cache_reads[1]).fetch_add(edges, kRelaxed);
}

// Adds a block's reads of relation r; called by one of its threads, after a
// barrier.
template <typename indptr_t, typename index_t>
__device__ void add_reads(const CachedRelation<indptr_t, index_t>& graph,
                          int r,
                          BlockReads& reads) {
  if (reads.all[r] == 0)
    return;
  Atomic<int64_t>(graph.cache_reads[0]).fetch_add(reads.cached[r], kRelaxed);
  Atomic<int64_t>(graph.cache_reads[1]).fetch_add(reads.all[r], kRelaxed);
  reads.cached[r] = reads.all[r] = 0;
}

}  // namespace gsample
