"""Differentiates a unit: the units of its gradients, and of its tangents.

The adjoint of a value has the value's graph type. If a value of a source is
used in one of an edge, the adjoint of the source is the sum over its
out-edges; for a destination, it is the sum over its in-edges. So a gradient is
again a vertex program: a unit over destinations computes the gradients of
destinations and edges, and the values of destinations that the unit over
sources needs. A unit over sources is differentiated in the same way with ends
exchanged, so gradients of any order exist.

Tangents need one unit over the same vertices.
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

#: Elementwise operations that an edge may recompute.
CHEAP = frozenset({'add', 'sub', 'mul', 'neg', 'detach'})


@dataclass(frozen=True)
class Gradient:
    """The parts of one operand's gradient.

    Args:
        operand (int): The operand.
        unit (int): The unit that computes it: 0 over the vertices of the
            differentiated unit, 1 over those at the other end.
        output (int): Index of its output.
        is_total (bool): Whether to sum the rows of the output, for the
            gradient of a parameter.
    """

    operand: int
    unit: int
    output: int
    is_total: bool


@dataclass(frozen=True)
class Backward:
    """The units of gradients.

    Operands of the first unit: the operands of the differentiated unit, its
    saved aggregates, and the gradients of its results. The second unit also
    reads the outputs of the first.

    Args:
        saved (Tuple[Expression, ...]): Saved aggregates of the unit.
        leaves (Tuple[Leaf, ...]): All operands of both units.
        outputs (Tuple): Outputs of each unit.
        given (int): Number of the first unit's outputs that are gradients;
            later ones are operands of the second unit.
        gradients (Tuple[Gradient, ...]): The gradients by operand.
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
        saved (Sequence[Expression], optional): Known values of the unit, if
            gradients will be differentiated again; then detached values stay
            detached.

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
        # After saved values, as indices shift.
        places[given] = operand(len(leaves) - 1, given.dtype)
    for key, root in found.items():
        root = _replaced(root, places.get)
        found[key] = root if again else _without_detach(root)
    return _split(unit, found, leaves, saved)


def tangents(
    unit: Unit, given: Sequence[int]
) -> tuple[list[Leaf], list[Output | None]]:
    """Returns the operands of a unit's tangents, and the tangents.

    Args:
        unit (Unit): A unit over destinations or sources.
        given (Sequence[int]): The operands with tangents, which are appended
            to the leaves of the unit.

    Returns:
        Tuple[List[Leaf], List[Output, optional]]: The leaves, and the tangent
        of each output; None if it is zero.

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
    """Returns the adjoint of a root, summed over an output's extra axes."""
    adjoint = operand(number, output.root.dtype)
    for axis in sorted({*output.axes} - types.axes(output.root), reverse=True):
        adjoint = Expression('sum_axis', adjoint.dtype, (adjoint,), axis)
    return adjoint


def _saved(roots: list[Expression], types: Types) -> list[Expression]:
    """Returns the results and aggregates of a unit.

    A gradient that reads a result stores none of the result's intermediate
    values.
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
    """Splits gradients between the units of both ends."""
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
            return None  # outputs share one dtype
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
    """Whether an edge recomputes a value faster than it reads it."""
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
    """Replaces parts of an expression, largest first."""
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
