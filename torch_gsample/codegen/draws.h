
struct Words {
  uint32_t word[4];
};

// The Philox4x32-10 block of a key and a counter (index, call, row low, row
// high): csrc/core/philox.h has the same function.
GSAMPLE_INLINE Words words_of(uint32_t call,
                              int64_t key,
                              int64_t row,
                              uint32_t index) {
  using W = unsigned long long;
  uint32_t k0 = uint32_t(W(key)), k1 = uint32_t(W(key) >> 32);
  uint32_t c0 = index, c1 = call;
  uint32_t c2 = uint32_t(W(row)), c3 = uint32_t(W(row) >> 32);
  for (int round = 0; round < 10; ++round) {
    const W a = W(0xD2511F53u) * c0, b = W(0xCD9E8D57u) * c2;
    c0 = uint32_t(b >> 32) ^ c1 ^ k0;
    c1 = uint32_t(b);
    c2 = uint32_t(a >> 32) ^ c3 ^ k1;
    c3 = uint32_t(a);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return Words{{c0, c1, c2, c3}};
}

// Draw number `position` of a row: word `position % 4` of block `position / 4`.
GSAMPLE_INLINE uint32_t draw_of(uint32_t call,
                                int64_t key,
                                int64_t row,
                                uint32_t position) {
  const Words words = words_of(call, key, row, position / 4);
  const uint32_t low = position & 1 ? words.word[1] : words.word[0];
  const uint32_t high = position & 1 ? words.word[3] : words.word[2];
  return position & 2 ? high : low;
}

// The first draws of a row, four for each block.
template <int blocks>
GSAMPLE_INLINE void draw_row(uint32_t call,
                             int64_t key,
                             int64_t row,
                             uint32_t* to) {
  for (int i = 0; i < blocks; ++i) {
    const Words words = words_of(call, key, row, i);
    for (int j = 0; j < 4; ++j)
      to[4 * i + j] = words.word[j];
  }
}
