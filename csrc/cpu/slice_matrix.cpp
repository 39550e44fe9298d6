#include "slice_matrix.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "tables.h"

namespace gsample {

namespace {

constexpr int64_t kGrain = 2048;       // columns of one task, at least
constexpr int64_t kEdgeGrain = 16384;  // edges of one task, at least
constexpr int64_t kPrefetch = 16;      // table accesses in flight

// Cuts columns in parts with about as many edges each: where they begin, and
// the end of the last one.
template <typename indptr_t>
std::vector<int64_t> cut_columns(const indptr_t* indptr,
                                 int64_t num_cols,
                                 int threads) {
  const int64_t num_edges = indptr[num_cols];
  const int64_t parts =
      std::max<int64_t>(1, std::min<int64_t>(threads, num_edges / kEdgeGrain));
  std::vector<int64_t> cuts(parts + 1, 0);
  for (int64_t part = 1; part < parts; ++part)
    cuts[part] =
        std::lower_bound(indptr, indptr + num_cols,
                         static_cast<indptr_t>(num_edges / parts * part)) -
        indptr;
  cuts[parts] = num_cols;
  return cuts;
}

// A set of rows with false positives: one bit for all rows that are equal in
// their low bits. It is small enough for the first-level cache, and says of
// nearly every row that it is not wanted.
class RowFilter {
 public:
  RowFilter(const int64_t* rows, int64_t n) {
    uint64_t size = uint64_t{1} << 12;
    while (size < kBitsPerRow * static_cast<uint64_t>(n))
      size *= 2;
    mask_ = size - 1;
    bits_.resize(size / 64, 0);
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t bit = static_cast<uint64_t>(rows[i]) & mask_;
      bits_[bit / 64] |= uint64_t{1} << (bit % 64);
    }
  }
  bool may_hold(uint64_t row) const {
    const uint64_t bit = row & mask_;
    return bits_[bit / 64] >> (bit % 64) & 1;
  }

 private:
  static constexpr uint64_t kBitsPerRow = 32;
  uint64_t mask_;
  std::vector<uint64_t> bits_;
};

// Where each row id is among some rows, which may repeat it.
class RowPlaces {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  RowPlaces(const int64_t* rows, int64_t n) : next_(n, kNone) {
    table_.begin_call(0);
    table_.reserve(0, n);
    std::vector<uint32_t> last(n);
    for (int64_t i = 0; i < n; ++i) {
      const uint32_t place = static_cast<uint32_t>(i);
      const uint32_t first = table_.find_or_insert(rows[i], place);
      if (first != place)
        next_[last[first]] = place;
      last[first] = place;
    }
  }
  // The first place of a row, kNone if it has none. Threads may ask at a time.
  uint32_t first(uint64_t row) {
    uint32_t place;
    return table_.find(row, &place) ? place : kNone;
  }
  uint32_t next(uint32_t place) const { return next_[place]; }

 private:
  HashTable table_;
  std::vector<uint32_t> next_;
};

template <typename indptr_t, typename index_t>
bool is_column(const Matrix<indptr_t, index_t>& matrix, int64_t v) {
  return v >= 0 && v < matrix.num_cols && matrix.indptr[v] >= 0 &&
         matrix.indptr[v] <= matrix.indptr[v + 1] &&
         matrix.indptr[v + 1] <= matrix.num_edges;
}

}  // namespace

template <typename indptr_t, typename index_t>
Status slice_cols_indptr(const Matrix<indptr_t, index_t>& matrix,
                         const int64_t* cols,
                         int64_t n,
                         indptr_t* indptr,
                         int threads) {
  std::atomic<bool> valid{true};
  indptr[0] = 0;
  parallel_ranges(n, kGrain, threads, [&](int64_t begin, int64_t end) {
    bool all = true;
    for (int64_t i = begin; i < end; ++i) {
      const bool ok = is_column(matrix, cols[i]);
      indptr[i + 1] =
          ok ? matrix.indptr[cols[i] + 1] - matrix.indptr[cols[i]] : 0;
      all &= ok;
    }
    if (!all)
      valid = false;
  });
  int64_t total = 0;
  for (int64_t i = 0; i < n; ++i) {
    total += indptr[i + 1];
    indptr[i + 1] = static_cast<indptr_t>(total);
  }
  // Columns that are taken repeatedly can exceed what int32 counts.
  if (total > static_cast<int64_t>(std::numeric_limits<indptr_t>::max()))
    return Status::kFault;
  return valid ? Status::kDone : Status::kFault;
}

