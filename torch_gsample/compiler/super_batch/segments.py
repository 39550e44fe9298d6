"""Functions of super-batched programs on the rows of several batches.

``ptr``, int64 ``[B + 1]``, has the start of each batch's rows.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

gsample = torch.ops.gsample


def total(ptr: Tensor) -> int:
    """Returns the number of all rows."""
    return int(ptr[-1])


def lengths(ptr: Tensor) -> list[int]:
    """Returns the number of rows of each batch."""
    return ptr.diff().tolist()


def batch_of(ptr: Tensor) -> Tensor:
    """Returns the batch of each row."""
    return torch.repeat_interleave(
        torch.arange(ptr.numel() - 1, device=ptr.device),
        ptr.diff(),
        output_size=int(ptr[-1]),
    )


# Starts of batches.


def pointers(
    sizes: Sequence[int], device: torch.device | None = None
) -> Tensor:
    """Returns the starts of batches of these sizes."""
    ptr = torch.zeros(len(sizes) + 1, dtype=torch.int64)
    torch.cumsum(torch.tensor(sizes, dtype=torch.int64), 0, out=ptr[1:])
    return ptr if device in (None, ptr.device) else ptr.to(device)


def sum_of(ptrs: Sequence[Tensor]) -> Tensor:
    """Returns the starts of batches that are concatenated batch by batch."""
    return torch.stack(tuple(ptrs)).sum(0)


def dense_ptr(ptr: Tensor, size: int) -> Tensor:
    """Returns the starts of equal batches, as many as ``ptr`` has."""
    return torch.arange(ptr.numel(), device=ptr.device) * size


def ptr_of_pointers(indptr: Tensor, ptr: Tensor) -> Tensor:
    """Returns the starts of batches in the target of ``indptr``."""
    return indptr[ptr].to(torch.int64)


def ptr_of_mask(mask: Tensor, ptr: Tensor) -> Tensor:
    """Returns the starts of batches in ``rows[mask]``."""
    return torch.nn.functional.pad(mask.cumsum(0), (1, 0))[ptr]


def ptr_of_sorted(position: Tensor, ptr: Tensor) -> Tensor:
    """Returns the starts of batches in ascending positions."""
    return torch.searchsorted(position, ptr)


def ptr_of_trees(tree: Tensor, ptr: Tensor) -> Tensor:
    """Returns the starts of batches in nodes of trees, batch by batch."""
    batch = torch.searchsorted(ptr[1:], tree, right=True)
    counts = torch.bincount(batch, minlength=ptr.numel() - 1)
    return torch.nn.functional.pad(counts.cumsum(0), (1, 0))


def ptr_of_rest(ptr: Tensor, first: Tensor) -> Tensor:
    """Returns the starts of batches without the first rows of each."""
    sizes = (ptr.diff() - first.diff()).clamp(min=0)
    return torch.nn.functional.pad(sizes.cumsum(0), (1, 0))


# Positions.


def _offset(value: Tensor, ptr: Tensor, batch: Tensor) -> Tensor:
    offset = ptr[batch].to(value.dtype)
    return offset.view(-1, *[1] * (value.dim() - 1))


def localize(position: Tensor, ptr: Tensor, batch: Tensor) -> Tensor:
    """Converts positions in all rows to positions in each batch."""
    return position - _offset(position, ptr, batch)


def globalize(position: Tensor, ptr: Tensor, batch: Tensor) -> Tensor:
    """Converts positions in each batch to positions in all rows.

    Raises:
        IndexError: If a batch has no such row, so that it cannot read another
            batch's row.
    """
    begin, end = (
        _offset(position, ptr, batch),
        _offset(position, ptr[1:], batch),
    )
    size = end - begin
    if bool(((position < -size) | (position >= size)).any()):
        raise IndexError('super_batch: an index is outside of its batch')
    return torch.where(position < 0, end, begin) + position


# Values.


def join(values: Sequence[Tensor], sizes: Sequence[Sequence[int]]) -> Tensor:
    """Concatenates values batch by batch."""
    parts = [v.split(s) for v, s in zip(values, sizes, strict=True)]
    return torch.cat(
        [part for parts in zip(*parts, strict=True) for part in parts]
    )


def rest(value: Tensor, ptr: Tensor, first: Tensor) -> Tensor:
    """Drops the first rows of each batch, as many as ``first`` has."""
    batch = batch_of(ptr)
    number = torch.arange(value.shape[0], device=value.device) - ptr[batch]
    return value[number >= first.diff()[batch]]


def argsort(value: Tensor, sizes: list[int], descending: bool) -> Tensor:
    """Sorts the rows of each batch; returns their positions in all rows."""
    begin, parts = 0, []
    for part, size in zip(value.split(sizes), sizes, strict=True):
        order = part.argsort(stable=True, descending=descending)
        parts.append(order + begin)
        begin += size
    return torch.cat(parts)


def cumsum(value: Tensor, ptr: Tensor, batch: Tensor) -> Tensor:
    """Returns cumulative sums of integers within each batch."""
    total = torch.nn.functional.pad(value.cumsum(0), (1, 0))
    return total[1:] - total[ptr[batch]]


def tile(value: Tensor, ptr: Tensor) -> Tensor:
    """Repeats a value for each batch."""
    return value.repeat(ptr.numel() - 1, *[1] * (value.dim() - 1))


def expand(value: Tensor, batch: Tensor, dim: int) -> Tensor:
    """Returns each row's batch element, with ``dim`` dimensions."""
    return value[batch].view(-1, *[1] * (dim - 1))


