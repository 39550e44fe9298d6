"""Generated kernels in a file, as the units that define them.

A unit comes in and plain JSON values go out, and back. A file contains no
source code and no library: both are generated from the unit at loading, so a
file only defines what is computed.
"""

from typing import Any

import torch

from torch_gsample.codegen.expression import CPP_TYPES, Expression
from torch_gsample.codegen.operations import OPERATIONS
from torch_gsample.codegen.unit import (
    AGGREGATES,
    DESTINATION,
    EDGE,
    PARAMETER,
    POINTERS,
    SOURCE,
    Leaf,
    Output,
    Unit,
    ordered,
)

_DTYPES = {str(d).removeprefix('torch.'): d for d in CPP_TYPES}
_OPS = OPERATIONS.keys() | AGGREGATES.keys() | {'sum_axis'}
_KINDS = (SOURCE, DESTINATION, EDGE, PARAMETER, POINTERS)
#: Maximum number of values per row of a kernel, as its source grows with it.
_MAX_WIDTH = 1 << 16


def unit_to_json(unit: Unit) -> dict[str, Any]:
    """Returns a unit as plain values."""
    nodes = ordered(output.root for output in unit.outputs)
    index = {node: i for i, node in enumerate(nodes)}
    return {
        'center': unit.center,
        'leaves': [
            [x.kind, _name(x.dtype), list(x.axes), x.index, x.wraps]
            for x in unit.leaves
        ],
        'sizes': list(unit.sizes),
        'expressions': [
            [
                node.op,
                _name(node.dtype),
                [index[arg] for arg in node.args],
                _spell(node.value),
            ]
            for node in nodes
        ],
        'outputs': [
            [index[x.root], x.kind, list(x.axes)] for x in unit.outputs
        ],
        'by': unit.by,
    }


def unit_from_json(value: Any) -> Unit:
    """Returns the unit of plain values.

    Raises:
        KeyError, TypeError or ValueError: If they are not an edge map.
    """
    leaves = [
        Leaf(
            '',
            _one_of(kind, _KINDS),
            _DTYPES[dtype],
            _integers(axes, len(value['sizes'])),
            None if index is None else _below(index, len(value['leaves'])),
            bool(wraps),
        )
        for kind, dtype, axes, index, wraps in value['leaves']
    ]
    nodes: list[Expression] = []
    for op, dtype, args, number in value['expressions']:
        operands = tuple(nodes[_below(i, len(nodes))] for i in args)
        if op == 'operand':
            _below(number, len(leaves))
        elif op != 'constant':
            _one_of(op, _OPS)
        number = _read(number)
        nodes.append(Expression(op, _DTYPES[dtype], operands, number))
    outputs = tuple(
        Output(
            nodes[_below(root, len(nodes))],
            _one_of(kind, _KINDS),
            _integers(axes, len(value['sizes'])),
        )
        for root, kind, axes in value['outputs']
    )
    if value['center'] != EDGE or len(outputs) != 1:
        raise ValueError('a kernel must be an edge map of one output')
    sizes = _integers(value['sizes'], _MAX_WIDTH)
    by = value['by']
    by = None if by is None else _below(by, len(leaves))
    return Unit(EDGE, tuple(leaves), sizes, outputs, by=by)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix('torch.')


def _spell(number: Any) -> Any:
    """Returns a number as JSON, which has only finite numbers."""
    if isinstance(number, float) and not abs(number) < float('inf'):
        return {'float': str(number)}
    return number


def _read(number: Any) -> Any:
    if isinstance(number, dict):
        return float(_one_of(number['float'], ('inf', '-inf', 'nan')))
    if number is not None and not isinstance(number, (bool, int, float)):
        raise ValueError(f'a constant must be a number (got {number!r})')
    return number


def _one_of(value: Any, known: Any) -> Any:
    if not isinstance(value, str) or value not in known:
        raise ValueError(f'must be of {sorted(known)} (got {value!r})')
    return value


def _below(value: Any, count: int) -> int:
    if type(value) is not int or not 0 <= value < count:
        raise ValueError(f'must be below {count} (got {value!r})')
    return value


def _integers(values: Any, count: int) -> tuple[int, ...]:
    return tuple([_below(value, count) for value in values])
