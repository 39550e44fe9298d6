"""Every error of the package: its class and its text."""

import re

import pytest
import torch
import torch.nn.functional as F

from torch_gsample import SparseSample
from torch_gsample.sparse_sample import NodeProbs
from torch_gsample.sparse_sample.select import random_walk_step

NAN = float('nan')
make = SparseSample
long = torch.tensor


def ones(*shape):
    return torch.ones(shape)


ERRORS = [
    # Build
    (lambda A: make.from_coo(long([0, 5]), long([0, 1]), None, (3, 2)),
     IndexError, "from_coo: 'row' must be in [0, 3) (got 5)"),
    (lambda A: make.from_coo(long([0]), long([0, 1])),
     ValueError, "from_coo: 'row' and 'col' must have the same length (got 1"),
    (lambda A: make.from_coo(long([0]), long([0]), ones(2)),
     ValueError, "from_coo: 'value' must have 1 rows, one for each edge (got"),
    (lambda A: make.from_edge_index(long([0])), ValueError,
     "from_edge_index: 'edge_index' must have shape [2, num_edges] (got [1])"),
    (lambda A: make.from_csc(long([0, 2, 1]), long([0, 1])),
     ValueError, "from_csc: 'indptr' of the matrix must not descend (it"),
    (lambda A: make.from_csc(long([0, 2]), long([0, 1])),
     IndexError, "from_csc: 'indices' of the matrix must be in [0, 1) (got 1"),
    (lambda A: make.from_csc(long([0, 1]), long([0]), ones(2)),
     ValueError, "from_csc: 'value' must have 1 rows"),
    (lambda A: make.from_csr(long([0, 2]), long([0, 1])),
     IndexError, "from_csr: 'indices' of the matrix must be in [0, 1) (got 1"),
    (lambda A: make.from_csr(long([0, 1]), long([0]), ones(2)),
     ValueError, "from_csr: 'value' must have 1 rows"),
    (lambda A: make.from_data(3), TypeError,
     "from_data: 'data' must be a Data, HeteroData, edge_index, EdgeIndex, "),
    (lambda A: make.from_data(long([[0], [0]]), value='w'), TypeError,
     "from_data: the name of a 'value' needs a Data or HeteroData (got T"),
    (lambda A: make.from_data(A, value='w'), TypeError,
     "from_data: the name of a 'value' needs a Data or HeteroData (got S"),
    (lambda A: make.from_data(ones(2, 2).to_sparse_bsr((2, 2))), TypeError,
     'from_data: a torch.sparse tensor must be COO, CSR or CSC (got torch.'),
    (lambda A: make.from_data(__import__('torch_geometric').data.Data(
        x=ones(2, 1))), ValueError,
     "from_data: 'data' has no 'edge_index' and no 'adj_t'"),
    # Extract
    (lambda A: A[0], IndexError,
     'SparseSample: an index must be a pair, A[rows, cols] (got int)'),
    (lambda A: A[:, [2]], IndexError,
     "SparseSample: 'cols' must be in [-2, 2) (got 2)"),
    (lambda A: A[[-4], :], IndexError,
     "SparseSample: 'rows' must be in [-3, 3) (got -4)"),
    (lambda A: A[:, ones(3) > 0], IndexError,
     "SparseSample: a mask of 'cols' must have 2 elements (got shape [3])"),
    (lambda A: A[ones(2), :], IndexError,
     "SparseSample: 'rows' must be a vector of integers (got torch.float32"),
    (lambda A: A[:, None], IndexError,
     "SparseSample: 'cols' must be positions, a mask or a slice (got None)"),
    (lambda A: A.masked(ones(3)), ValueError,
     "masked: 'mask' must be a bool vector of 3 edges (got torch.float32 of"),
    (lambda A: A.compact(2), IndexError,
     "compact: 'dim' must be 0 (over rows) or 1 (over columns) (got 2)"),
    (lambda A: A.with_value(ones(2)), ValueError,
     "with_value: 'value' must have 3 rows, one for each edge (got shape [2"),
    # Compute
    (lambda A: A * ones(3), ValueError,
     'mul: a dense operand of a matrix of shape [3, 2] must have shape [3, 1],'
     ' [1, 2], [2] or [3, 2], and may have features behind (got [3])'),
    (lambda A: A + A[:, [0]], ValueError,
     'add: two matrices must have the same edges (got 3 edges of [3, 2] and '
     '1 of [3, 1], or edges at other positions)'),
    (lambda A: A / make.from_coo(
        long([0, 0, 2]), long([0, 1, 0]), None, (3, 2)),
     ValueError, 'div: two matrices must have the same edges (got 3 edges'),
    (lambda A: A.div(ones(3), 0), ValueError,
     "div: with 'dim=0', the operand must be a tensor of 2 rows, as "
     'div(A.sum(dim=0), dim=0) has (got [3])'),
    (lambda A: A.add(2, dim=1), ValueError,
     "add: with 'dim=1', the operand must be a tensor of 3 rows"),
    (lambda A: A.sum(2), IndexError,
     "sum: 'dim' must be 0 (over rows) or 1 (over columns) (got 2)"),
    (lambda A: A.max(0, axis=0), TypeError,
     "max: give 'dim' or its alias 'axis', not both"),
    (lambda A: A.mul(ones(2), 0, axis=0), TypeError,
     "mul: give 'dim' or its alias 'axis', not both"),
    (lambda A: A.softmax(0, axis=1), TypeError, "softmax: give 'dim' or its"),
    (lambda A: A.norm(0), ValueError, "norm: 'p' must be positive (got 0)"),
    (lambda A: A @ ones(3), ValueError,
     'matmul: a matrix of shape [3, 2] needs a dense operand of shape [2] or '
     '[2, F] (got [3])'),
    (lambda A: ones(2) @ A, ValueError,
     'matmul: a matrix of shape [3, 2] needs a dense operand of shape [3] or '
     '[F, 3] on its left (got [2])'),
    (lambda A: A.with_value(ones(3, 4)) @ ones(2), ValueError,
     'matmul: a matrix of values [3, 4] needs a dense operand of shape [4] or '
     '[4, K], and one vector an edge (got [2])'),
    (lambda A: ones(3) @ A.with_value(ones(3, 2)), ValueError,
     'matmul: a product with an operand on the left needs one value an edge '
     '(got [3, 2])'),
    (lambda A: A.sddmm(ones(3, 2), ones(2, 3)), ValueError,
     "sddmm: 'x' and 'y' must have shapes [3, F] and [2, F] (got [3, 2] and"),
    (lambda A: A.sddmm(ones(2, 2), ones(2, 2)), ValueError,
     "sddmm: 'x' and 'y' must have 3 and 2 rows (got 2 and 2)"),
    # Select
    (lambda A: A.individual_sample(-2), ValueError,
     "individual_sample: 'k' must be -1 (all) or more (got -2)"),
    (lambda A: A.individual_sample(1.5), TypeError,
     "individual_sample: 'k' must be an integer (got 1.5)"),
    (lambda A: A.individual_sample(1, ones(2)), ValueError,
     "individual_sample: 'probs' must have 3 elements, one for each edge"),
    (lambda A: A.individual_sample(1, long([1, -1.0, 2])), ValueError,
     "individual_sample: 'probs' must be finite and not negative (got -1.0"),
    (lambda A: A.individual_sample(1, long([1, NAN, 2])), ValueError,
     "individual_sample: 'probs' must be finite and not negative (got nan"),
    (lambda A: A.collective_sample(-1), ValueError,
     "collective_sample: 'k' must be an integer and not negative (got -1)"),
    (lambda A: A.collective_sample(1, ones(2)), ValueError,
     "collective_sample: 'node_probs' must have 3 elements, one for each row"),
    (lambda A: A.collective_sample(1, ones(3) * 0), ValueError,
     "collective_sample: 'node_probs' must not be all zero"),
    (lambda A: A.collective_sample(1, long([1, NAN, 2])), ValueError,
     "collective_sample: 'node_probs' must be finite and not negative (got n"),
    (lambda A: A.labor_sample(0), ValueError,
     "labor_sample: 'k' must be positive (got 0)"),
    (lambda A: A.labor_sample(1, ones(2)), ValueError,
     "labor_sample: 'importance' must have 3 elements (got shape [2])"),
    (lambda A: A.labor_sample(1, -ones(3)), ValueError,
     "labor_sample: 'importance' must be positive and finite"),
    (lambda A: random_walk_step(A, long([2])), IndexError,
     "SparseSample: 'cols' must be in [-2, 2) (got 2)"),
    (lambda A: random_walk_step(A, long([1]), ones(2)), ValueError,
     "random_walk_step: 'probs' must have 3 elements"),
    (lambda A: A.top(1, ones(2)), ValueError,
     "top: 'by' must have 3 elements, one for each edge (got shape [2])"),
    (lambda A: A.top(long([1])), ValueError,
     "top: 'k' must have 2 elements, one for each column (got shape [1])"),
    (lambda A: NodeProbs(long([1.0, -1.0])), ValueError,
     "NodeProbs: 'probs' must be finite and not negative (got -1.0 at pos"),
    (lambda A: NodeProbs(long([NAN])), ValueError,
     "NodeProbs: 'probs' must be finite and not negative (got nan at pos"),
    (lambda A: NodeProbs(ones(2)).sample(-1, replace=True), ValueError,
     "sample_nodes: 'k' must not be negative (got -1)"),
    # Functions of torch
    (lambda A: torch.add(A, A, alpha=2), ValueError,
     "add: 'alpha' is not supported (got 2)"),
    (lambda A: F.softmax(A), ValueError, "softmax: 'dim' must be given"),
    (lambda A: torch.stack([A, A], 0), ValueError,
     'stack: matrices are stacked along a last dimension of their values, '
     "'dim=-1' (got 0)"),
    (lambda A: torch.stack([A, A], dim=-2), ValueError,
     'stack: matrices are stacked along a last dimension of their values, '
     "'dim=-1' (got -2)"),
    (lambda A: torch.stack([torch.stack([A, A])] * 2, 1), ValueError,
     "stack: matrices of features are stacked with 'dim=-1' (got 1)"),
    (lambda A: torch.stack([A, ones(3)]), TypeError,
     'stack: all must be SparseSample (got Tensor)'),
    (lambda A: torch.stack([A, A[:, [0]]]), ValueError,
     'stack: two matrices must have the same edges'),
    # Finalize
    (lambda A: A.to_torch_sparse(torch.strided), ValueError,
     "to_torch_sparse: 'layout' must be torch.sparse_coo, torch.sparse_csr"),
    (lambda A: A.to_sampler_output([]), ValueError,
     "to_sampler_output: 'layers' must not be empty without 'seeds'"),
    (lambda A: A.to_sampler_output([], long([4, 2, 4])), ValueError,
     "to_sampler_output: 'seeds' must be distinct nodes (got 4 repeatedly)"),
    (lambda A: A.to_sampler_output([A[:, [1, 0, 1]]]), ValueError,
     "to_sampler_output: 'seeds' must be distinct nodes (got 1 repeatedly)"),
    (lambda A: A.to_sampler_output([A, A[:, [1, 0, 0]]]), ValueError,
     'to_sampler_output: the columns of layer 1 must be distinct nodes'),
    (lambda A: A[:, [1, 1]].to_data(), ValueError,
     "to_data: 'seeds' must be distinct nodes (got 1 repeatedly)"),
    (lambda A: A.with_value(ones(3, 2)).plot(), ValueError,
     'plot: the matrix must have one value an edge (got shape [3, 2])'),
    (lambda A: make.from_coo(long([200]), long([0])).plot(), ValueError,
     'plot: the matrix must have at most 200 rows and columns (got shape [2'),
]  # fmt: skip


