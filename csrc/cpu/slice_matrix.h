// Parts of a sparse matrix in compressed columns.
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

// Where each of the columns `cols` [n] starts in A[:, cols]: indptr [n + 1].
// kFault: a column is outside [0, num_cols), or `indptr` is malformed there.
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

// A[rows, cols], found in `find` and copied by `write`. Of equal rows, the
// first one gets the edges.
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

  int64_t column(int64_t i) const { return cols_ == nullptr ? i : cols_[i]; }

  const Matrix<indptr_t, index_t>& matrix_;
  const int64_t* rows_;
  int64_t n_;
  const int64_t* cols_;
  int64_t num_cols_;
  int threads_;
  std::vector<Part> parts_;
};

// Numbers distinct ids by first occurrence, or in ascending order. `node` [n]
// receives the ids in that order, `local` [n] the number of each id; returns
// how many there are, or -1 if an id is outside [0, num_nodes).
template <typename id_t>
int64_t unique_nodes(const id_t* id,
                     int64_t n,
                     int64_t num_nodes,
                     bool sorted,
                     int64_t* node,
                     id_t* local);

}  // namespace gsample
