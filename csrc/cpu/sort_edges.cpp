#include "sort_edges.h"

#include <algorithm>
#include <vector>

namespace gsample {

namespace {

// Counts [size], stored from indptr[1] on, become the start of each vertex.
// Returns the largest count.
int64_t cumulate(int32_t* indptr, int64_t size) {
  int32_t sum = 0, most = 0;
  indptr[0] = 0;
  for (int64_t v = 1; v <= size; ++v) {
    most = std::max(most, indptr[v]);
    indptr[v] = sum += indptr[v];
  }
  return most;
}

}  // namespace

template <typename input_t>
int64_t count_edges(const Edges<input_t>& edges,
                    int32_t* indptr,
                    float* degree) {
  const bool keeps = edges.loops == Loops::kKeep;
  const uint64_t rows = edges.num_rows, cols = edges.num_cols;
  std::fill(indptr, indptr + edges.num_cols + 1, 0);
  bool valid = true;
  for (int64_t i = 0; i < edges.size; ++i)
    valid &= static_cast<uint64_t>(edges.row[i]) < rows &&
             static_cast<uint64_t>(edges.col[i]) < cols;
  if (!valid)
    return -1;
  for (int64_t i = 0; i < edges.size; ++i)
    indptr[edges.col[i] + 1] += keeps || edges.row[i] != edges.col[i];
  if (edges.loops == Loops::kReplace)
    for (int64_t v = 0; v < std::min(edges.num_rows, edges.num_cols); ++v)
      ++indptr[v + 1];
  for (int64_t v = 0; v < edges.num_cols; ++v)
    degree[v] = static_cast<float>(indptr[v + 1]);
  return cumulate(indptr, edges.num_cols);
}

template <typename input_t>
void place_edges(const Edges<input_t>& edges,
                 const int32_t* indptr,
                 int32_t* indices,
                 int32_t* edge_id) {
  const bool keeps = edges.loops == Loops::kKeep;
  std::vector<int32_t> next(indptr, indptr + edges.num_cols);
  for (int64_t i = 0; i < edges.size; ++i) {
    if (!keeps && edges.row[i] == edges.col[i])
      continue;
    const int32_t to = next[edges.col[i]]++;
    indices[to] = static_cast<int32_t>(edges.row[i]);
    edge_id[to] = static_cast<int32_t>(i);
  }
  if (edges.loops == Loops::kReplace)
    for (int64_t v = 0; v < std::min(edges.num_rows, edges.num_cols); ++v) {
      indices[next[v]] = static_cast<int32_t>(v);
      edge_id[next[v]] = static_cast<int32_t>(edges.size + v);
    }
}

int64_t transpose_columns(const int32_t* indptr,
                          const int32_t* indices,
                          const int32_t* edge_id,
                          int64_t num_cols,
                          int64_t num_rows,
                          int32_t* row_indptr,
                          int32_t* cols,
                          int32_t* row_edge_id) {
  std::fill(row_indptr, row_indptr + num_rows + 1, 0);
  for (int64_t i = 0; i < indptr[num_cols]; ++i)
    ++row_indptr[indices[i] + 1];
  const int64_t most = cumulate(row_indptr, num_rows);
  std::vector<int32_t> next(row_indptr, row_indptr + num_rows);
  for (int64_t v = 0; v < num_cols; ++v)
    for (int32_t i = indptr[v]; i < indptr[v + 1]; ++i) {
      const int32_t to = next[indices[i]]++;
      cols[to] = static_cast<int32_t>(v);
      row_edge_id[to] = edge_id == nullptr ? i : edge_id[i];
    }
  return most;
}

#define GSAMPLE_INSTANTIATE(input_t)                                         \
  template int64_t count_edges(const Edges<input_t>&, int32_t*, float*);     \
  template void place_edges(const Edges<input_t>&, const int32_t*, int32_t*, \
                            int32_t*);
GSAMPLE_INSTANTIATE(int32_t)
GSAMPLE_INSTANTIATE(int64_t)
#undef GSAMPLE_INSTANTIATE

}  // namespace gsample
