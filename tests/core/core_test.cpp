// A program over csrc/core alone. It checks Random123's known answers, then
// prints a table of inputs and outputs of every function of the core, which
// test_core.py compares with tests/reference_core.py. A line is
//
//   name input ... = output ...
//
// Every build must print the same bytes: g++ and nvcc, at every level of
// optimisation. `nvcc -x cu` compiles it for the device as well; run with
// --device where there is a GPU to print the table as a kernel computes it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/philox.h"
#include "core/select.h"
#include "core/walk.h"
#include "core/weighted.h"
#include "negatives.h"
#include "sums.h"
#include "table.h"

using namespace gsample;

namespace {

constexpr int kMaxPositions = 64;
constexpr int kMaxColumn = 300;

FUNCTION void put_numbers(Table& table, Inputs& in) {
  for (int i = 0; i < 20; ++i) {
    const uint64_t a = in.bits(64), b = in.bits(64);
    table.begin(kMulhi32), table.put(a & UINT32_MAX), table.put(b & UINT32_MAX);
    table.equals();
    table.put(mulhi32(static_cast<uint32_t>(a), static_cast<uint32_t>(b)));
    table.begin(kMulhi64), table.put(a), table.put(b), table.equals();
    table.put(mulhi64(a, b));
    table.begin(kDoubleBits), table.put(a), table.equals();
    table.put(double_bits(static_cast<double>(a)));
    table.begin(kMix64), table.put(a), table.equals(), table.put(mix64(a));
    const uint64_t n = in.bits(63) + 1, draw = in.next();
    table.begin(kBounded), table.put(draw), table.put(n), table.equals();
    table.put(bounded(draw, n));
    const uint64_t from = i < 2 ? i - uint64_t{1} : in.bits(64);
    table.begin(kUnitInterval), table.put(from), table.equals();
    table.put(double_bits(unit_interval(from)));
  }
  for (int bits = 0; bits < 63; bits += 9) {
    for (int add = -1; add <= 1; ++add) {
      const uint64_t n = (uint64_t{1} << bits) + add;
      table.begin(kCeilLog2), table.put(n), table.equals();
      table.put(ceil_log2(n));
    }
  }
}

FUNCTION void put_random(Table& table, Inputs& in) {
  for (int i = 0; i < 20; ++i) {
    const uint64_t key = in.next();
    Block counter;
    for (int j = 0; j < 4; ++j)
      counter.word[j] = static_cast<uint32_t>(in.bits(32));
    table.begin(kPhilox), table.put(key);
    for (int j = 0; j < 4; ++j)
      table.put(counter.word[j]);
    table.equals();
    const Block block = philox(key, counter);
    for (int j = 0; j < 4; ++j)
      table.put(block.word[j]);

    const Key batch{
        static_cast<int64_t>(in.next()), static_cast<int64_t>(in.bits(32)),
        i % 4 == 0 ? kEpochScope : static_cast<int64_t>(in.bits(63))};
    const uint32_t call = static_cast<uint32_t>(in.bits(16));
    const uint32_t relation = static_cast<uint32_t>(in.bits(16));
    table.begin(kStreamKey), table.put(batch.seed), table.put(batch.epoch);
    table.put(batch.batch), table.put(call), table.put(relation);
    table.equals(), table.put(stream_key(batch, call, relation));

    const uint32_t root = static_cast<uint32_t>(in.bits(32));
    const uint32_t slot = static_cast<uint32_t>(in.bits(32));
    const Stream stream{key, root, in.bits(64)};
    table.begin(kStream), table.put(key), table.put(root);
    table.put(stream.id), table.put(slot), table.equals();
    table.put(stream(slot));
  }
}

// key, root, id, n, k = positions
template <typename pos_t>
FUNCTION void put_selection(Table& table, Inputs& in, uint64_t n, uint32_t k) {
  const Stream draw{in.next(), static_cast<uint32_t>(in.bits(32)), in.next()};
  for (int replace = 0; replace < 2; ++replace) {
    pos_t out[kMaxPositions];
    table.begin(replace ? kWithReplacement : kWithoutReplacement);
    table.put(draw.key), table.put(draw.root), table.put(draw.id);
    table.put(n), table.put(k), table.equals();
    if (replace)
      select_with_replacement(draw, n, k, out);
    else
      select_without_replacement(draw, n, k, out);
    for (uint32_t i = 0; i < k; ++i)
      table.put(out[i]);
  }
}

FUNCTION void put_selections(Table& table, Inputs& in) {
  const uint64_t sizes[] = {1, 2, 3, 10, 64, 1000, uint64_t{1} << 31};
  for (const uint64_t n : sizes) {
    for (uint32_t k = 0; k <= 64 && k <= n; k = 2 * k + 1) {
      if (n <= INT32_MAX)
        put_selection<int32_t>(table, in, n, k);
      put_selection<int64_t>(table, in, n, k);
    }
  }
  put_selection<int64_t>(table, in, uint64_t{1} << 62, 20);
}

FUNCTION void put_fixed_point(Table& table, Inputs& in) {
  const double tiny = double_from_bits(1);                      // 2^-1074
  const double huge = double_from_bits(0x7FEFFFFFFFFFFFFFull);  // below 2^1024
  for (int i = 0; i < 40; ++i) {
    double max_weight = double_from_bits(in.next() % 0x7FF0000000000000ull);
    max_weight = i == 0 ? 0 : i == 1 ? tiny : i == 2 ? huge : max_weight;
    max_weight = i == 3 ? 1 : i == 4 ? 0.1f : max_weight;
    const uint64_t n = in.bits(40) + 1;
    const int shift = fixed_point_shift(max_weight, n);
    table.begin(kFixedPointShift), table.put(double_bits(max_weight));
    table.put(n), table.equals(), table.put(static_cast<int64_t>(shift));
    // Divided by powers of two, which is exact unless it gets very small.
    for (uint64_t by = 1; by != 0; by <<= 21) {
      const double weight = max_weight / static_cast<double>(by);
      table.begin(kFixedPoint), table.put(double_bits(weight));
      table.put(static_cast<int64_t>(shift)), table.equals();
      table.put(fixed_point(weight, shift));
    }
  }
}

FUNCTION void put_zero_weights(Table& table, Inputs& in) {
  for (int i = 0; i < 40; ++i) {
    const int64_t num_edges = in.bits(40), num_cols = i < 5 ? i : in.bits(40);
    table.begin(kCumWeightSize), table.put(num_edges), table.put(num_cols);
    table.equals(), table.put(cum_weight_size(num_edges, num_cols));
    const int64_t zeros[] = {static_cast<int64_t>(in.next()),
                             static_cast<int64_t>(in.next())};
    const int64_t column = i == 0 ? 63 : i == 1 ? 64 : in.bits(7) % 128;
    table.begin(kZeroWeight), table.put(zeros[0]), table.put(zeros[1]);
    table.put(column), table.equals();
    table.put(has_zero_weight(zeros, column));
  }
}

// Weights of any magnitude, a quarter of them 0, with a sum below 2^63.
struct Column {
  uint64_t n;
  uint64_t weight[kMaxColumn];
  int64_t cum[kMaxColumn];
  CumulativeWeights view;

