// Several hops of column sampling in graphs with node and edge types, for the
// frontiers that take in all that a hop meets. See sample_hops.h for graphs of
// one type, and for all frontiers.
#pragma once

#include <memory>
#include <vector>

#include "../args.h"
#include "buffer.h"
#include "hop_pipeline.h"
#include "neighbor_sample.h"
#include "tables.h"

namespace gsample {

// Where the edges of a relation at a hop go.
template <typename index_t>
struct LayerOutput {
  int64_t* edge;
  index_t* row;
};

// Samples hop after hop: count(), select() and, for a further hop, columns().
// Outputs are the caller's, of the sizes that the step before gave.
template <typename indptr_t, typename index_t>
class HeteroHopSampler {
 public:
  using Args = NeighborSampleArgs<indptr_t, index_t>;

  // `args` without the key. With `carries`, the columns are columns of the
  // next hop, too.
  HeteroHopSampler(const Args& args, bool carries);

  const Fault& fault() const { return fault_; }

  // The columns of the first hop.
  Status begin();
  // Writes indptr [num_columns + 1] of each relation.
  Status count(int hop, indptr_t* const* indptr);
  // Writes the edges of each relation, with draws of the call of a key. With
  // `next`, the columns become those of the next hop.
  Status select(const Key& key,
                uint32_t call_id,
                const LayerOutput<index_t>* out,
                bool next);

  int64_t num_columns(int type) const { return types_[type]->num_columns; }
  // `tree` may be null.
  void columns(int type, int64_t* node, int64_t* tree) const;

 private:
  // Columns of a hop, and the set that is to be those of the next one.
  struct Type {
    int64_t num_columns;
    int64_t size;
    Buffer<index_t> column;       // [num_columns]
    Buffer<uint32_t> tree;        // [num_columns], if disjoint
    Buffer<index_t> next_column;  // [size + 1]
    Buffer<uint32_t> next_tree;   // [size + 1]
    bool dense;                   // which of the tables is in use
    DenseTable dense_table;
    HashTable hash_table;

    template <typename function_t>
    void with_table(const function_t& function) {
      dense ? function(dense_table) : function(hash_table);
    }
  };
  // Of the columns of a relation.
  struct Columns {
    Buffer<indptr_t> start;   // [num_columns] first candidate
    Buffer<indptr_t> length;  // [num_columns] ~length: take all
    Buffer<int64_t> offset;   // [num_columns + 1] where edges go
  };
  // Kept by every thread that samples; grows to what its batches need.
  struct Workspace {
    std::vector<std::unique_ptr<Type>> types;
    std::vector<std::unique_ptr<Columns>> relations;
    Buffer<int64_t> tree_time;  // [trees]
  };
  static Workspace& workspace(int num_types, int num_relations);

  Status status() const;
  const Relation<indptr_t, index_t>& relation(int r) const {
    return args_.relations[r];
  }
  int64_t num_edges(int r) const;
  void begin_type(int t, int64_t first_tree);
  void count_block(const Chunk& block);
  void add_up(int r, indptr_t* indptr);
  std::vector<Chunk> cut_chunks() const;
  void select_edges(const Chunk& chunk, uint64_t stream, int64_t* edge) const;
  bool read_rows(const Chunk& chunk,
                 const LayerOutput<index_t>& out,
                 bool next);
  void begin_frontier(int t);
  void meet(const Chunk& chunk, const index_t* row);
  void insert(int t,
              const index_t* node,
              int64_t begin,
              int64_t end,
              int64_t prefetch_end,
              uint32_t tree);
  void end_frontier(int t);

  const Args& args_;
  const bool carries_;
  const int threads_;
  std::vector<std::unique_ptr<Type>>& types_;
  std::vector<std::unique_ptr<Columns>>& columns_;
  Buffer<int64_t>& tree_time_;
  int hop_ = 0;
  bool by_tree_ = false;  // draws are those of trees
  Fault fault_;
  Interrupt interrupt_;
};

}  // namespace gsample
