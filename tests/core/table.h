// What core_test.cpp fills in and prints: rows of numbers under names.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/hd.h"

#if defined(__CUDACC__)
#define FUNCTION __host__ __device__ __noinline__
#else
#define FUNCTION __attribute__((noinline))
#endif

enum Name {
  kMulhi32,
  kMulhi64,
  kDoubleBits,
  kMix64,
  kPhilox,
  kStreamKey,
  kBounded,
  kUnitInterval,
  kStream,
  kWithReplacement,
  kWithoutReplacement,
  kCeilLog2,
  kFixedPoint,
  kFixedPointShift,
  kCumWeightSize,
  kZeroWeight,
  kFind,
  kRange,
  kWeightedWithReplacement,
  kWeightedWithoutReplacement,
  kWalkDraws,
  kRestarts,
  kRelativeWeight,
  kSecondOrder,
  kAccepts,
  kSelectByMass,
  kSumColumn,
  kLaborScale,
  kSearch,
  kNegative,
  kFire,
};

const char* const kNames[] = {
    "mulhi32",
    "mulhi64",
    "double_bits",
    "mix64",
    "philox",
    "stream_key",
    "bounded",
    "unit_interval",
    "stream",
    "select_with_replacement",
    "select_without_replacement",
    "ceil_log2",
    "fixed_point",
    "fixed_point_shift",
    "cum_weight_size",
    "has_zero_weight",
    "find",
    "range",
    "select_weighted_with_replacement",
    "select_weighted_without_replacement",
    "walk_draws",
    "restarts",
    "relative_weight",
    "second_order",
    "accepts",
    "select_by_mass",
    "sum_column",
    "labor_scale",
    "search",
    "negative",
    "fire",
};

// Rows of numbers, one after the other: size, name, inputs, kEquals, outputs.
struct Table {
  static constexpr uint64_t kEquals = 0x3D3D3D3D3D3D3D3Dull;
  static constexpr size_t kCapacity = 1 << 18;
  size_t size;
  size_t row;
  uint64_t number[kCapacity];

  GSAMPLE_HD void begin(Name name) {
    row = size;
    number[size] = 0;
    number[size + 1] = name;
    size += 2;
  }
  GSAMPLE_HD void put(uint64_t value) {
    number[size++] = value;
    number[row] = size - row;
  }
  GSAMPLE_HD void equals() { put(kEquals); }
};

// The inputs: a generator that has nothing to do with the core.
struct Inputs {
  uint64_t state;
  GSAMPLE_HD uint64_t next() {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    uint64_t x = (state ^ (state >> 29)) * 0xFF51AFD7ED558CCDull;
    return x ^ (x >> 32);
  }
  // Of any magnitude: numbers with few bits are as likely as long ones.
  GSAMPLE_HD uint64_t bits(int most) {
    return next() >> (64 - 1 - next() % most);
  }
};