template <typename indptr_t, typename index_t>
void slice_cols_edges(const Matrix<indptr_t, index_t>& matrix,
                      const int64_t* cols,
                      int64_t n,
                      const indptr_t* indptr,
                      index_t* indices,
                      int64_t* edge,
                      int threads) {
  const std::vector<int64_t> cuts = cut_columns(indptr, n, threads);
  run_tasks(static_cast<int>(cuts.size()) - 1, [&](int part) {
    const int64_t end = cuts[part + 1];
    for (int64_t i = cuts[part]; i < end; ++i) {
      if (i + kPrefetch < end)
        __builtin_prefetch(matrix.indices + matrix.indptr[cols[i + kPrefetch]]);
      const int64_t first = matrix.indptr[cols[i]];
      const int64_t to = indptr[i], length = indptr[i + 1] - indptr[i];
      for (int64_t j = 0; j < length; ++j) {
        indices[to + j] = matrix.indices[first + j];
        edge[to + j] = first + j;
      }
    }
  });
}

template <typename indptr_t, typename index_t>
Status RowSlice<indptr_t, index_t>::find(indptr_t* indptr) {
  const Matrix<indptr_t, index_t>& matrix = matrix_;
  // Where columns begin if all of their edges stay: how work is divided.
  const indptr_t* begin = matrix.indptr;
  if (cols_ != nullptr) {
    if (slice_cols_indptr(matrix, cols_, num_cols_, indptr, threads_) !=
        Status::kDone)
      return Status::kFault;
    begin = indptr;
  } else {
    for (int64_t v = 0; v < num_cols_; ++v)
      if (!is_column(matrix, v))
        return Status::kFault;
  }
  const RowFilter filter(rows_, n_);
  RowPlaces places(rows_, n_);
  std::vector<int64_t> counts(num_cols_);
  const std::vector<int64_t> cuts = cut_columns(begin, num_cols_, threads_);
  parts_.resize(cuts.size() - 1);
  Interrupt interrupt;
  run_tasks(static_cast<int>(parts_.size()), [&](int p) {
    Part& part = parts_[p];
    part.begin = cuts[p];
    part.end = cuts[p + 1];
    part.size = 0;
    Buffer<int64_t> passed;  // edges of a column that pass the filter
    for (int64_t v = part.begin; v < part.end && !interrupt.stopped(); ++v) {
      if (cols_ != nullptr && v + kPrefetch < part.end)
        __builtin_prefetch(matrix.indices +
                           matrix.indptr[cols_[v + kPrefetch]]);
      const int64_t first = matrix.indptr[column(v)];
      const int64_t last = matrix.indptr[column(v) + 1];
      passed.reserve(last - first + 1);
      int64_t num_passed = 0;
      for (int64_t e = first; e < last; ++e) {
        passed[num_passed] = e;
        num_passed += filter.may_hold(static_cast<uint64_t>(matrix.indices[e]));
      }
      const int64_t before = part.size;
      for (int64_t i = 0; i < num_passed; ++i)
        for (uint32_t r = places.first(matrix.indices[passed[i]]);
             r != RowPlaces::kNone; r = places.next(r))
          part.add(passed[i], r);
      counts[v] = part.size - before;
      if (v % kGrain == 0)
        interrupt.poll();
    }
  });
  if (interrupt.stopped())
    return Status::kInterrupted;
  int64_t total = 0;
  indptr[0] = 0;
  for (int64_t v = 0; v < num_cols_; ++v) {
    total += counts[v];
    indptr[v + 1] = static_cast<indptr_t>(total);
  }
  // Rows that are taken repeatedly can exceed what int32 counts.
  if (total > static_cast<int64_t>(std::numeric_limits<indptr_t>::max()))
    return Status::kFault;
  return Status::kDone;
}

template <typename indptr_t, typename index_t>
void RowSlice<indptr_t, index_t>::write(const indptr_t* indptr,
                                        index_t* indices,
                                        int64_t* edge) {
  run_tasks(static_cast<int>(parts_.size()), [&](int p) {
    const Part& part = parts_[p];
    const int64_t to = indptr[part.begin];
    std::copy(part.edge.data(), part.edge.data() + part.size, edge + to);
    std::copy(part.row.data(), part.row.data() + part.size, indices + to);
  });
}

