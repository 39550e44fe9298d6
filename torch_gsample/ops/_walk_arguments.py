"""Argument checks of the walk operators."""

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.ops._fake import allow_unknown_lengths
from torch_gsample.ops.formats import cum_weight_size

_MAX_CALLS = 65536


def length(op: str, length: int) -> int:
    """Returns the number of steps after checks."""
    if isinstance(length, bool) or not isinstance(length, int):
        raise TypeError(f"{op}: 'length' must be an integer (got {length!r})")
    if not 0 <= length < 2**31:
        raise ValueError(f"{op}: 'length' must be in [0, 2^31) (got {length})")
    return length


def call_id(op: str, call_id: int) -> int:
    """Returns the id of the draw after checks."""
    if not 0 <= call_id < _MAX_CALLS:
        raise ValueError(
            f"{op}: 'call_id' must be in [0, {_MAX_CALLS}) (got {call_id})"
        )
    return call_id


def weights(
    op: str,
    cum_weight: Tensor | None,
    indptr: Tensor,
    indices: Tensor,
    device: torch.device,
) -> Tensor | None:
    """Returns cumulated weights as int64 after checks, or None."""
    if cum_weight is None:
        return None
    size = cum_weight_size(indices.numel(), indptr.numel() - 1)
    return _check.int64_vector(
        op, 'cum_weight', cum_weight, size, device, or_pinned=True
    )


def empty_walks(seeds: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Returns a fake kernel's outputs: nodes and edges."""
    allow_unknown_lengths()
    n = seeds.shape[0]
    return seeds.new_empty(n, length + 1), seeds.new_empty(n, length)
