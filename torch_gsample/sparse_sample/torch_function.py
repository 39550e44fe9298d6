"""PyTorch's functions on a ``SparseSample``, found by name.

Handlers call internal methods, never operators: while Dynamo traces, an
operator with a tensor operand is dispatched here instead of to ``__mul__``.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from torch_gsample.sparse_sample import reduce
from torch_gsample.sparse_sample.arithmetic import (
    aligned_values,
    apply,
    binary,
    matmul,
    rmatmul,
    with_value,
)
from torch_gsample.sparse_sample.parts import M, Parts
from torch_gsample.sparse_sample.random_values import bernoulli
from torch_gsample.torch_private.dynamo import name_reversed_product

#: Elementwise functions.
_UNARY = (
    'abs ceil clamp cos exp expm1 floor log log1p neg negative reciprocal '
    'round rsqrt sigmoid sign sin sqrt square tanh nan_to_num'
).split()
#: Functions of `torch.nn.functional`, some of which are also in `torch`.
_ACTIVATIONS = (
    'celu dropout elu gelu hardtanh leaky_relu logsigmoid mish relu selu silu '
    'softplus softsign'
).split()
_REDUCTIONS = ('sum', 'mean', 'prod')

Handler = Callable[..., Any]


def _unary(function: Handler) -> Handler:
    return lambda matrix, *args, **kwargs: apply(
        matrix, lambda value: function(value, *args, **kwargs)
    )


def _binary(name: str) -> Handler:
    function = getattr(torch, name)

    def handle(left: Any, right: Any, *, alpha: float = 1) -> Any:
        if alpha != 1:
            raise ValueError(f"{name}: 'alpha' is not supported (got {alpha})")
        if isinstance(left, Parts):
            return binary(left, name, function, right)
        return binary(right, name, function, left, swap=True)

    return handle


def _reversed(handler: Handler) -> Handler:
    """`__rdiv__(matrix, tensor)` is `tensor / matrix`."""
    return lambda left, right: handler(right, left)


def _matmul(left: Any, right: Any) -> Any:
    if isinstance(left, Parts):
        return matmul(left, right)
    return rmatmul(right, left)


def _reduction(name: str) -> Handler:
    function = getattr(reduce, name)
    return lambda matrix, dim=None, axis=None: function(matrix, dim, axis=axis)


def _softmax(
    matrix: M,
    dim: int | None = None,
    _stacklevel: int = 3,
    dtype: torch.dtype | None = None,
) -> M:
    if dim is None:
        raise ValueError("softmax: 'dim' must be given")
    if dtype is not None:
        matrix = matrix._of_value(matrix.values().to(dtype))
    return reduce.softmax(matrix, dim)


def _stack(matrices: Sequence[M], dim: int = -1) -> M:
    first, *others = matrices
    for matrix in matrices:
        if not isinstance(matrix, Parts):
            raise TypeError(
                'stack: all must be SparseSample (got '
                f'{type(matrix).__name__})'
            )
    if dim not in (-1, 1, 2):
        raise ValueError(
            'stack: matrices are stacked along a last dimension of their '
            f"values, 'dim=-1' (got {dim})"
        )
    values = [first.values()]
    if values[0].dim() > 1 and dim != -1:
        raise ValueError(
            "stack: matrices of features are stacked with 'dim=-1' (got "
            f'{dim})'
        )
    for other in others:
        values.append(aligned_values(first, 'stack', other))
    return with_value(first, torch.stack(values, -1))


def _handlers() -> dict[str, Handler]:
    out = {name: _unary(getattr(torch, name)) for name in _UNARY}
    for name in _ACTIVATIONS:
        out[name] = _unary(getattr(torch.nn.functional, name))
    out['log_sigmoid'] = out['logsigmoid']
    out |= {name: _reduction(name) for name in _REDUCTIONS}
    out |= {'amax': _reduction('max'), 'amin': _reduction('min')}
    for name, aliases in (
        ('add', ()),
        ('sub', ('subtract',)),
        ('mul', ('multiply',)),
        ('div', ('divide', 'true_divide', 'truediv')),
        ('pow', ()),
        ('lt', ('less',)),
        ('le', ('less_equal',)),
        ('gt', ('greater',)),
        ('ge', ('greater_equal',)),
        ('eq', ()),
        ('ne', ('not_equal',)),
    ):
        handler = _binary(name)
        for alias in (name, *aliases):
            out[alias] = out[f'__{alias}__'] = handler
            out[f'__r{alias}__'] = _reversed(handler)
    out['rsub'] = _reversed(out['sub'])
    out['matmul'] = out['mm'] = out['__matmul__'] = _matmul
    out['__rmatmul__'] = _reversed(_matmul)
    return out | {
        'bernoulli': bernoulli,
        'softmax': _softmax,
        'stack': _stack,
    }


#: Handlers by `func.__name__`.
HANDLERS = _handlers()
name_reversed_product()
