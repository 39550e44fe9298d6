// Slices of a sparse matrix in CSC.
#pragma once

#include <stdint.h>

#include <vector>

#include "buffer.h"
#include "parallel.h"

namespace gsample {

template <typename indptr_t, typename index_t>
struct Matrix {
  const indptr_t* indptr;  // [num_cols + 1]
  const index_t* indices;  // [num_edges]
  int64_t num_rows;
  int64_t num_cols;
  int64_t num_edges;
};

// Whether a column exists and its pointers are within the edges.
template <typename indptr_t, typename index_t>
bool is_column(const Matrix<indptr_t, index_t>& matrix, int64_t v) {
  return v >= 0 && v < matrix.num_cols && matrix.indptr[v] >= 0 &&
         matrix.indptr[v] <= matrix.indptr[v + 1] &&
         matrix.indptr[v + 1] <= matrix.num_edges;
}

// The start of each column of `cols` [n] in A[:, cols]: indptr [n + 1]. kFault:
// a column is outside [0, num_cols), or `indptr` is malformed there.
template <typename indptr_t, typename index_t>
Status slice_cols_indptr(const Matrix<indptr_t, index_t>& matrix,
                         const int64_t* cols,
                         int64_t n,
                         indptr_t* indptr,
                         int threads);

// The edges of A[:, cols], and their positions in A.
template <typename indptr_t, typename index_t>
void slice_cols_edges(const Matrix<indptr_t, index_t>& matrix,
                      const int64_t* cols,
                      int64_t n,
                      const indptr_t* indptr,
                      index_t* indices,
                      int64_t* edge,
                      int threads);

class PairFilter;
class RowPlaces;

// A[rows, cols], found by `find` and copied by `write`. A repeated row gets its
// edges each time.
template <typename indptr_t, typename index_t>
class RowSlice {
 public:
  // `rows` [n] and `cols` [num_cols], or null: all columns.
  RowSlice(const Matrix<indptr_t, index_t>& matrix,
           const int64_t* rows,
           int64_t n,
           const int64_t* cols,
           int64_t num_cols,
           int threads)
      : matrix_(matrix),
        rows_(rows),
        n_(n),
        cols_(cols),
        num_cols_(num_cols),
        threads_(threads) {}

  // Writes indptr [num_cols + 1] of the result. kFault: as slice_cols_indptr().
  Status find(indptr_t* indptr);
  void write(const indptr_t* indptr, index_t* indices, int64_t* edge);

 private:
  // The edges that one task found in the columns [begin, end).
  struct Part {
    int64_t begin;
    int64_t end;
    int64_t size;
    Buffer<int64_t> edge;
    Buffer<uint32_t> row;

    void add(int64_t e, uint32_t r) {
      if (size == static_cast<int64_t>(edge.capacity())) {
        edge.reserve(size + 1, size);
        row.reserve(edge.capacity(), size);
      }
      edge[size] = e;
      row[size++] = r;
    }
  };

  void collect(Part& part,
               const PairFilter& filter,
               RowPlaces& places,
               Interrupt& interrupt);

  const Matrix<indptr_t, index_t>& matrix_;
  const int64_t* rows_;
  int64_t n_;
  const int64_t* cols_;
  int64_t num_cols_;
  int threads_;
  std::vector<int64_t> counts_;  // edges of each column
  std::vector<Part> parts_;
};

}  // namespace gsample
