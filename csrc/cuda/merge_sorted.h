// Merge of two sorted vectors on a GPU: bind/ fills this in, merge_sorted.cu
// reads it. All pointers are to device memory.
#pragma once

#include "device.h"

namespace gsample {

// Ascending numbers, each with its original position.
template <typename input_t>
struct SortedPart {
  const input_t* value;  // [n]
  const int64_t* from;   // [n]
  int64_t n;
};

// The original positions of the first part precede those of the second.
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
