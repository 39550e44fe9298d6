"""Rules for torch operations that process each row of a tensor independently.

A rule returns the dimension of the rows in a result. Operations without a rule
are assumed to mix rows.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import torch
from torch import Tensor

#: Fields of a tensor that move its rows, or bypass the checks.
MOVING_FIELDS = frozenset(('T', 'mT', 'H', 'mH', 'data', 'real', 'imag'))
#: Fields and methods that read no values.
FIELDS = frozenset(
    (
        'size dim stride numel __len__ nelement ndimension element_size '
        'is_floating_point is_complex is_contiguous is_cuda get_device '
        'requires_grad_ register_hook retain_grad data_ptr storage_offset '
        'new_zeros new_ones new_full new_empty new_tensor '
        'is_same_size __repr__ __format__ __hash__ is_signed'
    ).split()
)
#: Operations with a hidden state for each row.
RECURRENT = frozenset(('lstm', 'gru'))


class MixedError(Exception):
    """An operation mixes rows."""


#: Takes the arguments of an operation, and the tensor with the rows.
Kind = Callable[[Any, Any, Any], int]


def kind_of(name: str) -> Kind | None:
    """Returns the rule of an operation, if it has one."""
    if name in _KINDS:
        return _KINDS[name]
    stem = name.strip('_')
    for prefix in ('', 'i', 'r') if name.startswith('__') else ('',):
        if stem.startswith(prefix):
            stem_of = _DUNDERS.get(stem[len(prefix) :], stem[len(prefix) :])
            if _is_pointwise(stem_of):
                return _selects if stem_of == 'where' else same
    return same if name in _POINTWISE else None


def _is_pointwise(name: str) -> bool:
    packet = getattr(torch.ops.aten, name, None)
    return packet is not None and any(
        torch.Tag.pointwise in getattr(packet, overload).tags
        for overload in packet.overloads()
    )


def tensors_of(args: Any, kwargs: Any, kind: type) -> list[Any]:
    """Returns tensors of a class among arguments, including lists."""
    out = []
    for value in (*args, *kwargs.values()):
        if isinstance(value, kind):
            out.append(value)
        elif isinstance(value, (list, tuple, dict)):
            inner = value.values() if isinstance(value, dict) else value
            out += tensors_of(tuple(inner), {}, kind)
    return out


def is_alone(args: Any, kwargs: Any) -> bool:
    """Whether the first argument is the only tensor."""
    for value in (*args[1:], *kwargs.values()):
        if isinstance(value, (Tensor, list, tuple, dict)):
            return False
    return isinstance(args[0], Tensor) if args else False


def takes_all(first: Any, rest: tuple[Any, ...], dims: int) -> bool:
    """Whether an index selects all rows in their positions."""
    tensors = [x for x in rest if isinstance(x, (Tensor, list))]
    if len(tensors) > 1:  # indexed dimensions move to the front
        return False
    if first is Ellipsis:
        return len([x for x in rest if x is not None]) < dims
    return isinstance(first, slice) and first == slice(None)


def are_among(index: Any, count: int) -> bool:
    """Whether an index only selects among the first rows."""
    if isinstance(index, bool):
        return False
    if isinstance(index, int):
        return 0 <= index < count
    if isinstance(index, slice):
        start, stop = index.start or 0, index.stop
        if isinstance(start, int) and isinstance(stop, int):
            return start >= 0 and 0 <= stop <= count
        return False
    if isinstance(index, (list, tuple, range)):
        return all(type(i) is int and 0 <= i < count for i in index)
    if isinstance(index, Tensor) and index.dtype != torch.bool:
        if index.is_floating_point() or index.numel() == 0:
            return not index.is_floating_point()
        low, high = index.aminmax()
        return bool(low >= 0) and bool(high < count)
    return False


def shown(index: Any) -> str:
    """Returns an index as text, for errors."""
    if isinstance(index, slice):
        ends = ('' if x is None else x for x in (index.start, index.stop))
        return '[{}:{}]'.format(*ends)
    return (
        f'{type(index).__name__}' if isinstance(index, Tensor) else str(index)
    )


# Rules #######################################################################


def same(args: Any, kwargs: Any, rows: Any) -> int:
    """For elementwise functions: rows keep their dimension."""
    return rows.row_dim


def _selects(args: Any, kwargs: Any, rows: Any) -> int:
    if len(args) + len(kwargs) < 3:
        raise MixedError('without values')
    return rows.row_dim


def _argument(args: Any, kwargs: Any, place: int, default: Any) -> Any:
    for name in ('dim', 'axis', 'dims'):
        if name in kwargs:
            return kwargs[name]
    return args[place] if len(args) > place else default


def _dims(value: Any, rows: Any, more: int = 0) -> list[int]:
    """Returns the dimensions of an argument."""
    if value is None:
        raise MixedError('over all dimensions')
    values = value if isinstance(value, (tuple, list)) else (value,)
    if not values or any(not isinstance(d, int) for d in values):
        raise MixedError()
    dims = [d % (rows.dim() + more) for d in values]
    if not more and rows.row_dim in dims:
        raise MixedError(f'over dimension {rows.row_dim}')
    return dims


def _reduces(place: int) -> Kind:
    """For reductions: dimensions before the rows may disappear."""

    def rule(args: Any, kwargs: Any, rows: Any) -> int:
        other = args[1] if len(args) > 1 else kwargs.get('other')
        if isinstance(other, Tensor):  # max of two tensors
            return same(args, kwargs, rows)
        dims = _dims(_argument(args, kwargs, place, None), rows)
        keeps = place + 1
        keep = kwargs.get('keepdim', args[keeps] if len(args) > keeps else 0)
        gone = [d for d in dims if d < rows.row_dim]
        return rows.row_dim - (0 if keep else len(gone))

    return rule


def _along(place: int, default: Any, drops: bool = False) -> Kind:
    """For operations along a dimension."""

    def rule(args: Any, kwargs: Any, rows: Any) -> int:
        dims = _dims(_argument(args, kwargs, place, default), rows)
        return rows.row_dim - (drops and dims[0] < rows.row_dim)

    return rule


def _adds(default: Any) -> Kind:
    """For operations that insert a dimension."""

    def rule(args: Any, kwargs: Any, rows: Any) -> int:
        dim = _dims(_argument(args, kwargs, 1, default), rows, 1)[0]
        return rows.row_dim + (dim <= rows.row_dim)

    return rule


def _reshapes(args: Any, kwargs: Any, rows: Any) -> int:
    shape = args[1:] if len(args) > 1 else (kwargs.get('shape'),)
    shape = shape[0] if isinstance(shape[0], (tuple, list)) else shape
    count = rows.shape[0]
    if rows.row_dim or not all(isinstance(n, int) for n in shape):
        raise MixedError()
    if not shape or shape[0] not in (-1, count):
        raise MixedError('to another number of rows')
    # If the first dimension does not change, rows keep their positions.
    size = prod(n for n in shape if n != -1)
    if shape[0] == -1 and size * count != rows.numel():
        raise MixedError('to another number of rows')
    return 0


def _flattens(args: Any, kwargs: Any, rows: Any) -> int:
    start = kwargs.get('start_dim', args[1] if len(args) > 1 else 0)
    if rows.row_dim or start % rows.dim() == 0:
        raise MixedError()
    return 0


def _swaps(args: Any, kwargs: Any, rows: Any) -> int:
    _dims(tuple(args[1:3]), rows)
    return rows.row_dim


def _permutes(args: Any, kwargs: Any, rows: Any) -> int:
    dims = args[1] if isinstance(args[1], (tuple, list)) else args[1:]
    return [d % rows.dim() for d in dims].index(rows.row_dim)


def _projects(args: Any, kwargs: Any, rows: Any) -> int:
    """For products with a matrix on the right, or of a matrix a row."""
    if _has_matrices(rows):
        return 0
    others = tensors_of(args[1:], kwargs, type(rows))
    if args[0] is not rows or others or rows.row_dim != rows.dim() - 2:
        raise MixedError('over the rows')
    if any(isinstance(x, Tensor) and x.dim() > rows.dim() for x in args[1:]):
        raise MixedError('in batches')
    return rows.row_dim


def _has_matrices(rows: Any) -> bool:
    return rows.row_dim == 0 and rows.dim() > 2


def _adds_product(args: Any, kwargs: Any, rows: Any) -> int:
    if len(args) != 3 or rows.row_dim or type(args[1]) is not type(rows):
        raise MixedError('over the rows')
    added, _, matrix = args
    if isinstance(matrix, type(rows)) or not (
        isinstance(added, type(rows)) or added.dim() < 2
    ):
        raise MixedError('over the rows')
    return 0


def _normalizes_last(args: Any, kwargs: Any, rows: Any) -> int:
    shape = args[1] if len(args) > 1 else kwargs['normalized_shape']
    if rows.row_dim or args[0] is not rows or len(shape) >= rows.dim():
        raise MixedError('over the rows')
    return 0


def _normalizes_batch(args: Any, kwargs: Any, rows: Any) -> int:
    training = kwargs.get('training', args[5] if len(args) > 5 else False)
    if training or rows.row_dim or args[0] is not rows:
        raise MixedError('in training')
    return 0


def _normalizes_group(args: Any, kwargs: Any, rows: Any) -> int:
    if rows.row_dim or args[0] is not rows or rows.dim() < 2:
        raise MixedError('over the rows')
    return 0


def _matches(args: Any, kwargs: Any, rows: Any) -> int:
    """For operations on pairs of matrices, or of rows."""
    if rows.row_dim or rows.dim() < 2:
        raise MixedError('over the rows')
    return 0


def _compares(args: Any, kwargs: Any, rows: Any) -> int:
    dims = _dims(_argument(args, kwargs, 2, 1), rows)
    if rows.row_dim or rows.dim() != 2:
        raise MixedError(f'over dimension {dims[0]}')
    return 0


def _cell(args: Any, kwargs: Any, rows: Any) -> int:
    if rows.row_dim or rows.dim() != 2:
        raise MixedError('over the rows')
    return 0


def _sizes(args: Any) -> Any:
    if len(args) < 2:
        raise MixedError()
    return args[1] if isinstance(args[1], (tuple, list)) else args[1:]


def _expands(args: Any, kwargs: Any, rows: Any) -> int:
    sizes, dim = _sizes(args), rows.row_dim
    if len(sizes) != rows.dim() or sizes[dim] not in (-1, rows.shape[dim]):
        raise MixedError('to another number of rows')
    return dim


def _repeats(args: Any, kwargs: Any, rows: Any) -> int:
    counts = _sizes(args)
    if len(counts) != rows.dim() or counts[rows.row_dim] != 1:
        raise MixedError('over the rows')
    return rows.row_dim


def _recurs(args: Any, kwargs: Any, rows: Any) -> int:
    batch_first = args[-1] is True and rows.dim() == 3
    if rows.row_dim or args[0] is not rows or not batch_first:
        raise MixedError('over the rows')
    return 0


_DUNDERS = {
    **{'truediv': 'div', 'floordiv': 'floor_divide', 'mod': 'remainder'},
    **{'and': 'bitwise_and', 'or': 'bitwise_or', 'xor': 'bitwise_xor'},
    **{'invert': 'bitwise_not'},
}
#: Rowwise functions that are more than one operator of torch.
_POINTWISE = frozenset(
    (
        'dropout dropout_ alpha_dropout prelu logsigmoid softsign tanhshrink '
        'hardswish zeros_like ones_like full_like empty_like rand_like '
        'randn_like to float double half bfloat16 type long int bool cpu cuda '
        'detach detach_ contiguous identity requires_grad_ relu_ elu_ '
        'leaky_relu_ hardtanh_ silu_ selu_ celu_ clip clip_ subtract multiply '
        'divide fill_ zero_ view_as type_as expand_as'
    ).split()
)
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(
        (
            'sum mean amax amin max min prod any all logsumexp std var argmax '
            'argmin nansum nanmean median'
        ).split(),
        _reduces(1),
    ),
    **dict.fromkeys(
        ('norm', 'linalg_norm', 'linalg_vector_norm'), _reduces(2)
    ),
    **dict.fromkeys(
        'softmax log_softmax softmin cumsum cumprod _softmax'.split(),
        _along(1, None),
    ),
    **dict.fromkeys(('cat', 'concat', 'concatenate'), _along(1, 0)),
    **dict.fromkeys(('split', 'chunk', 'tensor_split'), _along(2, 0)),
    **dict.fromkeys(('hstack', 'column_stack', 'bmm'), _matches),
    'cosine_similarity': _compares,
    'gather': _along(1, None),
    **dict.fromkeys(('gru_cell', 'lstm_cell', 'bilinear'), _cell),
    'expand': _expands,
    **dict.fromkeys(('repeat', 'tile'), _repeats),
    **dict.fromkeys(('repeat_interleave', 'roll'), _along(2, None)),
    **dict.fromkeys(('sort', 'argsort', 'glu'), _along(1, -1)),
    'topk': _along(2, -1),
    'normalize': _along(2, 1),
    'narrow': _along(1, None),
    **dict.fromkeys(('unbind', 'select'), _along(1, 0, drops=True)),
    'squeeze': _along(1, None, drops=True),
    'unsqueeze': _adds(None),
    'stack': _adds(0),
    **dict.fromkeys(('view', 'reshape'), _reshapes),
    'flatten': _flattens,
    **dict.fromkeys(('transpose', 'swapaxes', 'swapdims'), _swaps),
    'permute': _permutes,
    **dict.fromkeys(('linear', 'matmul', '__matmul__', 'mm', 'mv'), _projects),
    'addmm': _adds_product,
    **dict.fromkeys(('layer_norm', 'rms_norm'), _normalizes_last),
    'batch_norm': _normalizes_batch,
    'group_norm': _normalizes_group,
    **dict.fromkeys(RECURRENT, _recurs),
}
#: Rules of operations that align all their tensors by broadcasting.
_ALIGNING = frozenset(
    [_KINDS[name] for name in ('cat', 'stack', 'max', 'gather')]
    + [same, _selects, _matches, _compares, _cell]
)


def operands(kind: Kind, args: Any) -> tuple[Any, Any]:
    """Divides the arguments of an operation into operands and parameters."""
    count = 2 if kind is _cell else len(args)
    return args[:count], args[count:]


def is_aligning(kind: Kind, rows: Any) -> bool:
    """Whether an operation aligns all its tensors by broadcasting."""
    return kind in _ALIGNING or (kind is _projects and _has_matrices(rows))
