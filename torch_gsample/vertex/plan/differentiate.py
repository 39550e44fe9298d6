"""Differentiates a unit: the units of its gradients.

The adjoint of a value has its graph type. Where a value of a source goes into
one of an edge, the adjoint of the source is the sum over its out-edges; where
one of a destination does, it is the sum over its in-edges. So a gradient is a
vertex program again: a unit over destinations gives the gradients of
destinations and edges, and what the unit over sources needs of destinations.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from torch_gsample.codegen.expression import Expression, operand
from torch_gsample.codegen.reverse import Reverse
from torch_gsample.codegen.unit import (
    AGGREGATES,
    DESTINATION,
    PARAMETER,
    SOURCE,
    Leaf,
    Output,
    Types,
    Unit,
    ordered,
)
from torch_gsample.vertex.plan.factors import Factors

#: Of an element-wise operation: work that an edge may do again.
CHEAP = frozenset({'add', 'sub', 'mul', 'neg'})


@dataclass(frozen=True)
class Gradient:
    """What one operand's gradient is made of.

    Args:
        operand (int): The operand.
        unit (int): The unit that computes it: 0 over destinations, 1 over
            sources.
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


def differentiate(unit: Unit, wanted: Sequence[int]) -> Backward:
    """Returns the units of the gradients of some operands.

    Args:
        unit (Unit): A unit over destinations.
        wanted (Sequence[int]): The operands.

    Raises:
        NotImplementedError: If an operation has no derivative.
    """
    leaves = [*unit.leaves]
    for i, output in enumerate(unit.outputs):
        dtype = output.root.dtype
        leaves.append(Leaf(f'g{i}', DESTINATION, dtype, output.axes))
    types = Types(leaves)
    roots = [output.root for output in unit.outputs]
    seeds = [
        (root, operand(number, root.dtype), DESTINATION)
        for number, root in enumerate(roots, len(unit.leaves))
    ]
    finish = Factors(roots, types).first
    found = Reverse(types, unit.sizes).run(
        seeds, set(wanted), ordered(roots), finish
    )
    saved = _saved(roots, types)
    leaves = [*unit.leaves]
    places: dict[Expression, Expression] = {}
    for i, node in enumerate(saved):
        axes = tuple(sorted(types.axes(node)))
        leaves.append(Leaf(f'{node.op}{i}', DESTINATION, node.dtype, axes))
        places[node] = operand(len(leaves) - 1, node.dtype)
    for i, output in enumerate(unit.outputs):
        number = len(unit.leaves) + i
        given = operand(number, output.root.dtype)
        leaves.append(Leaf(f'grad{i}', DESTINATION, given.dtype, output.axes))
        # After all that is saved: numbers move.
        places[given] = operand(len(leaves) - 1, given.dtype)
    return _split(unit, found, leaves, places, saved)


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
    places: dict[Expression, Expression],
    saved: list[Expression],
) -> Backward:
    """Divides gradients between the units of destinations and sources."""
    outputs: tuple[list[Output], list[Output]] = ([], [])
    gradients = []
    for (number, kind), root in found.items():
        leaf = unit.leaves[number]
        root = _without_detach(_replaced(root, places.get))
        side = int(kind == SOURCE)
        gradients.append(
            Gradient(number, side, len(outputs[side]), leaf.kind == PARAMETER)
        )
        outputs[side].append(Output(root, kind, leaf.axes))
    given = len(outputs[0])
    types = Types(leaves)
    known: dict[Expression, Expression] = {}

    def of_destination(node: Expression) -> Expression | None:
        if types.kind(node) != DESTINATION or not node.args:
            return None
        if not node.dtype.is_floating_point:
            return None  # outputs have one dtype
        if _is_cheap(node, types):
            return None
        if node not in known:
            axes = tuple(sorted(types.axes(node)))
            number = len(leaves)
            leaves.append(Leaf(f'd{number}', DESTINATION, node.dtype, axes))
            known[node] = operand(number, node.dtype)
            outputs[0].append(Output(node, DESTINATION, axes))
        return known[node]

    outputs[1][:] = [
        replace(output, root=_replaced(output.root, of_destination))
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
