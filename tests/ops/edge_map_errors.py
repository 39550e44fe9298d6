"""Every message of generated kernels, and a call that raises it."""

import torch

from torch_gsample import ops
from torch_gsample.codegen.expression import apply, operand
from torch_gsample.codegen.kernel import EdgeKernel
from torch_gsample.codegen.program import Operand, Program, Role

GSAMPLE = torch.ops.gsample
FLOAT, INT = torch.float32, torch.int64
EDGE, INDEX = Operand(Role.EDGE, FLOAT), Operand(Role.INDEX, INT)
X = torch.ones(3)
INDPTR, ROW = torch.tensor([0, 2, 3, 3]), torch.tensor([1, 2, 2])

#: x[e] * r[row[e]] / c[col], and sums of x[e] by row.
PRODUCT = EdgeKernel(
    Program(
        apply(
            'div',
            apply('mul', operand(0, FLOAT), operand(1, FLOAT)),
            operand(3, FLOAT),
        ),
        (
            *(EDGE, Operand(Role.GATHER, FLOAT, 2), INDEX),
            Operand(Role.COLUMN, FLOAT),
            Operand(Role.POINTERS, INT),
        ),
    )
)
ROWS = EdgeKernel(Program(operand(0, FLOAT), (EDGE, INDEX), 'sum', by=1))
SCALAR = EdgeKernel(Program(operand(0, FLOAT), (Operand(Role.SCALAR, FLOAT),)))


def product(x=X, r=X, row=ROW, c=X, indptr=INDPTR):
    return GSAMPLE.edge_map(PRODUCT.number, [x, r, row, c, indptr])


def rows(x=X, row=ROW, num_rows=3):
    return GSAMPLE.edge_map(ROWS.number, [x, row], num_rows)


def load(*layout):
    return GSAMPLE.load_edge_kernel(-1, list(layout))


EDGE_MAPS = {
    "'layout' must have 4 numbers and 3 for each operand": lambda: load(1),
    "'layout' has no type 5": lambda: load(5, 1, 0, -1),
    "'layout' must have widths in [1, 1024]": lambda: load(0, 0, 0, -1),
    "'layout' has no role 6": lambda: load(0, 1, 0, -1, 6, 0, 1),
    "'layout' must reduce by an index": lambda: load(0, 1, 1, 0, 0, 0, 1),
    "'layout' must have pointers to reduce by": lambda: load(0, 1, 1, -1),
    "'descriptor' must be open on the library of a kernel (got -1)": lambda: (
        load(0, 1, 0, -1)
    ),
    "'kernel' must be loaded (got -1)": lambda: GSAMPLE.edge_map(-1, [X]),
    "'operands' must have 2 tensors (got 1)": lambda: GSAMPLE.edge_map(
        ROWS.number, [X]
    ),
    "operand 0 must be on the CPU and of the kernel's dtype": lambda: rows(
        X.double()
    ),
    'operand 4 must not be empty': lambda: product(indptr=INDPTR[:0]),
    'operand 3 must have 3 rows, one for each column (got 2)': lambda: product(
        c=X[:2]
    ),
    'operand 1 must have 3 rows, one for each edge (got 2)': lambda: rows(
        row=ROW[:2]
    ),
    "'operands' must say how many edges are": lambda: GSAMPLE.edge_map(
        SCALAR.number, [X[:1]]
    ),
    "'num_rows' must not be negative (got -1)": lambda: rows(num_rows=-1),
    "edge_map: 'num_rows' must be less than 2305843009213693951 (got 46116": (
        lambda: rows(num_rows=2**62 + 2**20)
    ),
    'edge_map: an index is out of range': lambda: rows(num_rows=2),
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
    lambda: GSAMPLE.edge_map(1 << 40, [X]),
]

EDGE_MAP_ERRORS = [
    (
        ValueError,
        lambda: ops.edge_map(-1, [X]),
        "'kernel' must be loaded in this process (got -1)",
    ),
    (
        ValueError,
        lambda: ops.edge_map(ROWS.number, [X, ROW], -1),
        "'num_rows' must be at least 0 (got -1)",
    ),
]
