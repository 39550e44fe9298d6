// Numbers rows by first occurrence with several threads, as add_run() of
// node_set.h does with one. The result is independent of the number of threads:
//
//   propose  the entry of each unknown row becomes its least position, by an
//            atomic minimum;
//   count    rows at the position in their entry are first occurrences;
//   number   first occurrences get the next numbers, block by block in order;
//   resolve  the others take the number of their first occurrence.
//
// Let W be the time of a hop on one thread, R of it for relabelling. T threads
// take max(R, W / T) if one relabels at a time, and (W + R) / T if all do. W is
// 3 R to 4 R, so this pays from five threads on.
#pragma once

#include <stdint.h>

#include <algorithm>
#include <vector>

#include "buffer.h"
#include "parallel.h"
#include "tables.h"

namespace gsample {

template <typename index_t>
class RowNumbering {
 public:
  static constexpr int kLeastThreads = 6;
  static constexpr int64_t kLeastRows = 65536;  // below, parallel regions cost
                                                // more

  // Until they are numbers, positions are offset by the ids of a call.
  static bool fits(int64_t size, int64_t num_rows) {
    return num_rows <= int64_t{TableBase::kMaxIds} - size;
  }

  // Writes the numbers of row[0 .. num_rows) and appends new nodes to node[0 ..
  // size). Returns the new size. It cannot be interrupted: the table would keep
  // positions.
  int64_t run(DenseTable& table,
              const index_t* row,
              int64_t num_rows,
              int64_t size,
              uint32_t* number,
              index_t* node,
              int threads) {
    const uint32_t known = static_cast<uint32_t>(size);
    number_of_.reserve(num_rows);
    uint32_t* number_of = number_of_.data();
    const int64_t blocks = (num_rows + kBlock - 1) / kBlock;
    count_.assign(blocks + 1, 0);
    const auto each_block = [&](const auto& function) {
      parallel_items(blocks, threads, [&](int64_t block) {
        const int64_t begin = block * kBlock;
        function(block, begin, std::min(num_rows, begin + kBlock));
      });
    };
    each_block([&](int64_t, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        table.prefetch(row[std::min(i + kPrefetch, end - 1)]);
        table.propose(row[i], known + static_cast<uint32_t>(i));
      }
    });
    each_block([&](int64_t block, int64_t begin, int64_t end) {
      int64_t first = 0;
      for (int64_t i = begin; i < end; ++i) {
        table.prefetch(row[std::min(i + kPrefetch, end - 1)]);
        number[i] = table.get(row[i]);
        first += number[i] == known + static_cast<uint32_t>(i);
      }
      count_[block + 1] = first;
    });
    for (int64_t block = 0; block < blocks; ++block)
      count_[block + 1] += count_[block];
    each_block([&](int64_t block, int64_t begin, int64_t end) {
      uint32_t next = known + static_cast<uint32_t>(count_[block]);
      for (int64_t i = begin; i < end; ++i) {
        if (number[i] != known + static_cast<uint32_t>(i))
          continue;
        node[next] = row[i];
        table.set(row[i], next);
        number_of[i] = next++;
      }
    });
    each_block([&](int64_t, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        if (number[i] >= known)
          number[i] = number_of[number[i] - known];
    });
    return size + count_[blocks];
  }

 private:
  static constexpr int64_t kBlock = 8192;   // work item of a thread
  static constexpr int64_t kPrefetch = 64;  // table accesses in flight

  std::vector<int64_t> count_;  // first occurrences before each block
  Buffer<uint32_t> number_of_;  // at first occurrences
};

}  // namespace gsample
