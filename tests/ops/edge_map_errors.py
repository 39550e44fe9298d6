"""Every message of generated kernels, and a call that raises it."""

import torch

from torch_gsample import ops
from torch_gsample.codegen import unit
from torch_gsample.codegen.edge_map import edge_map
from torch_gsample.codegen.expression import apply, operand
from torch_gsample.codegen.kernel import EdgeKernel
from torch_gsample.codegen.unit import Leaf

GSAMPLE = torch.ops.gsample
FLOAT, INT = torch.float32, torch.int64
EDGE, INDEX = Leaf('', unit.EDGE, FLOAT), Leaf('', unit.EDGE, INT)
X = torch.ones(3)
INDPTR, ROW = torch.tensor([0, 2, 3, 3]), torch.tensor([1, 2, 2])

#: x[e] * r[row[e]] / c[col], and sums of x[e] by row.
PRODUCT = EdgeKernel(
    edge_map(
        apply(
            'div',
            apply('mul', operand(0, FLOAT), operand(1, FLOAT)),
            operand(3, FLOAT),
        ),
        (
            *(EDGE, Leaf('', unit.EDGE, FLOAT, index=2), INDEX),
            Leaf('', unit.DESTINATION, FLOAT),
            Leaf('', unit.POINTERS, INT),
        ),
    )
)
ROWS = EdgeKernel(edge_map(operand(0, FLOAT), (EDGE, INDEX), 'sum', by=1))
ONE = Leaf('', unit.PARAMETER, FLOAT)
SCALAR = EdgeKernel(edge_map(operand(0, FLOAT), (ONE,)))


def run(kernel, operands, num_rows=0):
    return GSAMPLE.run_kernel(
        kernel.loaded.number, operands, num_rows=num_rows
    )


def product(x=X, r=X, row=ROW, c=X, indptr=INDPTR):
    return run(PRODUCT, [x, r, row, c, indptr])


def rows(x=X, row=ROW, num_rows=3):
    return run(ROWS, [x, row], num_rows)


def load(*layout):
    return GSAMPLE.load_kernel(-1, list(layout))


#: Operands of each edge: float32, and int64.
REAL, WHOLE = (2, 0, 1), (2, 3, 1)

EDGE_MAPS = {
    "load_kernel: 'layout' must have 3 numbers and 3 for each operand and "
    'result': lambda: load(1),
    "load_kernel: 'layout' has no graph 3": lambda: load(3, -1, 0),
    "'layout' has 0 operands and results (got 1 operands)": lambda: load(
        0, -1, 1
    ),
    "load_kernel: 'layout' has no rows 6": lambda: load(0, -1, 1, 6, 0, 1),
    "load_kernel: 'layout' has no type 7": lambda: load(0, -1, 1, 2, 7, 1),
    "load_kernel: 'layout' must have widths in [1, 65536]": lambda: load(
        0, -1, 1, 2, 0, 0
    ),
    "'layout' must reduce by an index": lambda: load(0, 0, 1, *REAL, 4, 0, 1),
    "'layout' must have integer pointers": lambda: load(
        0, -1, 1, 5, 0, 1, *REAL
    ),
    "'layout' must have one result without a graph": lambda: load(
        0, -1, 1, *REAL
    ),
    "'layout' must have results of vertices, edges, or the rows of an index": (
        lambda: load(0, -1, 1, *REAL, 0, 0, 1)
    ),
    "'descriptor' must be open on the library of a kernel (got -1)": lambda: (
        load(0, -1, 1, *REAL, *REAL)
    ),
    "'kernel' must be loaded (got -1)": lambda: GSAMPLE.run_kernel(-1, [X]),
    "'operands' must have 2 tensors (got 1)": lambda: run(ROWS, [X]),
    "'indptr' and 'indices' must be those of the kernel's graph, if it has": (
        lambda: GSAMPLE.run_kernel(ROWS.loaded.number, [X, ROW], INDPTR, ROW)
    ),
    "pointers must be on the CPU, of the kernel's dtype and not empty": (
        lambda: product(indptr=INDPTR[:0])
    ),
    "operand 0 must be on the CPU and of the kernel's dtype": lambda: rows(
        X.double()
    ),
    'operand 3 must have 3 values (got 2)': lambda: product(c=X[:2]),
    'operand 1 must have 3 values (got 2)': lambda: rows(row=ROW[:2]),
    "'operands' must determine the number of edges": lambda: run(
        SCALAR, [X[:1]]
    ),
    "'num_rows' and 'num_edges' must not be negative": lambda: rows(
        num_rows=-1
    ),
    "run_kernel: 'num_rows' must be less than 2305843009213693951 (got 461": (
        lambda: rows(num_rows=2**62 + 2**20)
    ),
    'run_kernel: an index is out of range': lambda: rows(num_rows=2),
    'pointers must ascend from 0 to the number of edges': lambda: product(
        indptr=torch.tensor([0, 3, 2, 3])
    ),
}

#: Further calls that must raise, not read what is not theirs.
HOSTILE = [
    lambda: rows(row=torch.tensor([0, 1, -1])),
    lambda: product(row=torch.tensor([0, 3, 0])),
    lambda: product(row=torch.tensor([0, -1, 0])),
    lambda: product(row=torch.tensor([0, 1 << 62, 0])),
    lambda: product(indptr=torch.tensor([1, 2, 3, 3])),
    lambda: product(indptr=torch.tensor([0, -1, 3, 3])),
    lambda: product(indptr=torch.tensor([0, 9, 9, 3])),
    lambda: product(indptr=torch.tensor([0, 1, 1, 4])),
    lambda: product(x=X[:2]),
    lambda: product(r=X[:1]),
    lambda: GSAMPLE.run_kernel(1 << 40, [X]),
]

EDGE_MAP_ERRORS = [
    (
        ValueError,
        lambda: ops.kernels.run_kernel(-1, [X]),
        "'kernel' must be loaded in this process (got -1)",
    ),
    (
        ValueError,
        lambda: ops.kernels.run_kernel(ROWS.loaded.number, [X, ROW], (), -1),
        "'num_rows' must be at least 0 (got -1)",
    ),
]
