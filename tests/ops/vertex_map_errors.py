"""Every message of vertex kernels, and a call that raises it."""

from dataclasses import replace

import torch

from torch_gsample import ops
from torch_gsample.codegen.build import build
from torch_gsample.codegen.cpp import cpp_source, flags_of
from torch_gsample.codegen.expression import apply, operand
from torch_gsample.codegen.kernel import layout_of
from torch_gsample.codegen.unit import Leaf, Output, Unit
from torch_gsample.vertex.kernels.fused_unit import fused
from torch_gsample.vertex.kernels.operator import training
from torch_gsample.vertex.kernels.relations import Level

GSAMPLE = torch.ops.gsample
FLOAT, INT = torch.float32, torch.int32
X, R, W = (operand(i, FLOAT) for i in range(3))
PRODUCT = apply('mul', X, apply('mul', R, W))
#: r[v] * sum(x[u] * w[e]) and x[u] * r[v] * w[e], of two features.
UNIT = Unit(
    'D',
    (
        Leaf('x', 'S', FLOAT, (0,)),
        Leaf('r', 'D', FLOAT),
        Leaf('w', 'E', FLOAT),
    ),
    (2,),
    (
        Output(apply('sum_in', PRODUCT), 'D', (0,)),
        Output(apply('max_in', PRODUCT), 'D', (0,)),
        Output(PRODUCT, 'E', (0,)),
    ),
    INT,
)
LAYOUT = layout_of(UNIT)
INDPTR = torch.tensor([0, 2, 2, 3], dtype=INT)
INDICES = torch.tensor([1, 0, 1], dtype=INT)
EDGES = torch.tensor([2, 0, 3], dtype=INT)
ORDER = torch.tensor([2, 0, 1], dtype=INT)
OPERANDS = [
    torch.tensor([[1.0, -2.0], [3.0, 4.0]]),
    torch.tensor([2.0, 1.0, -1.0]),
    torch.tensor([0.5, 1.0, 2.0, -1.0]),
]


def kernel(unit):
    with build(cpp_source(unit), flags_of(unit)) as file:
        return ops.kernels.load_kernel(file.fileno(), layout_of(unit))


KERNEL = kernel(UNIT)
#: It has results of edges, and no operand that says how many there are.
RESULTS_OF_EDGES = kernel(
    replace(
        UNIT,
        leaves=UNIT.leaves[:2],
        outputs=(Output(apply('mul', X, R), 'E', (0,)),),
    )
)


def run(
    indptr=INDPTR,
    indices=INDICES,
    edge_id=EDGES,
    order=ORDER,
    num_neighbors=2,
    num_edges=4,
    operands=OPERANDS,
    number=KERNEL,
):
    return GSAMPLE.run_kernel(
        *(number, list(operands), indptr, indices, edge_id, order),
        *(num_neighbors, num_edges),
    )


def load(*layout):
    return GSAMPLE.load_kernel(-1, list(layout))


def ints(*values):
    return torch.tensor(values, dtype=INT)


#: Edges that several threads check.
MANY = 1 << 14


def run_long(place, value):
    """Runs over a vertex with an index that it may not have."""
    indices = torch.zeros(MANY + 1, dtype=INT)
    indices[place] = value
    return run(
        *(ints(0, 0, 0, MANY + 1), indices, None),
        num_edges=MANY + 1,
        operands=[*OPERANDS[:2], torch.zeros(MANY + 1)],
    )


VERTEX_MAPS = {
    "load_kernel: 'layout' must have results of vertices, edges": lambda: load(
        1, -1, 0, 1, 0, 1
    ),
    "load_kernel: 'layout' must reduce by an index": lambda: load(
        1, 0, 1, 2, 3, 1, 0, 0, 1
    ),
    "run_kernel: 'indptr' must not be empty": lambda: run(ints()),
    "'indptr' and 'indices' must be those of the kernel's graph": lambda: run(
        None
    ),
    "'num_edges' must be 3 without ids of edges (got 4)": lambda: run(
        edge_id=None
    ),
    'run_kernel: operand 2 must have 4611686018428436480 values (got 4)': (
        lambda: run(num_edges=2**62 + 2**20)
    ),
    "run_kernel: 'num_edges' must be less than 1152921504606846975 (got 461": (
        lambda: run(
            num_edges=2**62 + 2**20,
            operands=OPERANDS[:2],
            number=RESULTS_OF_EDGES,
        )
    ),
    'run_kernel: an index is out of range': lambda: run(indices=ints(1, 0, 2)),
    'run_kernel: pointers must ascend from 0 to the number of edges': (
        lambda: run(ints(0, 2, 1, 3))
    ),
}

#: Further calls that must raise, not read what is not theirs.
HOSTILE_VERTICES = [
    lambda: run(indices=ints(1, -1, 0)),
    lambda: run(indices=ints(1, -(2**31), 0)),
    lambda: run(indices=ints(1, 2**31 - 1, 0)),
    lambda: run_long(MANY, -1),
    lambda: run_long(MANY, 2),
    lambda: run(edge_id=ints(0, 1, 4)),
    lambda: run(edge_id=ints(0, -1, 1)),
    lambda: run(order=ints(0, 1, 3)),
    lambda: run(order=ints(0, 1, -1)),
    lambda: run(order=ints(0, 1, 2, 0)),
    lambda: run(ints(-1, 0, 0, 3)),
    lambda: run(ints(0, 9, 9, 3)),
    lambda: run(INDPTR.long()),
    lambda: run(number=1 << 40),
]

VERTEX_MAP_ERRORS = [
    (
        ValueError,
        lambda: ops.kernels.run_kernel(
            *(KERNEL, OPERANDS, (INDPTR, INDICES, None, None)), 2, -1
        ),
        "'num_edges' must be at least 0 (got -1)",
    ),
]
#: Keeps the kernels of the ids in arguments alive.
UNITS = []


def vertex_unit_arguments(wanted):
    """A program, which wants gradients of two of its features or none."""
    edge_index = torch.tensor([[0, 1, 1, 0], [2, 2, 0, 0]])
    unit = replace(UNIT, outputs=UNIT.outputs[:1])
    made = training(unit, [0, 1]) if wanted else fused(unit)
    UNITS.append(made)
    x, r, w = OPERANDS
    given = [x.clone(), r.clone(), w]
    for tensor in given[:2]:
        tensor.requires_grad_(wanted)
    return made.number, [edge_index], None, [2, 3, 4, 0], 0, 0, given


def by_type_arguments(wanted, level):
    """Such a program over the edges of each type, or over the types."""
    number, graph, _, (sources, *_), _, _, given = vertex_unit_arguments(
        wanted
    )
    types, pairs = torch.tensor([1, 0, 1, 1]), 3
    x, r, w = given
    if level == Level.OUTER:
        x = torch.arange(6.0).view(3, 2).requires_grad_(wanted)
        w = w[:pairs]
    sizes = [sources, 3, 4, pairs]
    return number, graph, types, sizes, 0, int(level), [x, r, w]
