// The nodes of one type that hops sample, numbered by first occurrence.
#pragma once

#include <algorithm>
#include <vector>

#include "buffer.h"
#include "number_rows.h"
#include "tables.h"

namespace gsample {

// The rows of columns [begin, end): those of column i are
// row[offset[i] .. offset[i + 1]), in tree[i] if there are trees.
template <typename index_t>
struct ColumnRows {
  const index_t* row;
  const int64_t* offset;
  int64_t begin;
  int64_t end;
  const uint32_t* tree;
};

// A set of nodes, each in a tree if `by_tree`. The columns of a hop are part of
// it, or of the set before it.
template <typename index_t>
class NodeSet {
 public:
  int64_t size = 0;
  Buffer<index_t> node;   // [size + 1] number -> node
  Buffer<uint32_t> tree;  // [size + 1] number -> tree, if by_tree
  int64_t num_columns;
  int64_t first_column;            // number of the first column
  int64_t next_column;             // number of the next hop's first column
  std::vector<int64_t> hop_nodes;  // columns of each hop
  // [num_columns] of numbered columns, or empty if none occurs twice: the
  // number of the column's first occurrence, which keys its draws, or 0.
  std::vector<uint32_t> repeated;

  // Prepares a call that will add about `expected` nodes, each in a tree if
  // there are any.
  void begin_call(int64_t num_nodes, int64_t num_trees, int64_t expected) {
    num_nodes_ = num_nodes;
    by_tree_ = num_trees > 0;
    dense_ = !by_tree_ && prefers_dense(num_nodes, expected);
    narrow_ = num_nodes <= UINT32_MAX / std::max<int64_t>(num_trees, 1);
    hop_nodes.clear();
    repeated.clear();
  }

  bool is_open() const { return open_; }
  void open() {
    with_table([&](auto& table) { table.begin_call(num_nodes_); });
    open_ = true;
  }
  void close() {
    if (open_)
      with_table(
          [&](auto& table) { table.end_call(static_cast<uint32_t>(size)); });
    open_ = false;
    size = 0;
  }
  // Empties the set. The columns of this hop stay.
  void open_beside_columns() {
    close();
    node.swap(old_node_);
    tree.swap(old_tree_);
    columns_are_old_ = true;
    open();
  }

  // Reserves memory for `most` nodes and one more: a node is written before its
  // lookup shows whether it is new.
  void reserve(int64_t most) {
    node.reserve(most + 1, size);
    if (by_tree_)
      tree.reserve(most + 1, size);
    if (open_)
      with_table([&](auto& table) { table.reserve(size, most - size); });
  }

  // Sets the columns to the nodes from `first` on.
  void set_columns(int64_t first, int64_t last) {
    columns_are_old_ = false;
    first_column = first;
    num_columns = last - first;
    hop_nodes.push_back(num_columns);
  }
  const index_t* column() const {
    return (columns_are_old_ ? old_node_ : node).data() + first_column;
  }
  const uint32_t* column_tree() const {
    return (columns_are_old_ ? old_tree_ : tree).data() + first_column;
  }

  // Numbers the columns, which are the first nodes. Duplicates get numbers,
  // too, but add() finds the number of the first occurrence.
  void number_columns() {
    with_table([&](auto& table) {
      for (int64_t i = 0; i < num_columns; ++i) {
        const uint32_t number = static_cast<uint32_t>(i);
        if (table.find_or_insert(key(by_tree_ ? tree[i] : 0, node[i]),
                                 number) == number)
          continue;
        repeated.resize(num_columns);
        repeated[i] = number;
      }
    });
    size = num_columns;
  }

  // Makes each row a column; the set stays empty.
  void set_columns_of(const index_t* row, int64_t n) {
    node.reserve(n + 1, 0);
    std::copy(row, row + n, node.data());
    set_columns(0, n);
  }
  // Moves each column to the first of its rows, if it has any.
  void move_columns(const index_t* row, const int64_t* offset) {
    for (int64_t i = 0; i < num_columns; ++i)
      if (offset[i + 1] > offset[i])
        node[i] = row[offset[i]];
  }

