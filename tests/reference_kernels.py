"""References of generated kernels and vertex programs: plain loops."""

import itertools
import math

from torch_gsample.codegen.edge_map import body_of, reduction_of
from torch_gsample.codegen.unit import AGGREGATES
from torch_gsample.vertex import Loops
from torch_gsample.vertex.kernels.relations import Level


def _divide(a, b):
    return a / b if b else math.nan


OPERATIONS = {
    'add': lambda a, b: a + b,
    'sub': lambda a, b: a - b,
    'mul': lambda a, b: a * b,
    'div': _divide,
    'eq': lambda a, b: a == b,
    'ne': lambda a, b: a != b,
    'lt': lambda a, b: a < b,
    'le': lambda a, b: a <= b,
    'gt': lambda a, b: a > b,
    'ge': lambda a, b: a >= b,
    'logical_and': lambda a, b: a and b,
    'logical_or': lambda a, b: a or b,
    'logical_not': lambda a: not a,
    'neg': lambda a: -a,
    'abs': abs,
    'sign': lambda a: (a > 0) - (a < 0),
    'sqrt': math.sqrt,
    'reciprocal': lambda a: _divide(1, a),
    'pow': lambda a, b: a**b,
    'exp': math.exp,
    'log': math.log,
    'sigmoid': lambda a: 1 / (1 + math.exp(-a)),
    'tanh': math.tanh,
    'relu': lambda a: max(a, 0),
    'erf': math.erf,
    'sin': math.sin,
    'cos': math.cos,
    'log1p': math.log1p,
    'expm1': math.expm1,
    'round': round,
    'floor': math.floor,
    'ceil': math.ceil,
    'clamp_min': max,
    'clamp_max': min,
    'maximum': max,
    'minimum': min,
    'where': lambda c, a, b: a if c else b,
    'detach': lambda a: a,
    'cast': lambda a: a,
}
REDUCTIONS = {
    'sum_in': sum,
    'sum_out': sum,
    'prod_in': math.prod,
    'max_in': max,
    'min_in': min,
}


def edge_map(unit, operands, num_rows=0):
    """The value of each edge, column or row; operands are lists."""
    given = [
        [x if isinstance(x, list) else [x] for x in _rows(values)]
        for values in operands
    ]
    places = _columns(unit, operands)
    [output], root, total = unit.outputs, body_of(unit), reduction_of(unit)
    axes = list(_places(unit, output.axes))
    values = [
        [
            _At(unit, given, None, None, None, col, e).value(root, dict(place))
            for place in axes
        ]
        for e, col in enumerate(places)
    ]
    if total is not None:
        size = num_rows
        if unit.by is None:
            size = len(operands[unit.pointers]) - 1
        belongs = places if unit.by is None else operands[unit.by]
        groups = [[] for _ in range(size)]
        for place, value in zip(belongs, values, strict=True):
            groups[place].append(value)
        reduce, fill = REDUCTIONS[total.op], total.value
        values = [
            [reduce(x) for x in zip(*group, strict=True)] or [fill] * len(axes)
            for group in groups
        ]
    return values if output.axes else [value for [value] in values]


def _rows(values):
    return values if isinstance(values, list) else [values]


def _columns(unit, operands):
    """The column of each edge, or 0 if columns do not matter."""
    if unit.pointers is not None:
        indptr = operands[unit.pointers]
        return [
            col
            for col in range(len(indptr) - 1)
            for _ in range(indptr[col], indptr[col + 1])
        ]
    [count] = {
        len(values)
        for leaf, values in zip(unit.leaves, operands, strict=True)
        if leaf.kind == 'E' and leaf.index is None
    }
    return [0] * count


def vertex_map(
    kernel,
    indptr,
    indices,
    edge_id,
    order,
    num_neighbors,
    num_edges,
    operands,
    num_threads=0,
):
    """Each output as rows of values; ``kernel`` is the unit."""
    vertices = len(indptr) - 1
    outputs = []
    for output in kernel.outputs:
        count = num_edges if output.kind == 'E' else vertices
        rows = [[0.0] * kernel.width(output.axes) for _ in range(count)]
        for v in range(vertices) if order is None else order:
            edges = range(indptr[v], indptr[v + 1])
            for k in edges if output.kind == 'E' else [None]:
                at = _At(kernel, operands, indptr, indices, edge_id, v, k)
                e = v if k is None else at.edge
                rows[e] = [
                    at.value(output.root, dict(place))
                    for place in _places(kernel, output.axes)
                ]
        outputs.append(rows)
    return outputs


def run_kernel(
    kernel,
    operands,
    indptr=None,
    indices=None,
    edge_id=None,
    order=None,
    num_rows=0,
    num_edges=0,
    num_threads=0,
):
    """Here a kernel is an edge program, or a unit."""
    if indptr is None:
        return [edge_map(kernel, operands, num_rows)]
    graph = indptr, indices, edge_id, order
    return vertex_map(kernel, *graph, num_rows, num_edges, operands)


