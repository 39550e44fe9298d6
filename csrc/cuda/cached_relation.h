// A relation, and those of its columns that are in the device's memory, too.
#pragma once

#include "../args.h"

namespace gsample {

template <typename indptr_t, typename index_t>
struct CachedRelation : Relation<indptr_t, index_t> {
  const index_t* cache;        // or null
  const int64_t* cache_start;  // [num_cols] of a column in `cache`, or -1
  int64_t* cache_reads;        // [2] edges that were read there, and in all
};

}  // namespace gsample