  FUNCTION void fill(Inputs& in, uint64_t size) {
    n = size;
    const uint64_t before = in.bits(40);
    const int most = 1 + static_cast<int>(in.next() % 53);
    uint64_t sum = before;
    for (uint64_t i = 0; i < n; ++i) {
      weight[i] = in.next() % 4 == 0 ? 0 : in.bits(most);
      sum += weight[i];
      cum[i] = static_cast<int64_t>(sum);
    }
    view = CumulativeWeights{cum, before, n};
  }
  FUNCTION void put(Table& table) const {
    for (uint64_t i = 0; i < n; ++i)
      table.put(weight[i]);
  }
};

// r, weights = position, from a good first guess and from bad ones
FUNCTION void put_find(Table& table, const Column& column, uint64_t r) {
  const uint64_t guesses[] = {EvenGuess(column.view)(0, r), 0, column.n / 2,
                              column.n - 1, UINT64_MAX};
  table.begin(kFind), table.put(r), column.put(table), table.equals();
  for (const uint64_t guess : guesses)
    table.put(column.view.find(r, guess));
}

// weights = total, start and end of each
FUNCTION void put_range(Table& table, const Column& column) {
  table.begin(kRange), column.put(table), table.equals();
  table.put(column.view.total());
  for (uint64_t i = 0; i < column.n; ++i)
    table.put(column.view.start(i)), table.put(column.view.through(i));
}

// key, root, id, k, weights = positions
FUNCTION void put_weighted(Table& table, Inputs& in, const Column& column) {
  const Stream draw{in.next(), 0, in.next()};
  const EvenGuess guess(column.view);
  for (int replace = 0; replace < 2; ++replace) {
    for (uint32_t k = 0; k <= 20; k = 2 * k + 1) {
      int32_t out[kMaxPositions];
      TakenWeight taken[kMaxPositions];
      table.begin(replace ? kWeightedWithReplacement
                          : kWeightedWithoutReplacement);
      table.put(draw.key), table.put(draw.root), table.put(draw.id);
      table.put(k), column.put(table), table.equals();
      const uint32_t found = replace
                                 ? select_weighted_with_replacement(
                                       draw, guess, column.view, k, out)
                                 : select_weighted_without_replacement(
                                       draw, guess, column.view, k, out, taken);
      for (uint32_t i = 0; i < found; ++i)
        table.put(out[i]);
    }
  }
}

FUNCTION void put_weights(Table& table, Inputs& in) {
  const uint64_t sizes[] = {0, 1,  2,  3,  4,  5,  6,          7,         8,
                            9, 15, 16, 17, 33, 64, kMaxColumn, kMaxColumn};
  Column column;
  for (const uint64_t n : sizes) {
    for (int i = 0; i < 4; ++i) {
      column.fill(in, n);
      put_range(table, column);
      put_weighted(table, in, column);
      const uint64_t sum = column.view.total();
      for (uint64_t j = in.next() % (1 + n / 10); j < n; j += 1 + n / 10) {
        if (column.weight[j] == 0)
          continue;
        put_find(table, column, column.view.start(j));
        put_find(table, column, column.view.through(j) - 1);
        put_find(table, column, bounded(in.next(), sum));
      }
    }
  }
}

// A number in (0, 1] of any magnitude, and its bits in the table.
FUNCTION double put_probability(Table& table, Inputs& in, int i) {
  const double x = 1.0 / static_cast<double>(i == 0 ? 1 : in.bits(63) + 1);
  table.put(double_bits(x));
  return x;
}

FUNCTION void put_walks(Table& table, Inputs& in) {
  for (int i = 0; i < 40; ++i) {
    const WalkDraws draws{in.next(), in.bits(63)};
    const uint32_t step = static_cast<uint32_t>(in.bits(31));
    const uint32_t attempt = static_cast<uint32_t>(in.bits(6));
    table.begin(kWalkDraws), table.put(draws.key), table.put(draws.walker);
    table.put(step), table.put(attempt), table.equals();
    table.put(draws.position(step)), table.put(draws.restart(step));
    table.put(draws.candidate(step, attempt));
    table.put(draws.coin(step, attempt));

    const uint64_t draw = in.next() >> in.next() % 64;
    table.begin(kRestarts), table.put(draw);
    const uint64_t threshold = restart_threshold(put_probability(table, in, i));
    table.equals(), table.put(threshold), table.put(restarts(draw, threshold));

    table.begin(kRelativeWeight);
    const uint64_t weight = relative_weight(put_probability(table, in, i));
    table.equals(), table.put(weight);
    table.begin(kAccepts), table.put(draw), table.put(weight), table.equals();
    table.put(accepts(draw, weight));

    table.begin(kSecondOrder);
    const double p = put_probability(table, in, i);
    const double q = put_probability(table, in, i);
    const SecondOrder law = second_order(i % 2 ? 1 / p : p, i % 3 ? 1 / q : q);
    table.put(i % 2), table.put(i % 3), table.equals();
    table.put(law.back), table.put(law.near), table.put(law.far);
    table.put(law.least_forward()), table.put(law.most_forward());
  }
}

// Weights below 2^56 times a relative weight.
struct Masses {
  uint64_t weight[kMaxPositions];
  uint64_t relative[kMaxPositions];
  GSAMPLE_HD Mass operator()(uint64_t i) const {
    return Mass{weight[i]} * relative[i];
  }
};

// draw, (weight, relative weight) of each = position
FUNCTION void put_masses(Table& table, Inputs& in) {
  for (int i = 0; i < 100; ++i) {
    const uint64_t n = 1 + in.next() % kMaxPositions;
    const uint64_t draw = i == 0 ? 0 : i == 1 ? UINT64_MAX : in.next();
    Masses masses;
    table.begin(kSelectByMass), table.put(draw);
    for (uint64_t j = 0; j < n; ++j) {
      masses.weight[j] = j > 0 && in.next() % 4 == 0 ? 0 : in.bits(56) + 1;
      masses.relative[j] = in.next() % 3 ? uint64_t{1} << 32 : in.bits(32) + 1;
      table.put(masses.weight[j]), table.put(masses.relative[j]);
    }
    table.equals(), table.put(select_by_mass(draw, n, masses));
  }
}

FUNCTION void fill(Table& table) {
  table.size = table.row = 0;
  Inputs in{12345};
  put_numbers(table, in);
  put_random(table, in);
  put_selections(table, in);
  put_fixed_point(table, in);
  put_zero_weights(table, in);
  put_weights(table, in);
  put_walks(table, in);
  put_masses(table, in);
  put_sums(table, in);
  put_searches(table, in);
  put_negatives(table, in);
  put_fires(table, in);
}

void print(const Table& table) {
  for (size_t row = 0; row < table.size; row += table.number[row]) {
    printf("%s", kNames[table.number[row + 1]]);
    for (size_t i = row + 2; i < row + table.number[row]; ++i) {
      if (table.number[i] == Table::kEquals)
        printf(" =");
      else
        printf(" %llu", static_cast<unsigned long long>(table.number[i]));
    }
    printf("\n");
  }
}

// Random123's tests/kat_vectors, philox4x32 with 10 rounds.
bool knows_answers() {
  struct Known {
    uint32_t counter[4], key[2], answer[4];
  };
  const uint32_t ones = 0xFFFFFFFF;
  const Known known[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}},
      {{ones, ones, ones, ones},
       {ones, ones},
       {0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}},
      {{0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344},
       {0xA4093822, 0x299F31D0},
       {0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}},
  };
  for (const Known& k : known) {
    const Block counter{
        {k.counter[0], k.counter[1], k.counter[2], k.counter[3]}};
    const Block out =
        philox(static_cast<uint64_t>(k.key[1]) << 32 | k.key[0], counter);
    if (memcmp(out.word, k.answer, sizeof(k.answer)) != 0)
      return false;
  }
  return true;
}

#if defined(__CUDACC__)
__global__ void fill_kernel(Table* table) {
  fill(*table);
}

bool fill_on_device(Table* table) {
  Table* device = nullptr;
  return cudaMalloc(&device, sizeof(Table)) == cudaSuccess &&
         (fill_kernel<<<1, 1>>>(device), cudaGetLastError()) == cudaSuccess &&
         cudaMemcpy(table, device, sizeof(Table), cudaMemcpyDefault) ==
             cudaSuccess;
}
#else
bool fill_on_device(Table*) {
  return false;
}
#endif

}  // namespace

int main(int argc, char** argv) {
  if (!knows_answers()) {
    fprintf(stderr, "philox4x32-10: wrong answers\n");
    return 1;
  }
  Table* table = static_cast<Table*>(calloc(1, sizeof(Table)));
  const bool device = argc > 1 && strcmp(argv[1], "--device") == 0;
  if (device && !fill_on_device(table)) {
    fprintf(stderr, "the device failed, or there is none\n");
    return 1;
  }
  if (!device)
    fill(*table);
  print(*table);
  free(table);
  return 0;
}
