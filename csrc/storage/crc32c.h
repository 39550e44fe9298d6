// CRC-32C (Castagnoli) of the blocks of a file. A block's checksum includes the
// generation of its file and its number, so that a block from another file or
// position does not match.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace gsample {

constexpr int64_t kBlockBytes = 4096;

// Continues the checksum `crc` of earlier bytes; 0 at the start.
uint32_t crc32c(uint32_t crc, const void* data, size_t size);

uint32_t block_checksum(uint64_t generation,
                        int64_t block,
                        const char* data,
                        int64_t size = kBlockBytes);

}  // namespace gsample
