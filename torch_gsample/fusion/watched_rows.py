"""A tensor that records whether rows other than its first ones are read."""

from typing import Any

import torch
from torch import Tensor

from torch_gsample.fusion.row_rules import FIELDS, MOVING_FIELDS
from torch_gsample.fusion.rows import FirstRows, Origin, first_rows, plain
from torch_gsample.torch_private import no_subclass_dispatch, tree_map


class Reads:
    """The rows of a model's outputs that are read.

    Args:
        name (str): The model.
    """

    def __init__(self, name: str):
        self.name = name
        #: The operation that needs all rows; empty until there is one.
        self.reason = ''


class WatchedRows(Tensor):
    """All rows of a model's output, of which the first may suffice.

    Each operation runs, and is also tested on the first rows only, as
    :class:`FirstRows`.
    """

    reads: Reads
    count: int
    total: int
    row_dim: int = 0

    @classmethod
    def __torch_function__(
        cls,
        function: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        found: list[WatchedRows] = []

        def narrowed(x: Any) -> Any:
            if not isinstance(x, WatchedRows):
                return x
            found.append(x)
            rows = plain_of(x).detach().narrow(x.row_dim, 0, x.count).clone()
            origin = Origin(x.reads.name, x.total)
            return first_rows(rows, origin, x.row_dim)

        with no_subclass_dispatch():
            tried = None
            if not _is_field(function):
                tried = tree_map(narrowed, (args, kwargs))
            out = function(*args, **kwargs)
            if not found or found[0].reads.reason:
                return out
        return _checked(function, tried, out, found[0])


def watched_rows(
    tensor: Tensor, reads: Reads, count: int, row_dim: int = 0
) -> Tensor:
    """Returns a tensor that records whether only its first rows are read."""
    out = tensor.as_subclass(WatchedRows)
    out.reads, out.count, out.row_dim = reads, count, row_dim
    out.total = tensor.shape[row_dim]
    return out


def plain_of(x: Tensor) -> Tensor:
    """Returns the tensor without its class."""
    return x.as_subclass(Tensor)


def _is_field(function: Any) -> bool:
    name = getattr(function, '__name__', '')
    if name == '__get__':
        return function.__self__.__name__ not in MOVING_FIELDS
    return name in FIELDS or name in ('__set__', '__delete__', 'backward')


def _checked(function: Any, tried: Any, out: Any, rows: WatchedRows) -> Any:
    """Records whether the first rows suffice for an operation."""
    reads = rows.reads
    devices = [rows.device] if rows.is_cuda else []
    args, kwargs = tried
    try:
        with torch.no_grad(), torch.random.fork_rng(devices):
            some = function(*args, **kwargs)
    except Exception as error:
        text = str(error).split(': take these')[0]
        reads.reason = text.removeprefix('fuse: ')
        return out

    def watch(x: Any, part: Any) -> Any:
        if not isinstance(part, FirstRows) or not isinstance(x, Tensor):
            return x
        return watched_rows(
            plain(x), reads, part.shape[part.row_dim], part.row_dim
        )

    if isinstance(out, (tuple, list)):
        kind: Any = type(out)
        return kind([watch(*pair) for pair in zip(out, some, strict=True)])
    return watch(out, some)
