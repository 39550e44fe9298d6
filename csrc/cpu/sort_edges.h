// The layouts of few edges for vertex programs, on one thread: a batch of small
// graphs has new edges in each step, and needs them in both orders.
#pragma once

#include <stdint.h>

namespace gsample {

// Edges from a vertex to itself, as in torch_gsample/vertex/kernels/layouts.py.
enum class Loops { kKeep = 0, kRemove = 1, kReplace = 2 };

template <typename input_t>
struct Edges {
  const input_t* row;  // [size]
  const input_t* col;  // [size]
  int64_t size;
  int64_t num_rows;
  int64_t num_cols;
  Loops loops;
};

// Writes indptr [num_cols + 1] and the number of edges of each column, degree
// [num_cols]. Returns the largest, or -1 if a vertex is out of range.
template <typename input_t>
int64_t count_edges(const Edges<input_t>& edges,
                    int32_t* indptr,
                    float* degree);

// Stable counting sort by column, after count_edges(). Writes the row and the
// id of each edge; a new loop is the last edge of its column v, with id
// size + v.
template <typename input_t>
void place_edges(const Edges<input_t>& edges,
                 const int32_t* indptr,
                 int32_t* indices,
                 int32_t* edge_id);

// The edges of checked columns, sorted by row: those of a row in the order of
// the columns. `edge_id` may be null: an id is a position. Returns the largest
// number of edges of a row.
int64_t transpose_columns(const int32_t* indptr,
                          const int32_t* indices,
                          const int32_t* edge_id,
                          int64_t num_cols,
                          int64_t num_rows,
                          int32_t* row_indptr,
                          int32_t* cols,
                          int32_t* row_edge_id);

}  // namespace gsample
