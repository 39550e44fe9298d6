"""Text of programs and their units."""

from collections.abc import Iterable, Sequence

from torch_gsample.codegen.cpp import cpp_source, preamble
from torch_gsample.codegen.expression import ALONG, SIGNS, Expression
from torch_gsample.codegen.unit import (
    AGGREGATES,
    EDGE,
    Leaf,
    Types,
    Unit,
    ordered,
)
from torch_gsample.vertex.frontend.kinds import RELATION
from torch_gsample.vertex.frontend.trace import (
    Degree,
    Drawn,
    Given,
    Nested,
    Product,
    Quantile,
)
from torch_gsample.vertex.kernels.operator import training
from torch_gsample.vertex.plan.plan import Plan
from torch_gsample.vertex.plan.step import Computed

#: Operands that a program's text calls by name.
_PLAIN = Given, Degree, Drawn


def program_text(name: str, plan: Plan) -> str:
    """Returns the typed program and its fused units.

    A line ``%2 = %0 + %1: E[4]`` is a value of each edge with four features.

    Args:
        name (str): The name of the program.
        plan (Plan): Its steps.
    """
    given = [
        _typed(leaf.name, leaf, plan.sizes)
        for leaf, origin in zip(plan.leaves, plan.origins, strict=True)
        if isinstance(origin, Given)
    ]
    lines = [f'{name}({", ".join(given)})']
    for number, origin in enumerate(plan.origins):
        if not isinstance(origin, _PLAIN):
            text = _typed(f'x{number}', plan.leaves[number], plan.sizes)
            lines.append(f'{text} = {_origin(origin, plan)}')
    names = [
        leaf.name if isinstance(origin, _PLAIN) else f'x{number}'
        for number, (leaf, origin) in enumerate(
            zip(plan.leaves, plan.origins, strict=True)
        )
    ]
    lines += _expressions(plan.results, plan.types, plan.sizes, names)
    for number in sorted(plan.units):
        unit, kept = plan.units[number]
        lines.append(f'unit {number}, over destinations:')
        lines += _passes(unit, [names[i] for i in kept])
    return '\n'.join(lines) + '\n'


def explanation(name: str, plan: Plan) -> str:
    """Returns the program, its units, and the C++ source of each kernel.

    Args:
        name (str): The name of the program.
        plan (Plan): Its steps.
    """
    parts = [program_text(name, plan)]
    for number in sorted(plan.units):
        unit, _ = plan.units[number]
        parts.append(_source(f'unit {number}', unit))
        fused = training(unit, range(len(unit.leaves)))
        assert fused.backward is not None
        for side, (part, _) in zip(
            ('destinations', 'sources'), fused.backward.parts, strict=True
        ):
            if part is not None:
                title = f'gradients of unit {number}, over {side}'
                parts.append(_source(title, part.unit))
    return '\n'.join(parts)


def _source(title: str, unit: Unit) -> str:
    return cpp_source(unit, title).removeprefix(preamble(unit))


def _typed(name: str, leaf: Leaf, sizes: Sequence[int]) -> str:
    return f'{name}: {leaf.kind}{[sizes[axis] for axis in leaf.axes]}'


def _origin(origin: object, plan: Plan) -> str:
    if isinstance(origin, Computed):
        return f'{origin.root.op}, of an earlier unit'
    names = [leaf.name for leaf in plan.leaves]
    if isinstance(origin, Product):
        left = plan.resolved(origin.x.expr).text(names)
        right = origin.weight.expr.text(names)
        turned = '.T' if origin.transposed else ''
        return f'{left} @ {right}{turned}{"[type]" * origin.by_type}'
    if isinstance(origin, Quantile):
        body = plan.resolved(origin.x.expr).text(names)
        return f'quantile({body}, {origin.q:g}, {origin.interpolation})'
    assert isinstance(origin, Nested)
    body = plan.body(origin).text(names)
    of = 'types' if origin.body.kind == RELATION else 'the edges of a type'
    of = 'out-edges' if origin.out else of
    return f'{origin.op}({body}), of {of}'


def _expressions(
    roots: Iterable[Expression],
    types: Types,
    sizes: Sequence[int],
    names: Sequence[str],
) -> list[str]:
    known: dict[Expression, str] = {}
    lines: list[str] = []
    roots = list(roots)
    for node in ordered(roots):
        if node.op == 'operand':
            known[node] = names[int(node.value or 0)]
        elif node.op == 'constant':
            known[node] = repr(node.value)
        else:
            known[node] = f'%{len(lines)}'
            args = [known[arg] for arg in node.args]
            text = f'{node.op}({", ".join(args)})'
            if node.op in SIGNS:
                text = f'{args[0]} {SIGNS[node.op]} {args[1]}'
            if node.op in ALONG:
                size = sizes[int(node.value or 0)]
                text = f'{node.op}({args[0]}, {size})'
            shape = [sizes[axis] for axis in sorted(types.axes(node))]
            kind = types.kind(node)
            lines.append(f'{known[node]} = {text}: {kind}{shape}')
    return [*lines, f'return {", ".join(known[root] for root in roots)}']


def _passes(unit: Unit, names: Sequence[str]) -> list[str]:
    """Describes each pass over the edges of a vertex."""
    types = Types(unit.leaves)
    roots = [output.root for output in unit.outputs]
    nodes = ordered(roots)
    lines = []
    for level in range(max(types.level(root) for root in roots)):
        sums = [
            node
            for node in nodes
            if node.op in AGGREGATES and types.level(node.args[0]) == level
        ]
        steps: list[str] = []
        for node in ordered(n.args[0] for n in sums):
            if types.kind(node) == EDGE and types.level(node) <= level:
                steps += [
                    f'{kind}-E {node.op}'
                    for kind in sorted({types.kind(a) for a in node.args})
                    if kind != 'P'
                ][:2]
        steps += [f'E-A {node.op}' for node in sums]
        lines.append(f'  pass {level}: {", ".join(steps)}')
    return lines