  // Adds the columns, each once.
  void add_columns() {
    const index_t* from = column();
    const int64_t n = num_columns;
    with_table([&](auto& table) {
      if (!by_tree_)
        return add_run<false, false>(table, from, 0, n, n, 0, kNoNumbers);
      for (int64_t i = 0; i < n; ++i)
        add_run<true, false>(table, from, i, i + 1, i + 1, column_tree()[i],
                             kNoNumbers);
    });
  }

  // Whether several threads may add `num_rows` rows together.
  bool adds_together(int64_t num_rows) const {
    return dense_ && num_rows >= RowNumbering<index_t>::kLeastRows &&
           RowNumbering<index_t>::fits(size, num_rows);
  }
  void add_together(const index_t* row,
                    int64_t num_rows,
                    uint32_t* number,
                    int threads) {
    size = numbering_.run(dense_table_, row, num_rows, size, number,
                          node.data(), threads);
  }

  // Adds rows and writes their numbers, unless `number` is null. Numbers may
  // overwrite the rows.
  template <typename number_t>
  void add(const ColumnRows<index_t>& rows, number_t* number) {
    with_table([&](auto& table) {
      if (number == nullptr)
        add_rows<false>(table, rows, number);
      else
        add_rows<true>(table, rows, number);
    });
  }

 private:
  static constexpr int64_t kPrefetch = 64;  // table accesses in flight
  static constexpr uint32_t* kNoNumbers = nullptr;

  template <typename function_t>
  void with_table(const function_t& function) {
    if (dense_)
      function(dense_table_);
    else if (narrow_)
      function(narrow_table_);
    else
      function(wide_table_);
  }

  uint64_t key(uint32_t of_tree, index_t of_node) const {
    return static_cast<uint64_t>(of_tree) * num_nodes_ +
           static_cast<uint64_t>(of_node);
  }

  template <bool numbered, typename table_t, typename number_t>
  void add_rows(table_t& table,
                const ColumnRows<index_t>& rows,
                number_t* number) {
    const int64_t* offset = rows.offset;
    const int64_t last = offset[rows.end];
    if (!by_tree_)
      return add_run<false, numbered>(table, rows.row, offset[rows.begin], last,
                                      last, 0, number);
    int64_t next = offset[rows.begin], column = rows.begin;
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      const int64_t end = offset[i + 1];
      for (; next < std::min(offset[i] + kPrefetch, last); ++next) {
        while (offset[column + 1] <= next)
          ++column;
        table.prefetch(key(rows.tree[column], rows.row[next]));
      }
      add_run<true, numbered>(table, rows.row, offset[i], end, end,
                              rows.tree[i], number);
      next = std::max(next, end);
    }
  }

  // Adds from[begin .. end), all of one tree. Branch-free.
  template <bool in_tree, bool numbered, typename table_t, typename number_t>
  void add_run(table_t& table,
               const index_t* from,
               int64_t begin,
               int64_t end,
               int64_t prefetch_end,
               uint32_t of_tree,
               number_t* number) {
    const uint64_t first_key = key(of_tree, 0);
    index_t* nodes = node.data();
    uint32_t* trees = tree.data();
    uint32_t next = static_cast<uint32_t>(size);
    for (int64_t i = begin; i < end; ++i) {
      if (i + kPrefetch < prefetch_end)
        table.prefetch(first_key + static_cast<uint64_t>(from[i + kPrefetch]));
      const index_t row = from[i];
      const uint32_t found =
          table.find_or_insert(first_key + static_cast<uint64_t>(row), next);
      if (numbered)
        number[i] = found;
      nodes[next] = row;
      if (in_tree)
        trees[next] = of_tree;
      next += found == next;
    }
    size = next;
  }

  int64_t num_nodes_;
  bool by_tree_;
  bool dense_;   // the table in use:
  bool narrow_;  // keys are below 2^32
  bool open_ = false;
  bool columns_are_old_ = false;
  Buffer<index_t> old_node_;
  Buffer<uint32_t> old_tree_;
  RowNumbering<index_t> numbering_;
  DenseTable dense_table_;
  HashTable<uint32_t> narrow_table_;
  HashTable<uint64_t> wide_table_;
};

}  // namespace gsample
