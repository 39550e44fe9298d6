"""CRC-32C of bytes, and of blocks of files.

Bytes come in, checksums or the first damaged block go out. The checksum of a
block also covers the generation and the block's index.
"""

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np

from torch_gsample import _library

BLOCK = 4096


@lru_cache(maxsize=1)
def functions() -> Any:
    """Returns the C functions of csrc/storage."""
    out = ctypes.CDLL(str(_library.PATH))
    out.gsample_crc32c.restype = ctypes.c_uint32
    for name in (
        'find_damage',
        'find_items',
        'find_ranges',
        'find_bounds',
        'draw_columns',
        'end_bounds',
        'find_keyed',
        'find_indexed',
        'find_keys',
        'mark_rows',
        'copy_edges',
        'slice_pointers',
        'column_bounds',
        'num_nodes',
        'take_columns',
        'sample_cached',
        'write_cached',
    ):
        getattr(out, f'gsample_{name}').restype = ctypes.c_int64
    out.gsample_read_rows.restype = ctypes.c_int
    out.gsample_take_memory.restype = ctypes.c_void_p
    out.gsample_give_memory.restype = None
    out.gsample_begin_nodes.restype = ctypes.c_void_p
    out.gsample_new_guard.restype = ctypes.c_void_p
    out.gsample_free_guard.restype = None
    out.gsample_copy_nodes.restype = out.gsample_end_nodes.restype = None
    out.gsample_index_keys.restype = None
    out.gsample_number_rows.restype = None
    out.gsample_copy_runs.restype = out.gsample_copy_rows.restype = None
    out.gsample_concat_ranges.restype = None
    out.gsample_insert_blocks.restype = None
    return out


def pointer(array: np.ndarray | None) -> ctypes.c_void_p:
    """Returns the address of an array, or null."""
    return ctypes.c_void_p(None if array is None else array.ctypes.data)


def crc32c(data: Any, crc: int = 0, tables: bool = False) -> int:
    """Returns the CRC-32C of bytes, continued from ``crc``.

    Args:
        data (bytes or numpy.ndarray): The bytes.
        crc (int, optional): The checksum of the preceding bytes.
        tables (bool, optional): Whether to use tables instead of the
            processor's instruction.

    Example:
        >>> hex(crc32c(b'123456789'))
        '0xe3069283'
    """
    array = np.frombuffer(data, np.uint8)
    return int(
        functions().gsample_crc32c(
            ctypes.c_uint32(crc),
            pointer(array),
            ctypes.c_int64(array.size),
            ctypes.c_int(tables),
        )
    )


def block_checksums(
    data: np.ndarray, first: int, generation: int, block_bytes: int = BLOCK
) -> np.ndarray:
    """Returns the checksum of each block, uint32 ``[num_blocks]``.

    Args:
        data (numpy.ndarray): uint8 ``[num_blocks * block_bytes]``, contiguous.
        first (int): The index of the first block in its file.
        generation (int): The generation of the file.
        block_bytes (int, optional): Bytes of a block.
    """
    assert data.size % block_bytes == 0
    assert data.flags.c_contiguous
    out = np.empty(data.size // block_bytes, np.uint32)
    functions().gsample_block_checksums(
        pointer(data),
        ctypes.c_int64(first),
        ctypes.c_int64(len(out)),
        ctypes.c_uint64(generation),
        ctypes.c_int64(block_bytes),
        pointer(out),
    )
    return out


def find_damage(
    data: np.ndarray,
    first: np.ndarray,
    count: np.ndarray,
    checksums: np.ndarray,
    checked: np.ndarray | None,
    base: int,
    generation: int,
    block_bytes: int,
) -> int:
    """Returns the first damaged block, or -1.

    Args:
        data (numpy.ndarray): uint8, the blocks of all ranges, concatenated.
        first (numpy.ndarray): int64 ``[n]``, the first block of each range.
        count (numpy.ndarray): int64 ``[n]``, the number of its blocks.
        checksums (numpy.ndarray): uint32 ``[num_blocks]`` of all blocks.
        checked (numpy.ndarray, optional): bool ``[num_blocks]``, the blocks
            that need no check; blocks that pass are added.
        base (int): Added to block indices.
        generation (int): The generation of the file.
        block_bytes (int): Bytes of a block.
    """
    first = np.ascontiguousarray(first, np.int64)
    count = np.ascontiguousarray(count, np.int64)
    assert len(first) == len(count)
    assert data.size == int(count.sum()) * block_bytes
    assert data.flags.c_contiguous
    if len(first) > 0:
        assert first.min() >= 0
        assert (first + count).max() <= len(checksums)
    return int(
        functions().gsample_find_damage(
            pointer(data),
            pointer(first),
            pointer(count),
            ctypes.c_int64(len(first)),
            pointer(checksums),
            pointer(checked),
            ctypes.c_int64(base),
            ctypes.c_uint64(generation),
            ctypes.c_int64(block_bytes),
        )
    )
