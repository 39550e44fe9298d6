"""A tensor with only the computed rows of a layer's output.

Operations that process rows independently keep the class. If operands have
different numbers of rows, the result has the smallest number: the rows of a
batch are in the order of hops, and each operand has the first of them.
Operations that may read other rows raise an error.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torch_gsample.fusion import row_rules
from torch_gsample.torch_private import (
    is_in_backward,
    is_of_backward,
    no_subclass_dispatch,
    tree_map,
)


class Origin(NamedTuple):
    """Origin of the rows.

    Args:
        layer (Any): The layer that computed them, as text in errors.
        num_rows (int): Number of rows of its output on the whole batch.
        kind (Type, optional): The class of the rows; default:
            :class:`FirstRows`.
    """

    layer: Any
    num_rows: int
    kind: Any = None


class UnseenRowsError(IndexError):
    """An operation reads rows that a layer did not compute."""


class FirstRows(Tensor):
    """The first rows of a tensor with a row for each node of a batch."""

    #: Origin of the rows.
    origin: Origin
    #: The dimension of the rows.
    row_dim: int = 0
    #: The number of rows.
    num_rows: int

    @classmethod
    def __torch_function__(
        cls,
        function: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        with no_subclass_dispatch():
            try:
                rule = _RULES[function]
            except KeyError:
                rule = _RULES[function] = _rule_of(function)
            return rule(function, args, kwargs)


def first_rows(tensor: Tensor, origin: Origin, row_dim: int = 0) -> FirstRows:
    """Returns a tensor as the first rows of a larger one."""
    out = tensor.as_subclass(origin.kind or FirstRows)
    out.origin, out.row_dim = origin, row_dim
    out.num_rows = tensor.shape[row_dim]
    return out


def plain(value: Any) -> Any:
    """Returns a tensor without its class; other values unchanged."""
    # A new tensor, as hooks on gradients belong to the original one.
    return value.as_subclass(Tensor) if isinstance(value, FirstRows) else value


def plain_tree(value: Any) -> Any:
    """Returns a nest of lists and dicts with plain tensors."""
    return tree_map(plain, value)


_Rule = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
_RULES: dict[Any, _Rule] = {}


def _rule_of(function: Any) -> _Rule:
    name = getattr(function, '__name__', str(function))
    if name in ('__get__', '__set__', '__delete__'):
        field = function.__self__.__name__
        moves = name == '__get__' and field in row_rules.MOVING_FIELDS
        moves |= name == '__set__' and field == 'data'
        return _refusal(f'.{field}') if moves else _as_it_is
    if name in row_rules.FIELDS:
        return _as_it_is
    if name == '__getitem__':
        return _index
    if name == 'index_select':
        return _index_select
    if name == 'backward':
        return _backward
    kind = row_rules.kind_of(name)
    return _refusal(name) if kind is None else _Keeping(name, kind)


def _as_it_is(function: Any, args: Any, kwargs: Any) -> Any:
    return function(*args, **kwargs)


def _refusal(name: str) -> _Rule:
    def refuse(function: Any, args: Any, kwargs: Any) -> Any:
        if is_of_backward(function):
            return function(*args, **kwargs)
        partial = row_rules.tensors_of(args, kwargs, FirstRows)
        raise unseen(name, partial[0])

    return refuse


def _backward(function: Any, args: Any, kwargs: Any) -> Any:
    if is_in_backward():  # a checkpoint continues with its gradients
        return function(*args, **kwargs)
    return _refusal('backward')(function, args, kwargs)


def unseen(
    what: str, rows: FirstRows, num_rows: int | None = None
) -> UnseenRowsError:
    """Returns the error of an operation that reads other rows."""
    layer, total = rows.origin[:2]
    num_rows = rows.num_rows if num_rows is None else num_rows
    return UnseenRowsError(
        f'fuse: {what} may read any of the {total} rows of the output of '
        f'{layer}, of which the first {num_rows} were computed: take these '
        f'first, as by out[:batch_size], or do not fuse this model '
        f'(torch_gsample.unfuse)'
    )


class _Keeping:
    """Calls an operation that processes rows independently.

    Args:
        name (str): The operation.
        kind (Callable): Returns the dimension of the rows in the result;
            raises a :class:`row_rules.MixedError` if it mixes them.
    """

    def __init__(self, name: str, kind: row_rules.Kind):
        self._name, self._kind = name, kind
        self._in_place = name.endswith('_') and name[-2:-1] != '_'
        self._in_place |= name.startswith('__i') and name != '__invert__'
        #: Whether the operation is elementwise and not in place.
        self._is_simple = kind is row_rules.same and not self._in_place

    def __call__(self, function: Any, args: Any, kwargs: Any) -> Any:
        if self._is_simple and row_rules.is_alone(args, kwargs):
            x = args[0]
            if isinstance(x, FirstRows):
                out = function(*args, **kwargs)
                return self._wrapped(
                    out, x.origin, x.shape[x.row_dim], x.row_dim
                )
        partial = row_rules.tensors_of(args, kwargs, FirstRows)
        first = partial[0]
        origin, count = first.origin, min(x.shape[x.row_dim] for x in partial)
        if any(x.origin.num_rows != origin.num_rows for x in partial):
            raise unseen(f'{self._name} of rows of several node types', first)
        try:
            dim = self._kind(args, kwargs, first)
            if self._in_place:
                self._check_in_place(args[0], count)
            if len(partial) > 1 or not row_rules.is_alone(args, kwargs):
                cut = _Cut(self._kind, first, count)
                args, parameters = row_rules.operands(self._kind, args)
                args, kwargs = tree_map(cut, (args, kwargs))
                args = *args, *parameters
            out = function(*args, **kwargs)
            return self._wrapped(out, origin, count, dim)
        except row_rules.MixedError as error:
            name = f'{self._name} {error}'.rstrip()
            raise unseen(name, first, count) from None

    def _check_in_place(self, changed: Any, count: int) -> None:
        partial = isinstance(changed, FirstRows)
        if not partial or changed.shape[changed.row_dim] != count:
            raise row_rules.MixedError('in place, on more rows')

    def _wrapped(self, out: Any, origin: Origin, count: int, dim: Any) -> Any:
        if isinstance(out, Tensor):
            if isinstance(out, FirstRows):  # operation in place
                return out
            if out.dim() <= dim or out.shape[dim] != count:
                raise row_rules.MixedError()
            return first_rows(out, origin, dim)
        if self._name in row_rules.RECURRENT:
            outs, *states = out
            return (
                first_rows(outs, origin),
                *(first_rows(x, origin, 1) for x in states),
            )

        def wrap(x: Any) -> Any:
            return self._wrapped(x, origin, count, dim)

        if isinstance(out, (tuple, list)):
            kind: Any = type(out)
            return kind([wrap(x) for x in out])
        return out


class _Cut:
    """Narrows operands to the rows that all of them have."""

    def __init__(self, kind: Any, first: FirstRows, count: int):
        self._dim, self._count = first.dim(), count
        self._total = first.origin.num_rows
        self._row_dim = first.row_dim
        self._is_aligned = row_rules.is_aligning(kind, first)

    def __call__(self, value: Any) -> Any:
        count = self._count
        if isinstance(value, FirstRows):
            if self._is_aligned and value.dim() < self._dim:
                raise row_rules.MixedError('of tensors of other dimensions')
            if value.shape[value.row_dim] != count:
                value = plain(value).narrow(value.row_dim, 0, count)
            return value
        if not isinstance(value, Tensor) or not self._is_aligned:
            return value
        if value.dim() > self._dim:
            raise row_rules.MixedError('of tensors of other dimensions')
        if value.dim() < self._dim or value.dim() == 0:
            return value
        rows = value.shape[self._row_dim]
        if rows == self._total:
            return value.narrow(self._row_dim, 0, count)
        if rows not in (1, count):
            raise row_rules.MixedError(f'with a tensor of {rows} rows')
        return value


def _index(function: Any, args: Any, kwargs: Any) -> Any:
    rows, index = args
    if not isinstance(rows, FirstRows):  # rows used as an index
        index = index[0] if isinstance(index, tuple) else index
        found = row_rules.tensors_of((index,), {}, FirstRows)
        raise unseen('an index by them', found[0])
    count, total = rows.shape[rows.row_dim], rows.origin.num_rows
    parts = index if isinstance(index, tuple) else (index,)
    first, rest = parts[0] if parts else Ellipsis, parts[1:]
    if rows.row_dim:
        if isinstance(first, int) and not rest:
            out = plain(rows)[first]
            return first_rows(out, rows.origin, rows.row_dim - 1)
        raise unseen('an index', rows)
    if row_rules.takes_all(first, rest, rows.dim()):
        out = _of_columns(plain(rows), index)
        if out.dim() and out.shape[0] == count:
            return first_rows(out, rows.origin)
        raise unseen('an index', rows)
    if isinstance(first, Tensor) and first.dtype == torch.bool:
        whole = first.dim() == 1 and first.shape[0] == total
        if isinstance(first, FirstRows) or not whole or first[count:].any():
            raise unseen('an index by a mask', rows)
        parts = first[:count], *rest
        return plain(rows)[parts]
    if not row_rules.are_among(first, count):
        raise unseen(f'the index {row_rules.shown(first)}', rows)
    return plain(rows)[index]


def _of_columns(rows: Tensor, index: Any) -> Tensor:
    """Returns ``rows[index]`` for an index of dimensions after the first.

    The gradient of ``rows[:, 0]`` would be a copy filled with zeros; for a
    dimension of size 1, it is a view.
    """
    if (
        isinstance(index, tuple)
        and len(index) == 2
        and index[0] == slice(None)
        and type(index[1]) is int
        and rows.shape[1] == 1
        and index[1] in (0, -1)
    ):
        return rows.squeeze(1)
    return rows[index]


def _index_select(function: Any, args: Any, kwargs: Any) -> Any:
    def bind(rows: Any, dim: Any, index: Any) -> tuple[Any, Any, Any]:
        return rows, dim, index

    if 'input' in kwargs:
        args, kwargs = (kwargs.pop('input'), *args), kwargs
    rows, dim, index = bind(*args, **kwargs)
    if not isinstance(rows, FirstRows):
        raise unseen('index_select', index)
    if dim % rows.dim() != rows.row_dim:
        out = plain(rows).index_select(dim, index)
        return first_rows(out, rows.origin, rows.row_dim)
    if not row_rules.are_among(index, rows.shape[rows.row_dim]):
        raise unseen('index_select', rows)
    return plain(rows).index_select(dim, index)
