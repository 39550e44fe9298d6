"""Dropout in vertex programs: draws that no tensor stores."""

from typing import Any

import torch

from torch_gsample.codegen.draws import EDGE_ROW, VERTEX_ROW, kept
from torch_gsample.codegen.expression import apply, constant
from torch_gsample.codegen.unit import (
    DESTINATION,
    EDGE,
    SOURCE,
)
from torch_gsample.vertex.frontend.kinds import OUT_EDGE, OUT_NEIGHBOR
from torch_gsample.vertex.frontend.values import (
    RULES,
    Dims,
    Unsupported,
    Value,
    elementwise,
)

#: The owner of draws by the graph type of the input. A value of a source is
#: dropped at each of its edges.
_ROWS = {SOURCE: EDGE_ROW, EDGE: EDGE_ROW, DESTINATION: VERTEX_ROW}


def mask(
    tracer: Any, dims: Dims, row: str, share: float, dtype: torch.dtype
) -> Value:
    """Returns 1 where a draw keeps a feature, and 0 elsewhere.

    Args:
        tracer (Tracer): The tracer.
        dims (Tuple[Axis, ...]): The features.
        row (str): Whether edges or vertices draw.
        share (float): The probability of 1, in (0, 1).
        dtype (torch.dtype): The dtype of the result.
    """
    if tracer.group is not None:
        raise Unsupported('dropout must be outside of by_type')
    key, call = tracer.draw()
    axes = [tracer.axes.index(a) for a in dims if a is not None]
    draw = kept(key.expr, row, tuple(axes), call, share)
    one, zero = constant(1, dtype), constant(0, dtype)
    kind = EDGE if row == EDGE_ROW else DESTINATION
    return Value(tracer, apply('where', draw, one, zero), kind, dims)


def _dropout(
    x: Any, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Value:
    """Replaces ``torch.nn.functional.dropout``."""
    if not isinstance(p, (int, float)) or not 0 <= p <= 1:
        raise Unsupported(
            f'the probability of dropout must be in [0, 1] (got {p})'
        )
    if not isinstance(training, bool):
        raise Unsupported(
            f"'training' of dropout must be a bool (got {training})"
        )
    if not training or p < 2.0**-32:
        return x
    if p > 1 - 2.0**-32:
        return elementwise('mul', x, 0.0)
    kind = x.kind
    if kind in (OUT_NEIGHBOR, OUT_EDGE):
        raise Unsupported('dropout supports vertices and in-edges only')
    if kind not in _ROWS:
        raise Unsupported('dropout applies to values of vertices and edges')
    factor: Any = mask(x.tracer, x.dims, _ROWS[kind], 1 - p, x.dtype)
    return elementwise('mul', x, factor / (1 - p))


RULES['dropout'] = _dropout