namespace {

template <typename table_t, typename id_t>
int64_t number(table_t& table,
               const id_t* id,
               int64_t n,
               int64_t num_nodes,
               int64_t* node,
               id_t* local) {
  table.begin_call(num_nodes);
  table.reserve(0, n);
  uint32_t size = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (i + kPrefetch < n && static_cast<uint64_t>(id[i + kPrefetch]) <
                                 static_cast<uint64_t>(num_nodes))
      table.prefetch(id[i + kPrefetch]);
    if (static_cast<uint64_t>(id[i]) >= static_cast<uint64_t>(num_nodes))
      return -1;  // the next call clears the table
    const uint32_t found = table.find_or_insert(id[i], size);
    local[i] = static_cast<id_t>(found);
    node[size] = id[i];  // `node` has room for n, and size <= i
    size += found == size;
  }
  table.end_call(size);
  return size;
}

// A set of nodes, one bit each, that tells how many are below one.
class NodeBits {
 public:
  explicit NodeBits(int64_t num_nodes) : words_(num_nodes / 64 + 1) {}

  void insert(uint64_t id) { words_[id / 64].bits |= uint64_t{1} << id % 64; }

  // Writes the nodes in ascending order, and counts them.
  int64_t number(int64_t* node) {
    int64_t size = 0;
    for (size_t i = 0; i < words_.size(); ++i) {
      words_[i].before = static_cast<uint32_t>(size);
      for (uint64_t left = words_[i].bits; left != 0; left &= left - 1)
        node[size++] = static_cast<int64_t>(64 * i) + __builtin_ctzll(left);
    }
    return size;
  }
  uint32_t number_of(uint64_t id) const {
    const Word& word = words_[id / 64];
    const uint64_t below = word.bits & ((uint64_t{1} << id % 64) - 1);
    return word.before + static_cast<uint32_t>(__builtin_popcountll(below));
  }

 private:
  struct Word {
    uint64_t bits;
    uint32_t before;
  };
  std::vector<Word> words_;
};

template <typename id_t>
int64_t number_ascending(const id_t* id,
                         int64_t n,
                         int64_t num_nodes,
                         int64_t* node,
                         id_t* local) {
  for (int64_t i = 0; i < n; ++i)
    if (static_cast<uint64_t>(id[i]) >= static_cast<uint64_t>(num_nodes))
      return -1;
  constexpr int64_t kNodesPerId = 1024;  // beyond these, sorting is faster
  if (num_nodes / kNodesPerId <= n) {
    NodeBits bits(num_nodes);
    for (int64_t i = 0; i < n; ++i)
      bits.insert(id[i]);
    const int64_t size = bits.number(node);
    for (int64_t i = 0; i < n; ++i)
      local[i] = static_cast<id_t>(bits.number_of(id[i]));
    return size;
  }
  std::copy(id, id + n, node);
  std::sort(node, node + n);
  const int64_t size = std::unique(node, node + n) - node;
  for (int64_t i = 0; i < n; ++i)
    local[i] =
        static_cast<id_t>(std::lower_bound(node, node + size, id[i]) - node);
  return size;
}

}  // namespace

template <typename id_t>
int64_t unique_nodes(const id_t* id,
                     int64_t n,
                     int64_t num_nodes,
                     bool sorted,
                     int64_t* node,
                     id_t* local) {
  static thread_local DenseTable dense;
  static thread_local HashTable hash;
  if (sorted)
    return number_ascending(id, n, num_nodes, node, local);
  return prefers_dense(num_nodes, n)
             ? number(dense, id, n, num_nodes, node, local)
             : number(hash, id, n, num_nodes, node, local);
}

#define GSAMPLE_INSTANTIATE(indptr_t, index_t)                                \
  template Status slice_cols_indptr(const Matrix<indptr_t, index_t>&,         \
                                    const int64_t*, int64_t, indptr_t*, int); \
  template void slice_cols_edges(const Matrix<indptr_t, index_t>&,            \
                                 const int64_t*, int64_t, const indptr_t*,    \
                                 index_t*, int64_t*, int);                    \
  template class RowSlice<indptr_t, index_t>;
GSAMPLE_INSTANTIATE(int32_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int64_t)
#undef GSAMPLE_INSTANTIATE

template int64_t unique_nodes(const int32_t*,
                              int64_t,
                              int64_t,
                              bool,
                              int64_t*,
                              int32_t*);
template int64_t unique_nodes(const int64_t*,
                              int64_t,
                              int64_t,
                              bool,
                              int64_t*,
                              int64_t*);

}  // namespace gsample
