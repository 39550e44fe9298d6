// Neighbour lists of graphs in the host's memory that are on the device, too.
// They change how fast a sample is made, never what it is.
#pragma once

#include <stdint.h>

namespace gsample {

struct CachedLists {
  const void* indices = nullptr;   // of the lists, as the graph's; or null
  const int64_t* start = nullptr;  // [num_cols] of a list in them, or -1
  int64_t* reads = nullptr;        // [2] edges that were read there, and in all
};

// Of the graph whose indices are at this address of the host.
CachedLists find_cached_lists(const void* indices,
                              int64_t num_cols,
                              int64_t num_edges);

}  // namespace gsample
