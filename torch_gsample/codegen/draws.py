"""Random numbers in kernels: one for each row, position and call of a key.

A draw is a pure function of these. Every kernel that reads it, forward or
backward and on any device, computes it again, so nothing is stored.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from torch_gsample.codegen.expression import Expression, constant

#: The row of an edge in edge features, and the index of a destination.
EDGE_ROW, VERTEX_ROW = 'edge_row', 'vertex_row'
#: The index of a feature in its row; the value is the axes, the last fastest.
POSITION = 'position'
#: Whether a draw is less than a threshold; the value is the call.
KEPT = 'kept'

#: The functions that kernels call.
DRAWS = Path(__file__).with_name('draws.h').read_text()
_ROUNDS = 10
_MASK = 0xFFFFFFFF


def kept(
    key: Expression,
    row: str,
    axes: tuple[int, ...],
    call: int,
    share: float,
) -> Expression:
    """Returns whether each feature of a row is kept.

    Args:
        key (Expression): The key of all draws of a call.
        row (str): :data:`EDGE_ROW` or :data:`VERTEX_ROW`.
        axes (Tuple[int, ...]): The axes of features, the last one fastest.
        call (int): The call id of the draws.
        share (float): The probability, in (0, 1).
    """
    long = torch.int64
    position = Expression(POSITION, long, (), axes)
    least = constant(min(round(share * 2**32), _MASK), long)
    args = key, Expression(row, long), position, least
    return Expression(KEPT, torch.bool, args, call)


def positions(
    axes: Sequence[int], sizes: Sequence[int], device: torch.device | None
) -> Tensor:
    """Computes :data:`POSITION`, ``[1, *sizes]``; size 1 along other axes.

    Args:
        axes (Sequence[int]): The axes of features, the last one fastest.
        sizes (Sequence[int]): The size of each axis.
        device (torch.device, optional): The device of the result.
    """
    out = torch.zeros([1] * (1 + len(sizes)), dtype=torch.int64, device=device)
    for axis in axes:
        shape = [1] * (1 + len(sizes))
        shape[1 + axis] = sizes[axis]
        index = torch.arange(sizes[axis], device=device)
        out = out * sizes[axis] + index.view(shape)
    return out


def _product(a: int, b: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the halves of a product of words, without a 64-bit carry."""
    low, high = a * (b & 0xFFFF), a * (b >> 16)
    total = (low >> 16) + high
    return total >> 16, ((total & 0xFFFF) << 16) | (low & 0xFFFF)


def is_kept(
    call: int, key: Tensor, row: Tensor, position: Tensor, least: Tensor
) -> Tensor:
    """Computes :data:`KEPT` with torch operators.

    Args:
        call (int): The call id of the draws.
        key (torch.Tensor): int64, the key.
        row (torch.Tensor): int64, rows.
        position (torch.Tensor): int64, positions in a row.
        least (torch.Tensor): int64, the smallest rejected draw.
    """
    k0, k1 = key & _MASK, (key >> 32) & _MASK
    c0, c1 = position >> 2, torch.full_like(position, call)
    c2, c3 = row & _MASK, (row >> 32) & _MASK
    for _ in range(_ROUNDS):
        high, low = _product(0xCD9E8D57, c2)
        other, rest = _product(0xD2511F53, c0)
        c0, c1, c2, c3 = high ^ c1 ^ k0, low, other ^ c3 ^ k1, rest
        k0, k1 = (k0 + 0x9E3779B9) & _MASK, (k1 + 0xBB67AE85) & _MASK
    words = torch.stack(torch.broadcast_tensors(c0, c1, c2, c3))
    word = (position & 3).expand(words.shape[1:])[None]
    return words.gather(0, word)[0] < least
