"""Conditions as the numbers 0 and 1, as torch computes with bool tensors."""

from typing import Any

import torch

from torch_gsample.codegen.expression import apply, constant

#: Torch's operators on two conditions.
_OF_CONDITIONS = {
    **{'add': 'logical_or', 'maximum': 'logical_or'},
    **{'mul': 'logical_and', 'minimum': 'logical_and'},
}
_LOGICAL = frozenset(('logical_and', 'logical_or', 'logical_not', 'detach'))


def number(x: Any, dtype: torch.dtype) -> Any:
    """Converts a condition to 0 or 1; other values stay.

    Args:
        x (Value): The value.
        dtype (torch.dtype): The dtype of the numbers.
    """
    if x.dtype != torch.bool:
        return x
    zero, one = constant(0, dtype), constant(1, dtype)
    expr = apply('where', x.expr, one, zero)
    return type(x)(x.tracer, expr, x.kind, x.dims)


def promoted(op: str, values: list[Any]) -> tuple[str, list[Any]]:
    """Converts conditions to the numbers that torch computes with.

    Args:
        op (str): An operation on each element.
        values (List[Value]): Its operands.

    Returns:
        Tuple[str, List[Value]]: The operation and its operands.
    """
    first = 1 if op == 'where' else 0
    rest = values[first:]
    kept = [v.dtype for v in rest if v.dtype != torch.bool]
    if len(kept) == len(rest) or op in _LOGICAL:
        return op, values
    if not kept:
        if op in ('where', 'eq', 'ne'):
            return op, values
        if op in _OF_CONDITIONS:
            return _OF_CONDITIONS[op], values
    dtype = kept[0] if kept else values[0].tracer.dtype
    return op, values[:first] + [number(v, dtype) for v in rest]
