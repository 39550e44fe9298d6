"""Which blocks a cache of a file keeps."""

import numpy as np

from torch_gsample.storage.block_cache import BlockCache
from torch_gsample.storage.crc32c import BLOCK


def blocks(numbers):
    """Blocks whose bytes are their numbers."""
    return np.repeat(np.array(numbers, np.uint8), BLOCK)


def read(cache, *numbers):
    """Reads blocks through a cache; returns those that were missing."""
    block = np.array(numbers)
    out = np.empty(len(block), f'V{BLOCK}')
    missing = block[cache.find(block * BLOCK, out)]
    cache.insert(missing, blocks(missing))
    hit = ~np.isin(block, missing)
    got = out.view(np.uint8).reshape(-1, BLOCK)[hit]
    assert np.array_equal(got.reshape(-1), blocks(block[hit]))
    return missing.tolist()


def test_a_full_cache_keeps_its_blocks_while_others_are_read_once():
    cache = BlockCache(num_blocks=100, capacity=4)
    assert read(cache, 0, 1, 2, 3) == [0, 1, 2, 3]
    for first in range(10, 30, 5):
        read(cache, *range(first, first + 5))
    assert read(cache, 0, 1, 2, 3) == []


def test_a_full_cache_takes_a_block_that_is_read_again():
    cache = BlockCache(num_blocks=100, capacity=4)
    read(cache, 0, 1, 2, 3)
    assert read(cache, 9) == [9]
    assert read(cache, 9) == [9]
    assert read(cache, 9) == []


def test_a_block_that_was_read_long_ago_is_as_new():
    cache = BlockCache(num_blocks=100, capacity=4)
    read(cache, 0, 1, 2, 3)
    read(cache, 9)
    read(cache, *range(20, 60))
    assert read(cache, 9) == [9]
    assert read(cache, 9) == [9]
    assert read(cache, 9) == []


def test_no_cache_and_more_blocks_than_it_has():
    assert read(BlockCache(num_blocks=9, capacity=0), 1, 1) == [1, 1]
    cache = BlockCache(num_blocks=9, capacity=2)
    assert read(cache, 1, 2, 3) == [1, 2, 3]
    assert read(cache, 1, 2, 3) == [1]
