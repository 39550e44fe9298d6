"""Every message of ``sample_by_kernel``, and a call that raises it."""

import torch

from tests.ops.edge_map_errors import INT, ROWS, SCALAR, X
from torch_gsample.codegen import unit
from torch_gsample.codegen.edge_map import edge_map
from torch_gsample.codegen.expression import apply, constant, operand
from torch_gsample.codegen.kernel import EdgeKernel
from torch_gsample.codegen.unit import Leaf
from torch_gsample.ops.sample_by_kernel import ROLES
from torch_gsample.rng import make_key

GSAMPLE = torch.ops.gsample
FLOAT, BOOL = torch.float32, torch.bool
INDPTR, INDICES = torch.tensor([0, 2, 3, 3]), torch.tensor([1, 2, 2])
COLS, BEFORE = torch.tensor([0, 1, 0, 2]), torch.tensor([1, 1, 0, 0])


def weights(index=INT, dtype=FLOAT):
    """Of an edge, of its row, of its column, and of a search.

    ``(x[e] + y[row]) * (row == back[col] ? scale : found ? 1 : 2)``.
    """
    same = apply('eq', operand(2, index), operand(3, index), dtype=BOOL)
    one, two = constant(1, dtype), constant(2, dtype)
    near = apply('where', operand(6, BOOL), one, two)
    total = apply('add', operand(0, dtype), operand(1, dtype))
    factor = apply('where', same, operand(4, dtype), near)
    leaves = (
        Leaf('', unit.EDGE, dtype),
        Leaf('', unit.EDGE, dtype, index=2),
        Leaf('', unit.EDGE, index),
        Leaf('', unit.DESTINATION, index),
        Leaf('', unit.PARAMETER, dtype),
        Leaf('', unit.POINTERS, index),
        Leaf('', unit.EDGE, BOOL),
    )
    return EdgeKernel(edge_map(apply('mul', total, factor), leaves))


NAMES = 'edge', 'whole', 'edge', 'column', 'whole', 'pointers', 'found'
NUMBERS = [ROLES.index(name) for name in NAMES]
WEIGHTS = weights()


def arguments(n=4):
    """Those of a call, of ``n`` columns."""
    operands = [X, X, INDICES, COLS[:n], torch.tensor(0.5), INDPTR, X]
    return (
        *(INDPTR, INDICES, COLS[:n], WEIGHTS.loaded.number, operands),
        *(NUMBERS, make_key(1), 2),
    )


def sample(replaced=None, role=None, kernel=None, before=BEFORE, **kw):
    """A call with another operand, role or kernel."""
    args = list(arguments())
    for number, tensor in (replaced or {}).items():
        args[4][number] = tensor
    args[5] = [*NUMBERS]
    for number, name in (role or {}).items():
        args[5][number] = name
    if kernel is not None:
        args[3], args[4], args[5] = kernel
    for name, value in kw.items():
        args[('indptr', 'indices', 'cols').index(name)] = value
    return GSAMPLE.sample_by_kernel(*args, before=before)


_ROLE = 'sample_by_kernel: operand of role '
_RANGE = "sample_by_kernel: 'cols' and 'before' must be in [0, 3), all rows "
SAMPLES_BY_KERNEL = {
    "sample_by_kernel: 'kernel' must be loaded (got -1)": lambda: sample(
        kernel=(-1, [], [])
    ),
    "sample_by_kernel: 'kernel' must compute only one float for each edge": (
        lambda: sample(kernel=(ROWS.loaded.number, [X, INDICES], [2, 2]))
    ),
    "sample_by_kernel: 'operands' and 'roles' must be 1 (got 0 and 1)": (
        lambda: sample(kernel=(SCALAR.loaded.number, [], [0]))
    ),
    "sample_by_kernel: 'roles' has no role 5": lambda: sample(role={0: 5}),
    "sample_by_kernel: 'operands' must be on the CPU, of the dtypes of the ": (
        lambda: sample({0: X.double()})
    ),
    f'{_ROLE}0 must match': lambda: sample({4: torch.ones(2)}),
    f'{_ROLE}1 must match': lambda: sample({3: COLS[:3]}),
    f'{_ROLE}2 must match': lambda: sample({0: X[:2]}),
    f'{_ROLE}3 must match': lambda: sample(before=None),
    f'{_ROLE}4 must match': lambda: sample(role={0: 4}),
    _RANGE: lambda: sample(cols=torch.tensor([0, 1, 3, 0])),
    f'{_RANGE}in [0, 9223': lambda: sample(before=torch.tensor([0, 1, 3, 0])),
    "sample_by_kernel: 'weight' must be finite and not negative": (
        lambda: sample({0: -X.abs() - 1})
    ),
    '), indices of the kernel in range, and': lambda: sample({1: X[:2]}),
    "sample_by_kernel: 'cols' has the wrong dtype": lambda: sample(
        cols=COLS.int()
    ),
}
