// Edges of a relation that are not in arrays, such as those of cached blocks of
// a file. Each function returns false if something is missing or malformed; the
// caller then samples in another way.
#pragma once

#include <stdint.h>

#include "buffer.h"

namespace gsample {

// The cumulated weights of all edges of a column.
template <typename indptr_t>
struct ColumnWeights {
  const int64_t* cum;
  indptr_t start;  // position of the column's first edge
  bool has_zero;   // whether a weight is zero
};

template <typename indptr_t, typename index_t>
class EdgeSource {
 public:
  virtual ~EdgeSource() = default;
  virtual bool is_weighted() const = 0;
  virtual bool is_timed() const = 0;

  // The positions of the columns of node [n]: start and length.
  virtual bool find(const index_t* node,
                    int64_t n,
                    indptr_t* start,
                    indptr_t* length) const = 0;
  // The first edge of a column of which the time is greater than `time`, or not
  // smaller if `lower`. Edges ascend by time.
  virtual bool search(int64_t time,
                      bool lower,
                      indptr_t start,
                      indptr_t length,
                      indptr_t* found) const = 0;
  // Sums up the weights of n columns: writes the sums to `cum`, and where those
  // of each column are to `weights`.
  virtual bool cumulate(const indptr_t* start,
                        const indptr_t* length,
                        int64_t n,
                        Buffer<int64_t>& cum,
                        ColumnWeights<indptr_t>* weights) const = 0;
  // Reads the rows of edge [n], and replaces positions by ids. Rows may be any
  // numbers, which the caller checks; ids are only output.
  virtual bool read(indptr_t* edge, int64_t n, index_t* row) const = 0;
};

}  // namespace gsample
