"""Numbering of the feature axes in a program."""

from collections.abc import Sequence

from torch_gsample.vertex.frontend.trace import Tracer
from torch_gsample.vertex.frontend.values import Axis, Unsupported, Value


def numbered(tracer: Tracer, results: Sequence[Value]) -> dict[Axis, int]:
    """Numbers axes so that those of each feature ascend.

    Args:
        tracer (Tracer): The recorded program.
        results (Sequence[Value]): Its results.

    Raises:
        Unsupported: If there is no such order.
    """
    before: dict[Axis, set[Axis]] = {a.root(): set() for a in tracer.axes}
    for dims in [
        *(item.dims for item in tracer.operands),
        *(value.dims for value in results),
    ]:
        known = [a.root() for a in dims if a is not None]
        for i, axis in enumerate(known):
            before[axis] |= set(known[:i])
    for dims in tracer.shapes:
        known = [a.root() for a in dims if a is not None]
        if len(set(known)) < len(known):
            raise Unsupported(
                'a dimension of features is combined with itself, as '
                'in x[:, None] * x[None, :]: pass both as separate '
                'features'
            )
    number: dict[Axis, int] = {}
    while len(number) < len(before):
        ready = [
            axis
            for axis, earlier in before.items()
            if axis not in number and earlier <= set(number)
        ]
        if not ready:
            raise Unsupported(
                'the dimensions of features are in different orders'
            )
        number[ready[0]] = len(number)
    return number


def sizes_of(number: dict[Axis, int]) -> tuple[int, ...]:
    """Returns the size of each axis.

    Args:
        number (Dict[Axis, int]): The numbers of axes.
    """
    return tuple(axis.size for axis in number)
