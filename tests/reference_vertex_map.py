"""The operators of vertex programs, in plain loops."""

import itertools

from tests.reference_edge_map import OPERATIONS
from torch_gsample.codegen.vertex_unit import AGGREGATES
from torch_gsample.vertex import Loops
from torch_gsample.vertex.relations import Level


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
        for v in range(vertices):
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


def vertex_unit(unit, graph, types, sizes, loops, level, operands):
    """Of edges in any order, and loops as they are."""
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
    """The pairs of a type and a vertex that has in-edges of it."""
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
    """Of edges in any order, and loops as they are."""
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
    """One by the in-edges that the destination has of the edge's type."""
    pairs = list(zip(graph[0][1], types, strict=True))
    return [1 / pairs.count(pair) if mean else 1.0 for pair in pairs]


def _places(unit, axes):
    """Every index of some axes."""
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
        row = 0
        if leaf.kind == self.unit.center:
            row = self.v
        elif leaf.kind == 'E':
            row = self.edge
        elif leaf.kind != 'P':
            row = self.graph[1][self.k]
        index = 0
        for axis in leaf.axes:
            index = index * self.unit.sizes[axis] + place[axis]
        return self.operands[number][row][index]