def reduce(
    operator: Callable[..., Tensor], value: Tensor, sizes: list[int]
) -> Tensor:
    """Reduces the rows of each batch, bitwise equal to a single run."""
    return torch.stack([operator(part) for part in value.split(sizes)])


# Results of each batch.


def split(value: Tensor, sizes: list[int]) -> Sequence[Tensor]:
    """Splits rows by batch."""
    return value.split(sizes)


def split_positions(value: Tensor, sizes: list[int], ptr: Tensor) -> Any:
    """Splits positions by batch, relative to the batch."""
    parts = zip(value.split(sizes), ptr.tolist(), strict=False)
    return [part - begin for part, begin in parts]


def split_pointers(value: Tensor, sizes: list[int], ptr: Tensor) -> Any:
    """Splits pointers by batch, with one more than rows for each."""
    out, first = [], 0
    for size, begin in zip(sizes, ptr.tolist(), strict=False):
        out.append(value[first : first + size + 1] - begin)
        first += size
    return out


def split_scalar(value: Tensor) -> Sequence[Tensor]:
    """Splits one element per batch."""
    return value.unbind()


def split_size(sizes: list[int], more: int) -> list[int]:
    """Returns one number per batch."""
    return [size + more for size in sizes]


def share(value: Any, ptr: Tensor) -> list[Any]:
    """Returns a shared value for each batch.

    They are copies, as a batch may change its value.
    """
    more = range(ptr.numel() - 2)
    if not isinstance(value, Tensor):
        return [value for _ in range(ptr.numel() - 1)]
    return [value, *(value.clone() for _ in more)]


def give(value: Any, ptr: Tensor) -> list[Any]:
    """Returns a shared input for each batch."""
    return [value] * (ptr.numel() - 1)


# Operators, batch by batch.


def _cat(parts: Sequence[Sequence[Tensor]], place: int) -> Tensor:
    return torch.cat([part[place] for part in parts])


def numbers(ptr: Tensor) -> Tensor:
    """Returns the index of each row in its batch."""
    number = torch.arange(int(ptr[-1]), device=ptr.device)
    return number - ptr[batch_of(ptr)]


def random_uniform(
    id: Tensor, key: Tensor, call_id: int, ptr: Tensor
) -> Tensor:
    """Draws a number for each id; see :func:`.ops.random_uniform`."""
    parts = zip(id.split(lengths(ptr)), key.split(1), strict=True)
    return torch.cat([gsample.random_uniform(p, k, call_id) for p, k in parts])


def walk(
    operator: Callable[..., tuple[Tensor, Tensor]],
    seeds: Tensor,
    sizes: list[int],
    key: Tensor,
    call_id: int,
    rest: dict[str, Any],
) -> tuple[Tensor, Tensor]:
    """Runs walks from the seeds of each batch."""
    parts = [
        operator(seeds=s, key=k, call_id=call_id, **rest)
        for s, k in zip(seeds.split(sizes), key.split(1), strict=True)
    ]
    return _cat(parts, 0), _cat(parts, 1)


def sample_neighbors(
    seeds: Tensor,
    sizes: list[int],
    key: Tensor,
    call_id: int,
    rest: dict[str, Any],
) -> tuple[Tensor, ...]:
    """Samples neighbours of the seeds of each batch.

    Returns:
        Tuple[torch.Tensor, ...]: The first five outputs of
        :func:`.ops.sample_neighbors`, with positions in the nodes and seeds of
        all batches, and the starts of each batch's nodes and edges.
    """
    parts = [
        gsample.sample_neighbors(seeds=[s], key=k, call_id=call_id, **rest)
        for s, k in zip(seeds.split(sizes), key.split(1), strict=True)
    ]
    device = seeds.device
    node_ptr = pointers([part[2].numel() for part in parts], device)
    edge_ptr = pointers([part[0].numel() for part in parts], device)
    seed_ptr = pointers(sizes).tolist()
    begin = list(zip(parts, node_ptr.tolist(), seed_ptr, strict=False))
    return (
        torch.cat([part[0] + node for part, node, _ in begin]),
        torch.cat([part[1] + node for part, node, _ in begin]),
        _cat(parts, 2),
        _cat(parts, 3),
        torch.cat([part[4] + seed for part, _, seed in begin]),
        node_ptr,
        edge_ptr,
    )


# They have no side effects, so their reads of the graph may be hoisted.
for _function in (walk, sample_neighbors):
    setattr(_function, 'is_pure', True)  # noqa: B010