@pytest.fixture
def A():
    row, col = torch.tensor([0, 1, 2]), torch.tensor([1, 1, 0])
    return SparseSample.from_coo(row, col, torch.ones(3), (3, 2))


@pytest.mark.parametrize(
    ('call', 'error', 'message'), ERRORS, ids=[e[2][:40] for e in ERRORS]
)
def test_errors_name_the_method_and_the_value(A, call, error, message):
    with pytest.raises(error, match='^' + re.escape(message)):
        call(A)


@pytest.mark.parametrize(
    ('name', 'call'),
    [
        ('matmul', lambda A, x: A @ x(2)),
        ('mul', lambda A, x: A * x(2)),
        ('div', lambda A, x: A.div(x(2), 0)),
        ('sddmm', lambda A, x: A.sddmm(x(3, 1), x(2, 1))),
        ('masked', lambda A, x: A.masked(x(3) > 0)),
        ('individual_sample', lambda A, x: A.individual_sample(1, x(3))),
        ('collective_sample', lambda A, x: A.collective_sample(1, x(3))),
    ],
)
def test_operands_are_where_the_matrix_is(A, name, call):
    message = f'{name}: the matrix is on cpu and the operand on meta: move'
    with pytest.raises(ValueError, match='^' + message):
        call(A, lambda *shape: torch.ones(shape, device='meta'))
