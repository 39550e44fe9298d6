"""Small sets of edges, and kernels of functions of them."""

import dataclasses

import torch
from torch.fx.node import map_arg

from tests.compiler.golden import program
from torch_gsample.codegen.kernel import EdgeKernel
from torch_gsample.compiler.passes.canonicalize import canonicalize
from torch_gsample.compiler.passes.fuse_edge_map import fuse_edge_map
from torch_gsample.compiler.passes.fuse_edge_map_reduce import (
    fuse_edge_map_reduce,
)


@dataclasses.dataclass
class Edges:
    """A matrix in compressed columns, and operands."""

    indptr: torch.Tensor
    num_cols: int
    row: torch.Tensor
    x: torch.Tensor  # of edges
    y: torch.Tensor
    r: torch.Tensor  # of rows
    c: torch.Tensor  # of columns
    s: torch.Tensor  # one
    xf: torch.Tensor  # of edges and features
    rf: torch.Tensor
    cf: torch.Tensor

    @property
    def inputs(self):
        return [getattr(self, f.name) for f in dataclasses.fields(self)]


ROWS, COLS = 5, 4
#: The degrees of columns.
SHAPES = {
    'empty': [0, 0, 0, 0],
    'isolated': [3, 0, 2, 4],
    'hub': [0, 3000, 1, 0],
}


def edges(shape='isolated', dtype=torch.float64, index=torch.int64):
    degree = torch.tensor(SHAPES[shape])
    count = int(degree.sum())
    generator = torch.Generator().manual_seed(count)

    def values(*sizes):
        return torch.rand(sizes, generator=generator, dtype=dtype) + 0.2

    indptr = torch.cat([torch.zeros(1, dtype=torch.int64), degree.cumsum(0)])
    row = torch.randint(ROWS, (count,), generator=generator)
    return Edges(
        indptr.to(index),
        COLS,
        row.to(index),
        values(count),
        values(count),
        values(ROWS),
        values(COLS),
        values()[()],
        values(count, 3),
        values(ROWS, 3),
        values(COLS, 3),
    )


def column(indptr, num_cols):
    """The column of each edge, as a matrix spells it."""
    return torch.repeat_interleave(torch.arange(num_cols), indptr.diff())


def fused(function, e):
    """The graph of a function of edges after both passes."""
    module = program(function, *e.inputs)
    fix_numbers(module.graph)
    return fuse(module)


def fuse(module):
    canonicalize(module.graph)
    fuse_edge_map(module.graph)
    fuse_edge_map_reduce(module.graph)
    module.recompile()
    return module


def fix_numbers(graph):
    """Spells numbers out: all else is of the graph, and may be joined."""

    def fixed(node):
        value = node.meta['example_value']
        return value if isinstance(value, int) else node

    for node in graph.nodes:
        node.args = map_arg(node.args, fixed)


def kernels(module):
    return [n for n in module.graph.nodes if isinstance(n.target, EdgeKernel)]


def only_kernel(function, e):
    """The one kernel that does all the work of a function."""
    module = fused(function, e)
    left = [
        n for n in module.graph.nodes if n.op not in ('placeholder', 'output')
    ]
    [node] = kernels(module)
    assert left == [node], module.graph
    return node.target, module
