// Two sorted vectors as one, on a GPU: what bind/ fills in, and what
// merge_sorted.cu reads. All pointers are to the device's memory.
#pragma once

#include "device.h"

namespace gsample {

// Ascending numbers, each with where it was.
template <typename input_t>
struct SortedPart {
  const input_t* value;  // [n]
  const int64_t* from;   // [n]
  int64_t n;
};

// The numbers of the first part were before those of the second.
template <typename input_t>
struct MergeSortedCuda {
  SortedPart<input_t> first;
  SortedPart<input_t> second;

  input_t* value;  // [first.n + second.n]
  int64_t* from;   // [first.n + second.n]
};

template <typename input_t>
void merge_sorted(const MergeSortedCuda<input_t>& args, StreamHandle stream);

}  // namespace gsample
