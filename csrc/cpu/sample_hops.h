// Several hops of column sampling, each from a frontier that the rows of the
// hop before give by a rule: what a loop of extract, sample and next frontier
// does, in phases over a whole frontier. See neighbor_sample.cpp for these.
#pragma once

#include "../args.h"
#include "buffer.h"
#include "hop_pipeline.h"
#include "neighbor_sample.h"
#include "tables.h"

namespace gsample {

template <typename indptr_t, typename index_t>
struct SampleHopsArgs {
  Relation<indptr_t, index_t> graph;
  int64_t num_nodes;
  int num_hops;
  Frontier frontier;
  bool sorted;  // each frontier is sorted at last
  bool replace;
  int threads;
};

// Samples hop after hop: count(), select() and, for a further hop, columns().
// Outputs are the caller's, of the sizes that the step before gave.
template <typename indptr_t, typename index_t>
class HopSampler {
 public:
  explicit HopSampler(const SampleHopsArgs<indptr_t, index_t>& args);
  HopSampler(const HopSampler&) = delete;
  HopSampler& operator=(const HopSampler&) = delete;
  ~HopSampler() { close(); }

  const Fault& fault() const { return fault_; }

  // The columns of the first hop.
  Status begin(const int64_t* seeds, int64_t n);
  // Writes indptr [num_columns + 1] of a hop.
  Status count(int hop, indptr_t* indptr);
  // Writes the position and the row of each edge [indptr[num_columns]]. With
  // `next`, the columns become those of the next hop.
  Status select(uint64_t key, int64_t* edge, index_t* row, bool next);

  int64_t num_columns() const { return num_columns_; }
  void columns(int64_t* node) const;

 private:
  struct Workspace {
    Buffer<index_t> column;   // [num_columns] of this hop
    Buffer<indptr_t> start;   // [num_columns] first candidate
    Buffer<indptr_t> length;  // [num_columns] ~length: take all
    Buffer<int64_t> offset;   // [num_columns + 1] where edges go
    Buffer<index_t> node;     // [size] a set of nodes, in order
    DenseTable dense_table;
    HashTable hash_table;
  };

  template <typename function_t>
  void with_table(const function_t& function) {
    dense_ ? function(workspace_.dense_table) : function(workspace_.hash_table);
  }
  Status status() const;
  void clear();
  void close();
  void insert(const index_t* node, int64_t begin, int64_t end);
  void begin_frontier(int64_t extra);
  void end_frontier();
  void select_edges(const Chunk& chunk, uint64_t key, int64_t* edge) const;
  bool read_rows(int64_t begin,
                 int64_t end,
                 const int64_t* edge,
                 index_t* row,
                 bool next);
  std::vector<Chunk> cut_chunks() const;

  const SampleHopsArgs<indptr_t, index_t>& args_;
  SampleOptions options_{};
  Workspace& workspace_;
  bool dense_ = false;  // which of the tables is in use
  int hop_ = 0;
  int64_t num_columns_ = 0;
  int64_t size_ = 0;   // of the set
  int64_t skip_ = 0;   // of its nodes, which are not in the next frontier
  bool open_ = false;  // whether there is a set
  Fault fault_;
  Interrupt interrupt_;
};

}  // namespace gsample
