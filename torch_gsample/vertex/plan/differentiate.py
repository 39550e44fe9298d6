"""Differentiates a unit: the units of its gradients, and of its tangents.

The adjoint of a value has its graph type. Where a value of a source goes into
one of an edge, the adjoint of the source is the sum over its out-edges; where
one of a destination does, it is the sum over its in-edges. So a gradient is a
vertex program again: a unit over destinations gives the gradients of
destinations and edges, and what the unit over sources needs of destinations.
A unit over sources is differentiated in the same way, its ends exchanged: so
a unit of gradients has gradients, and so on.

Tangents need one unit, over the same vertices.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from torch_gsample.codegen.expression import Expression, operand
from torch_gsample.codegen.forward import Forward
from torch_gsample.codegen.reverse import Reverse
from torch_gsample.codegen.unit import (
    AGGREGATES,
    EDGE,
    PARAMETER,
    Leaf,
    Output,
    Types,
    Unit,
    ordered,
)
from torch_gsample.vertex.plan.factors import Factors

#: Of an element-wise operation: work that an edge may do again.
CHEAP = frozenset({'add', 'sub', 'mul', 'neg', 'detach'})


@dataclass(frozen=True)
class Gradient:
    """What one operand's gradient is made of.

    Args:
        operand (int): The operand.
        unit (int): The unit that computes it: 0 over the vertices of the
            unit that is differentiated, 1 over those at the other end.
        output (int): Which of its outputs it is.
        is_total (bool): Whether the rows of the output are added up: the
            gradient of a parameter.
    """

    operand: int
    unit: int
    output: int
    is_total: bool


@dataclass(frozen=True)
class Backward:
    """The units of gradients.

    Operands of the first: the operands of the unit, its saved aggregates, the
    gradients of its results. The second has the outputs of the first, too.

    Args:
        saved (Tuple[Expression, ...]): Aggregates of the unit that are read.
        leaves (Tuple[Leaf, ...]): All that the two can read.
        outputs (Tuple): Of each unit.
        given (int): Outputs of the first unit that are gradients; those
            behind them are operands of the second.
        gradients (Tuple[Gradient, ...]): How the gradients are put together.
    """

    saved: tuple[Expression, ...]
    leaves: tuple[Leaf, ...]
    outputs: tuple[tuple[Output, ...], tuple[Output, ...]]
    given: int
    gradients: tuple[Gradient, ...]


def differentiate(
    unit: Unit,
    wanted: Sequence[int],
    saved: Sequence[Expression] | None = None,
) -> Backward:
    """Returns the units of the gradients of some operands.

    Args:
        unit (Unit): A unit over destinations or sources.
        wanted (Sequence[int]): The operands.
        saved (Sequence[Expression], optional): The values of the unit that
            are known, if gradients are to be differentiated again: they keep
            what is detached.

    Raises:
        NotImplementedError: If an operation has no derivative.
    """
    leaves = [*unit.leaves]
    for i, output in enumerate(unit.outputs):
        dtype = output.root.dtype
        leaves.append(Leaf(f'g{i}', output.kind, dtype, output.axes))
    types = Types(leaves)
    roots = [output.root for output in unit.outputs]
    seeds = [
        (output.root, _seed(number, output, types), output.kind)
        for number, output in enumerate(unit.outputs, len(unit.leaves))
    ]
    finish = Factors(roots, types).first
    found = Reverse(types, unit.sizes, unit.center).run(
        seeds, set(wanted), ordered(roots), finish
    )
    again = saved is not None
    saved = _saved(roots, types) if saved is None else list(saved)
    leaves = [*unit.leaves]
    places: dict[Expression, Expression] = {}
    for i, node in enumerate(saved):
        axes = tuple(sorted(types.axes(node)))
        kind = types.kind(node)
        leaves.append(Leaf(f'{node.op}{i}', kind, node.dtype, axes))
        places[node] = operand(len(leaves) - 1, node.dtype)
    for i, output in enumerate(unit.outputs):
        number = len(unit.leaves) + i
        given = operand(number, output.root.dtype)
        leaves.append(Leaf(f'grad{i}', output.kind, given.dtype, output.axes))
        # After all that is saved: numbers move.
        places[given] = operand(len(leaves) - 1, given.dtype)
    for key, root in found.items():
        root = _replaced(root, places.get)
        found[key] = root if again else _without_detach(root)
    return _split(unit, found, leaves, saved)


def tangents(
    unit: Unit, given: Sequence[int]
) -> tuple[list[Leaf], list[Output | None]]:
    """Returns what the tangents of a unit read, and what they are.

    Args:
        unit (Unit): A unit over destinations or sources.
        given (Sequence[int]): The operands that have tangents: these are
            leaves behind those of the unit.

    Returns:
        Tuple[List[Leaf], List[Output, optional]]: The leaves, and the tangent
        of each output; none where it is zero.

    Raises:
        NotImplementedError: If an operation has no derivative.
    """
    leaves = [*unit.leaves]
    known = {}
    for number in given:
        leaf = unit.leaves[number]
        known[number] = operand(len(leaves), leaf.dtype)
        leaves.append(replace(leaf, name=f't{number}'))
    roots = [output.root for output in unit.outputs]
    found = Forward(Types(leaves), unit.sizes).run(roots, known)
    outputs = [
        None if root is None else replace(output, root=root)
        for root, output in zip(found, unit.outputs, strict=True)
    ]
    return leaves, outputs


def _seed(number: int, output: Output, types: Types) -> Expression:
    """Returns the adjoint of a root, which an output may repeat."""
    adjoint = operand(number, output.root.dtype)
    for axis in sorted({*output.axes} - types.axes(output.root), reverse=True):
        adjoint = Expression('sum_axis', adjoint.dtype, (adjoint,), axis)
    return adjoint


def _saved(roots: list[Expression], types: Types) -> list[Expression]:
    """Returns the results and aggregates of a unit.

    A gradient that reads a result takes no memory of its own for what the
    result was made of.
    """
    results = [root for root in roots if types.level(root) > 0]
    nodes = [node for node in ordered(roots) if node.op in AGGREGATES]
    return list(dict.fromkeys([*results, *nodes]))


def _split(
    unit: Unit,
    found: dict[tuple[int, str], Expression],
    leaves: list[Leaf],
    saved: Sequence[Expression],
) -> Backward:
    """Divides gradients between the units of both ends."""
    outputs: tuple[list[Output], list[Output]] = ([], [])
    gradients = []
    for (number, kind), root in found.items():
        leaf = unit.leaves[number]
        side = int(kind not in (unit.center, EDGE))
        gradients.append(
            Gradient(number, side, len(outputs[side]), leaf.kind == PARAMETER)
        )
        outputs[side].append(Output(root, kind, leaf.axes))
    given = len(outputs[0])
    types = Types(leaves)
    known: dict[Expression, Expression] = {}

    def of_center(node: Expression) -> Expression | None:
        if types.kind(node) != unit.center or not node.args:
            return None
        if not node.dtype.is_floating_point:
            return None  # outputs have one dtype
        if _is_cheap(node, types):
            return None
        if node not in known:
            axes = tuple(sorted(types.axes(node)))
            number = len(leaves)
            leaves.append(Leaf(f'd{number}', unit.center, node.dtype, axes))
            known[node] = operand(number, node.dtype)
            outputs[0].append(Output(node, unit.center, axes))
        return known[node]

    outputs[1][:] = [
        replace(output, root=_replaced(output.root, of_center))
        for output in outputs[1]
    ]
    return Backward(
        tuple(saved),
        tuple(leaves),
        (tuple(outputs[0]), tuple(outputs[1])),
        given,
        tuple(gradients),
    )


def _without_detach(root: Expression) -> Expression:
    done: dict[Expression, Expression] = {}
    for node in ordered([root]):
        args = tuple(done[arg] for arg in node.args)
        is_detach = node.op == 'detach'
        done[node] = args[0] if is_detach else replace(node, args=args)
    return done[root]


def _is_cheap(root: Expression, types: Types) -> bool:
    """Whether an edge computes a value sooner than it reads it."""
    nodes = ordered([root])
    most = len(types.axes(root))
    wide = [
        n for n in nodes if n.op == 'operand' and len(types.axes(n)) == most
    ]
    return (
        len(nodes) <= 3
        and len(wide) <= 1
        and all(node.op in CHEAP or not node.args for node in nodes)
    )


def _replaced(
    root: Expression, leaf: Callable[[Expression], Expression | None]
) -> Expression:
    """Replaces parts of an expression, the largest first."""
    done: dict[Expression, Expression] = {}

    def visit(node: Expression) -> Expression:
        if node not in done:
            new = leaf(node)
            if new is None:
                args = tuple(visit(arg) for arg in node.args)
                new = replace(node, args=args)
            done[node] = new
        return done[node]

    return visit(root)
