"""Functions of super-batched programs on the rows of several batches.

``ptr``, int64 ``[B + 1]``, has the start of each batch's rows.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torch_gsample.compiler.ir import SIZE_OPERATORS

#: An upper bound of integers.
_ANY = 2**62


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


def cumsum(value: Tensor, ptr: Tensor, batch: Tensor) -> Tensor:
    """Returns cumulative sums of integers within each batch."""
    total = torch.nn.functional.pad(value.cumsum(0), (1, 0))
    return total[1:] - total[ptr[batch]]


def unique(value: Tensor, ptr: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the distinct integers of each batch, ascending.

    As ``unique_nodes`` does for integers that are not negative, which most
    are; others are moved up by the least of them.

    Raises:
        RuntimeError: If integers differ by more than 2^62.
    """
    number = torch.ops.gsample.unique_nodes.default
    try:
        return number(value, _ANY, True, ptr)
    except RuntimeError:
        low, high = map(int, torch.aminmax(value))
        if low >= 0 or high - low >= _ANY:
            raise
    found, local, ends = number(value.long() - low, _ANY, True, ptr)
    return found + low, local.to(value.dtype), ends


def tile(value: Tensor, ptr: Tensor) -> Tensor:
    """Repeats a value for each batch."""
    return value.repeat(ptr.numel() - 1, *[1] * (value.dim() - 1))


def expand(value: Tensor, batch: Tensor, dim: int) -> Tensor:
    """Returns each row's batch element, with ``dim`` dimensions."""
    return value[batch].view(-1, *[1] * (dim - 1))


# Parts of each batch.


class Batches(tuple[Any, ...]):
    """The part of each batch in a value."""


def split(value: Tensor, sizes: list[int]) -> Batches:
    """Splits rows by batch."""
    return Batches(value.split(sizes))


def split_positions(value: Tensor, sizes: list[int], ptr: Tensor) -> Batches:
    """Splits positions by batch, relative to the batch."""
    parts = zip(value.split(sizes), ptr.tolist(), strict=False)
    return Batches(part - begin for part, begin in parts)


def split_pointers(value: Tensor, sizes: list[int], ptr: Tensor) -> Batches:
    """Splits pointers by batch, with one more than rows for each."""
    out, first = [], 0
    for size, begin in zip(sizes, ptr.tolist(), strict=False):
        out.append(value[first : first + size + 1] - begin)
        first += size
    return Batches(out)


def split_scalar(value: Tensor) -> Batches:
    """Splits one element per batch."""
    return Batches(value.unbind())


def split_size(sizes: list[int], more: int) -> Batches:
    """Returns one number per batch."""
    return Batches(size + more for size in sizes)


def split_keys(key: Tensor) -> Batches:
    """Returns the key of each batch, ``[1, 3]``."""
    return Batches(key.split(1))


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


def numbers(ptr: Tensor) -> Tensor:
    """Returns the index of each row in its batch."""
    number = torch.arange(int(ptr[-1]), device=ptr.device)
    return number - ptr[batch_of(ptr)]


# Operators that are called for each batch.


def _of(operand: Any, batch: int) -> Any:
    """Returns an operand of a batch."""
    if isinstance(operand, Batches):
        return operand[batch]
    if isinstance(operand, (list, tuple)):
        return [_of(item, batch) for item in operand]
    return operand


def each_batch(
    operator: Callable[..., Any],
    names: Sequence[str],
    operands: Sequence[Any],
    ptr: Tensor,
) -> list[Any]:
    """Calls an operator for each batch, and concatenates its results.

    Args:
        operator (Callable): The operator.
        names (List[str]): The names of its arguments.
        operands (List[Any]): Their values; those that differ between batches
            are :class:`Batches`.
        ptr (torch.Tensor): int64 ``[B + 1]``.

    Returns:
        List[torch.Tensor]: For each result its rows of all batches and their
        starts; an element for each batch if it has no dimensions. None for
        results other than tensors.
    """
    results = [
        operator(
            **{n: _of(o, i) for n, o in zip(names, operands, strict=True)}
        )
        for i in range(ptr.numel() - 1)
    ]
    if isinstance(results[0], Tensor):
        results = [(result,) for result in results]
    joined: list[Any] = []
    for parts in zip(*results, strict=True):
        if not isinstance(parts[0], Tensor):
            joined += [None, None]
            continue
        rows = [part if part.dim() else part.view(1) for part in parts]
        sizes = [part.shape[0] for part in rows]
        joined += [torch.cat(rows), pointers(sizes, ptr.device)]
    return joined


#: A graph has no functions among its arguments, so they have names.
_ON_SIZES = {f.__name__: f for f in SIZE_OPERATORS}


def each_number(
    function: str | Callable[..., Any], args: Sequence[Any], ptr: Tensor
) -> Batches:
    """Computes a number for each batch; see :func:`each_batch`.

    The function is an operator, or the name of a function on sizes.
    """
    called: Any = (
        _ON_SIZES[function] if isinstance(function, str) else function
    )
    batches = range(ptr.numel() - 1)
    return Batches(called(*_of(list(args), i)) for i in batches)


# It calls operators without side effects, whose reads of the graph may be
# hoisted.
each_batch.is_pure = True  # type: ignore[attr-defined]