def vertex_unit(unit, graph, types, sizes, loops, level, operands):
    """Edges in any order, with self-loops unchanged."""
    assert loops == Loops.KEEP
    num_sources, num_destinations, num_edges, num_pairs = sizes
    row, col = graph[0]
    if level != Level.EDGES:
        type_, vertex = vertex_relations(
            graph, types, num_sources, num_destinations, loops
        )
        pairs = list(zip(type_, vertex, strict=True))
    if level == Level.INNER:
        col = [pairs.index(pair) for pair in zip(types, col, strict=True)]
        num_destinations = num_pairs
    if level == Level.OUTER:
        row, col = range(num_pairs), vertex
        num_sources = num_edges = num_pairs
    edge_id = sorted(range(len(row)), key=lambda e: col[e])
    degree = [sum(c < v for c in col) for v in range(num_destinations + 1)]
    indices = [row[e] for e in edge_id]
    return vertex_map(
        *(unit, degree, indices, edge_id, None, num_sources, num_edges),
        operands,
    )


def vertex_relations(graph, types, num_sources, num_destinations, loops):
    """The pairs of a type and a vertex with in-edges of the type."""
    assert loops == Loops.KEEP
    pairs = sorted(set(zip(types, graph[0][1], strict=True)))
    return [t for t, _ in pairs], [v for _, v in pairs]


def product_by_type(x, weight, type):
    return [
        [
            sum(a * b for a, b in zip(row, column, strict=True))
            for column in zip(*weight[t], strict=True)
        ]
        for row, t in zip(x, type, strict=True)
    ]


def sum_outer_by_type(x, y, type, num_types):
    out = [
        [[0.0 for _ in range(len(y[0]))] for _ in range(len(x[0]))]
        for _ in range(num_types)
    ]
    for left, right, t in zip(x, y, type, strict=True):
        for i, a in enumerate(left):
            for j, b in enumerate(right):
                out[t][i][j] += a * b
    return out


def project_edges(graph, types, sizes, loops, mean, reverse, x, weight):
    """Edges in any order, with self-loops unchanged."""
    assert loops == Loops.KEEP
    row, col = graph[0][::-1] if reverse else graph[0]
    out = [[0.0] * len(weight[0][0]) for _ in range(sizes[not reverse])]
    factors = _factors(graph, types, mean)
    for u, v, t, factor in zip(row, col, types, factors, strict=True):
        for i, a in enumerate(x[u]):
            for j, b in enumerate(weight[t][i]):
                out[v][j] += factor * a * b
    return out


def sum_outer_edges(graph, types, sizes, loops, mean, x, y, num_types):
    assert loops == Loops.KEEP
    row, col = graph[0]
    factors = _factors(graph, types, mean)
    left = [
        [factor * a for a in x[u]]
        for u, factor in zip(row, factors, strict=True)
    ]
    right = [y[v] for v in col]
    return sum_outer_by_type(left, right, types, num_types)


def _factors(graph, types, mean):
    """1 over the destination's number of in-edges of the edge's type."""
    pairs = list(zip(graph[0][1], types, strict=True))
    return [1 / pairs.count(pair) if mean else 1.0 for pair in pairs]


def _places(unit, axes):
    """Every index along the axes."""
    ranges = [range(unit.sizes[axis]) for axis in axes]
    for index in itertools.product(*ranges):
        yield list(zip(axes, index, strict=True))


class _At:
    """A vertex, and one of its edges."""

    def __init__(self, unit, operands, indptr, indices, edge_id, v, k):
        self.unit, self.operands = unit, operands
        self.graph = indptr, indices, edge_id
        self.v, self.k = v, k
        if k is not None:
            self.edge = k if edge_id is None else edge_id[k]

    def value(self, node, place):
        if node.op == 'constant':
            return node.value
        if node.op == 'operand':
            return self.operand(node.value, place)
        if node.op == 'sum_axis':
            sizes = range(self.unit.sizes[node.value])
            return sum(
                self.value(node.args[0], {**place, node.value: i})
                for i in sizes
            )
        if node.op in AGGREGATES:
            return self.aggregate(node, place)
        return OPERATIONS[node.op](*(self.value(x, place) for x in node.args))

    def aggregate(self, node, place):
        indptr = self.graph[0]
        values = [
            _At(self.unit, self.operands, *self.graph, self.v, k).value(
                node.args[0], place
            )
            for k in range(indptr[self.v], indptr[self.v + 1])
        ]
        if node.op.startswith('sum'):
            return sum(values)
        function = max if node.op == 'max_in' else min
        return function(values, default=0.0)

    def operand(self, number, place):
        leaf = self.unit.leaves[number]
        row, center = 0, self.unit.center
        if leaf.index is not None:
            row = self.operands[leaf.index][self.edge][0]
        elif leaf.kind == 'E':
            row = self.edge
        elif leaf.kind == ('D' if center == 'E' else center):
            row = self.v
        elif leaf.kind != 'P':
            row = self.graph[1][self.k]
        index = 0
        for axis in leaf.axes:
            index = index * self.unit.sizes[axis] + place[axis]
        return self.operands[number][row][index]
