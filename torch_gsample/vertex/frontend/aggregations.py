"""Aggregations of vertex programs without a Python builtin."""

from collections.abc import Iterable
from typing import Any

from torch_gsample.codegen.unit import EDGE, SOURCE
from torch_gsample.vertex.frontend.functions import root
from torch_gsample.vertex.frontend.kinds import OUT_EDGE, OUT_NEIGHBOR
from torch_gsample.vertex.frontend.loops import consumed
from torch_gsample.vertex.frontend.trace import Quantile
from torch_gsample.vertex.frontend.values import (
    Unsupported,
    Value,
)

_OF_EDGES = SOURCE, EDGE, OUT_NEIGHBOR, OUT_EDGE
INTERPOLATIONS = ('linear', 'lower', 'higher', 'midpoint', 'nearest')


def prod(values: Iterable[Any]) -> Any:
    """Multiplies over the edges of a vertex, inside vertex programs only.

    The result for a vertex without edges is 1.

    Args:
        values (Iterable): A comprehension over ``v.innbs`` or ``v.inedges``.

    Raises:
        RuntimeError: Outside a program.

    Example:
        >>> import torch
        >>> from torch_gsample.vertex import prod, vertex_program
        >>> @vertex_program
        ... def product(v):
        ...     return prod(u.x for u in v.innbs)
        >>> edge_index = torch.tensor([[0, 1, 1], [2, 2, 0]])
        >>> product(edge_index, x=torch.tensor([2.0, 3.0, 4.0]))
        tensor([3., 1., 6.])
    """
    x: Any = _of_edges('prod', values)
    return x.tracer.aggregate('prod', x)


def var(values: Iterable[Any]) -> Any:
    r"""Returns :math:`\frac{1}{n} \sum_i (x_i - \bar{x})^2` over the edges of
    a vertex, inside vertex programs only.

    A vertex without edges has 0.

    Args:
        values (Iterable): A comprehension over ``v.innbs`` or ``v.inedges``.

    Raises:
        RuntimeError: Outside a program.
    """
    return _variance('var', values)


def _variance(name: str, values: Iterable[Any]) -> Any:
    x: Any = _of_edges(name, values)
    rest = x - x.tracer.aggregate('mean', x)
    return x.tracer.aggregate('mean', rest * rest)


def std(values: Iterable[Any]) -> Any:
    """Returns the root of :func:`var`; where it is 0, its gradient is 0.

    Args:
        values (Iterable): A comprehension over ``v.innbs`` or ``v.inedges``.

    Raises:
        RuntimeError: Outside a program.
    """
    return root(_variance('std', values))


def median(values: Iterable[Any]) -> Any:
    """Returns the lower of the middle values over the edges of a vertex.

    As in ``torch.median``, it is not the mean of the two middle values of an
    even number.

    Args:
        values (Iterable): A comprehension over ``v.innbs`` or ``v.inedges``.

    Raises:
        RuntimeError: Outside a program.
    """
    return quantile(values, 0.5, 'lower')


def quantile(
    values: Iterable[Any], q: float, interpolation: str = 'linear'
) -> Any:
    """Returns a quantile over the edges of a vertex, feature by feature.

    Values of edges are sorted one tile of edges at a time and never stored for
    the whole graph. NaN is greater than all numbers. The result for a vertex
    without edges is 0. Inside vertex programs only.

    Args:
        values (Iterable): A comprehension over ``v.innbs`` or ``v.inedges``.
        q (float): In [0, 1].
        interpolation (str, optional): Between neighbouring values, as in
            ``torch.quantile``: ``'linear'``, ``'lower'``, ``'higher'``,
            ``'midpoint'`` or ``'nearest'``.

    Raises:
        RuntimeError: Outside a program.

    Example:
        >>> import torch
        >>> from torch_gsample.vertex import quantile, vertex_program
        >>> @vertex_program
        ... def quarter(v):
        ...     return quantile((u.x for u in v.innbs), 0.25)
        >>> edge_index = torch.tensor([[0, 1, 2], [0, 0, 0]])
        >>> quarter(edge_index, x=torch.tensor([1.0, 2.0, 4.0]))
        tensor([1.5000, 0.0000, 0.0000])
    """
    x: Any = _of_edges('quantile', values)
    if x.kind in (OUT_NEIGHBOR, OUT_EDGE):
        raise Unsupported(
            'quantile and median support in-edges only: reverse the '
            'edges in a separate program'
        )
    if not isinstance(q, (int, float)) or not 0 <= q <= 1:
        raise Unsupported(f"quantile: 'q' must be in [0, 1] (got {q})")
    if interpolation not in INTERPOLATIONS:
        raise Unsupported(
            f"quantile: 'interpolation' must be one of "
            f'{", ".join(INTERPOLATIONS)} (got {interpolation!r})'
        )
    return x.tracer.quantile(Quantile(x, float(q), interpolation))


def _of_edges(name: str, values: Any) -> Value:
    """Returns the symbol that stands for the values of all edges."""
    items = consumed(values) if isinstance(values, Iterable) else [values]
    found = [x for x in items if isinstance(x, Value)]
    if not found:
        raise RuntimeError(f'{name}: must be called in a vertex program')
    if len(items) > 1 or found[0].kind not in _OF_EDGES:
        raise Unsupported(
            f'{name} takes a comprehension whose elements depend on the edges '
            f'of a vertex, outside of by_type'
        )
    tracer: Any = found[0].tracer
    if tracer.group is not None:
        raise Unsupported(f'{name} must be outside of by_type')
    return found[0]
