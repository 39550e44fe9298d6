#include "crc32c.h"

#include <string.h>

#include <array>

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace gsample {

namespace {

constexpr uint32_t kPolynomial = 0x82F63B78u;  // reflected

std::array<std::array<uint32_t, 256>, 8> make_tables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit)
      crc = crc >> 1 ^ (crc & 1 ? kPolynomial : 0);
    tables[0][i] = crc;
  }
  for (size_t t = 1; t < 8; ++t)
    for (uint32_t i = 0; i < 256; ++i) {
      const uint32_t before = tables[t - 1][i];
      tables[t][i] = before >> 8 ^ tables[0][before & 0xff];
    }
  return tables;
}

// Eight bytes per step by eight tables, for CPUs without the instruction.
uint32_t by_tables(uint32_t crc, const unsigned char* data, size_t size) {
  static const auto tables = make_tables();
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t word;
    memcpy(&word, data, 8);
    word ^= crc;
    crc = 0;
    for (size_t t = 0; t < 8; ++t)
      crc ^= tables[7 - t][word >> 8 * t & 0xff];
  }
  for (; size > 0; ++data, --size)
    crc = crc >> 8 ^ tables[0][(crc ^ *data) & 0xff];
  return crc;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) uint32_t
by_instruction(uint32_t crc, const unsigned char* data, size_t size) {
  uint64_t wide = crc;
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t word;
    memcpy(&word, data, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  crc = static_cast<uint32_t>(wide);
  for (; size > 0; ++data, --size)
    crc = __builtin_ia32_crc32qi(crc, *data);
  return crc;
}

bool has_instruction() {
  return __builtin_cpu_supports("sse4.2");
}

#elif defined(__aarch64__) && defined(__linux__)

__attribute__((target("+crc"))) uint32_t
by_instruction(uint32_t crc, const unsigned char* data, size_t size) {
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t word;
    memcpy(&word, data, 8);
    crc = __builtin_aarch64_crc32cx(crc, word);
  }
  for (; size > 0; ++data, --size)
    crc = __builtin_aarch64_crc32cb(crc, *data);
  return crc;
}

bool has_instruction() {
  constexpr unsigned long kHwcapCrc32 = 1ul << 7;
  return (getauxval(AT_HWCAP) & kHwcapCrc32) != 0;
}

#else

uint32_t by_instruction(uint32_t crc, const unsigned char* data, size_t size) {
  return by_tables(crc, data, size);
}

bool has_instruction() {
  return false;
}

#endif

}  // namespace

uint32_t crc32c(uint32_t crc, const void* data, size_t size) {
  static const bool fast = has_instruction();
  const auto* bytes = static_cast<const unsigned char*>(data);
  return ~(fast ? by_instruction(~crc, bytes, size)
                : by_tables(~crc, bytes, size));
}

uint32_t block_checksum(uint64_t generation,
                        int64_t block,
                        const char* data,
                        int64_t size) {
  const uint64_t place[2] = {generation, static_cast<uint64_t>(block)};
  return crc32c(crc32c(0, place, sizeof(place)), data, size);
}

}  // namespace gsample

// Called from Python, see torch_gsample/storage/row_reads.py.
extern "C" __attribute__((visibility("default"))) uint32_t
gsample_crc32c(uint32_t crc, const void* data, int64_t size, int tables) {
  using namespace gsample;
  if (tables != 0)  // for tests: on any CPU
    return ~by_tables(~crc, static_cast<const unsigned char*>(data), size);
  return crc32c(crc, data, size);
}

extern "C" __attribute__((visibility("default"))) void gsample_block_checksums(
    const char* data,
    int64_t first,  // the number of the first block
    int64_t n,
    uint64_t generation,
    int64_t block_bytes,
    uint32_t* out) {
  for (int64_t i = 0; i < n; ++i)
    out[i] = gsample::block_checksum(generation, first + i,
                                     data + i * block_bytes, block_bytes);
}

// Checks blocks read as ranges, which are consecutive in `data`. Returns the
// first damaged block, or -1.
extern "C" __attribute__((visibility("default"))) int64_t
gsample_find_damage(const char* data,
                    const int64_t* first,  // [n] the first block of each range
                    const int64_t* count,  // [n] its number of blocks
                    int64_t n,
                    const uint32_t* checksums,  // of all blocks
                    uint8_t* checked,  // of all blocks, or null: check each
                    int64_t base,      // the offset of block numbers
                    uint64_t generation,
                    int64_t block_bytes) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t block = first[i]; block < first[i] + count[i];
         ++block, data += block_bytes) {
      if (checked != nullptr && checked[block] != 0)
        continue;
      if (gsample::block_checksum(generation, base + block, data,
                                  block_bytes) != checksums[block])
        return block;
      if (checked != nullptr)
        checked[block] = 1;
    }
  return -1;
}
