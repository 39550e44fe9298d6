"""The first rows of a tensor, with the size of all of them.

Inside a layer that makes edges of its own, sizes are those of the whole
batch: what it makes of ``x.size(0)`` and of all edges, such as degrees, is
then right.
"""

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_gsample.fusion.rows import FirstRows, Origin, first_rows, unseen
from torch_gsample.torch_private import no_subclass_dispatch


class SizedRows(FirstRows):
    """The first rows of a tensor, which reports the size of all."""

    @classmethod
    def __torch_function__(
        cls,
        function: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        name = getattr(function, '__name__', '')
        if name == '__get__':
            name = function.__self__.__name__
        kwargs = kwargs or {}
        if name in _SIZES:
            with no_subclass_dispatch():
                return _SIZES[name](_size(args[0]), *args[1:], **kwargs)
        if name in _RESHAPES:
            with no_subclass_dispatch():
                args = args[0], *_of_computed(args[0], args[1:])
        elif name == '__getitem__' and isinstance(args[0], SizedRows):
            args = args[0], _without_bounds(args[0], args[1])
        return super().__torch_function__(function, types, args, kwargs)


def sized_rows(x: Tensor, total: int) -> FirstRows:
    """Returns computed rows as the first ones of a larger tensor."""
    return first_rows(x, Origin('an earlier layer', total, SizedRows))


def _size(rows: Any) -> torch.Size:
    size = list(rows.shape)
    size[rows.row_dim] = rows.origin.num_rows
    return torch.Size(size)


def _dim(size: torch.Size, dim: int | None = None) -> Any:
    return size if dim is None else size[dim]


def _of_computed(rows: Any, sizes: Any) -> Any:
    """Returns a shape with the number of rows that were computed."""
    if not sizes or rows.row_dim:
        return sizes
    first, *rest = sizes
    if isinstance(first, (tuple, list)):
        return (tuple(_of_computed(rows, first)), *rest)
    if first not in (-1, rows.origin.num_rows):
        raise unseen('a view of other rows', rows)
    return first if first == -1 else rows.shape[0], *rest


def _without_bounds(rows: Any, index: Any) -> Any:
    """Returns an index without a slice of all rows, as ``[:x.size(0)]``."""
    if isinstance(index, tuple) and index:
        return (_without_bounds(rows, index[0]), *index[1:])
    if rows.row_dim or not isinstance(index, slice):
        return index
    total = rows.origin.num_rows
    is_all = index in (slice(total), slice(0, total))
    return slice(None) if is_all else index


_SIZES: dict[str, Callable[..., Any]] = {
    **{'size': _dim, 'shape': _dim, '__len__': operator.itemgetter(0)},
    **dict.fromkeys(('numel', 'nelement'), torch.Size.numel),
}
_RESHAPES = frozenset(('view', 'reshape', 'expand'))
