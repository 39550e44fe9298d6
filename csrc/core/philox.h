// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011), and the counter of each draw.
//
// A draw is a pure function of (seed, epoch, batch, call, relation, root, id,
// slot). It takes two steps:
//
//   1. The stream of one hop of one relation in one batch:
//        stream = Philox(key = seed)(epoch, call | relation << 16, batch) [:64]
//   2. The draws at one column (node `id`, in the tree of seed `root`):
//        block  = Philox(key = stream)(slot / 2, root, id)
//        draw   = the 64-bit half `slot % 2` of the block
//
//   word      0            1                     2          3
//   step 1    epoch        call | relation << 16 batch low  batch high
//   step 2    slot / 2     root                  id low     id high
//
// `call` is call_id + hop, so a hop of a multi-hop operator draws the numbers
// of a one-hop operator with that call id. `root` separates the trees of
// disjoint sampling and is 0 otherwise.
#pragma once

#include "hd.h"

namespace gsample {

struct Block {
  uint32_t word[4];

  GSAMPLE_HD uint64_t half(uint32_t i) const {
    return static_cast<uint64_t>(word[2 * i + 1]) << 32 | word[2 * i];
  }
};

constexpr uint32_t kPhiloxM0 = 0xD2511F53u;
constexpr uint32_t kPhiloxM1 = 0xCD9E8D57u;
constexpr uint32_t kPhiloxW0 = 0x9E3779B9u;
constexpr uint32_t kPhiloxW1 = 0xBB67AE85u;
constexpr int kPhiloxRounds = 10;

GSAMPLE_HD Block philox(uint64_t key, Block c) {
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint32_t hi0 = mulhi32(kPhiloxM0, c.word[0]);
    const uint32_t lo0 = kPhiloxM0 * c.word[0];
    const uint32_t hi1 = mulhi32(kPhiloxM1, c.word[2]);
    const uint32_t lo1 = kPhiloxM1 * c.word[2];
    c = Block{{hi1 ^ c.word[1] ^ k0, lo1, hi0 ^ c.word[3] ^ k1, lo0}};
    k0 += kPhiloxW0;
    k1 += kPhiloxW1;
  }
  return c;
}

// The key of a batch: one row (seed, epoch, batch) of an operator's `key`.
struct Key {
  int64_t seed;
  int64_t epoch;
  int64_t batch;
};

// `batch` of a key under rng_scope='epoch': all batches of an epoch, and all
// trees of disjoint sampling, then share their draws.
constexpr int64_t kEpochScope = -1;

// Relations from this number on are not edge types but other consumers of
// randomness, so that their draws never coincide with those of a hop.
constexpr uint32_t kSampleNodes = 0xFFF0;
constexpr uint32_t kRandomUniform = 0xFFF1;
constexpr uint32_t kForestFire = 0xFFF2;
constexpr uint32_t kWalk = 0xFFFD;
constexpr uint32_t kNegativeSource = 0xFFFE;
constexpr uint32_t kNegativeTarget = 0xFFFF;
constexpr uint32_t kMaxRelations = 0xFF00;
constexpr uint32_t kMaxCalls = 0x10000;

GSAMPLE_HD uint64_t stream_key(const Key& key,
                               uint32_t call,
                               uint32_t relation) {
  const uint64_t batch = static_cast<uint64_t>(key.batch);
  const Block counter{{static_cast<uint32_t>(key.epoch), call | relation << 16,
                       static_cast<uint32_t>(batch),
                       static_cast<uint32_t>(batch >> 32)}};
  return philox(static_cast<uint64_t>(key.seed), counter).half(0);
}

// A uniform integer in [0, n) from a 64-bit draw. Each integer's probability
// differs from 1 / n by at most 2^-64.
GSAMPLE_HD uint64_t bounded(uint64_t draw, uint64_t n) {
  return mulhi64(draw, n);
}

// A uniform number in [0, 1) from a 64-bit draw, with 53 bits.
GSAMPLE_HD double unit_interval(uint64_t draw) {
  return static_cast<double>(draw >> 11) * 0x1.0p-53;
}

// The draws of one column. Random access: draw(slot) needs no other slot.
struct Stream {
  uint64_t key;
  uint32_t root;
  uint64_t id;

  GSAMPLE_HD Block block(uint32_t i) const {
    return philox(key, Block{{i, root, static_cast<uint32_t>(id),
                              static_cast<uint32_t>(id >> 32)}});
  }
  GSAMPLE_HD uint64_t operator()(uint32_t slot) const {
    return block(slot >> 1).half(slot & 1);
  }
};

}  // namespace gsample
