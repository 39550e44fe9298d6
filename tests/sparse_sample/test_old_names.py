"""Names of the last release work, and warn by the name to use."""

import re

import pytest
import torch

import torch_gsample as gsample
from torch_gsample import SparseSample
from torch_gsample.sparse_sample.old_names import OLD_NAMES


def matrix() -> SparseSample:
    return SparseSample.from_edge_index(torch.tensor([[0, 1, 2], [1, 2, 0]]))


NODES = torch.tensor([2, 0])
OLD = {
    'nnz': lambda A: (A.nnz, A.num_edges),
    't': lambda A: (A.t().to_dense(), A.T.to_dense()),
    'to_coo': lambda A: (torch.stack(A.to_coo()[:2]), A.to_edge_index()),
    'row_of_edge': lambda A: (A.row_of_edge(), A.edges()[0]),
    'column_of_edge': lambda A: (A.column_of_edge(), A.edges()[1]),
    'apply': lambda A: (
        A.apply(torch.exp).to_dense(),
        torch.exp(A).to_dense(),
    ),
    'by_column': lambda A: (A.T.by_column().to_csc(), A.T.to_csc()),
    'column': lambda A: (A.column().sort()[0], A.T.row().sort()[0]),
    'pow': lambda A: ((A * 3).pow(2).to_dense(), ((A * 3) ** 2).to_dense()),
    'random_walk_step': lambda A: (
        A.random_walk_step(NODES),
        A.T.random_walk(NODES, 1).nodes[:, 1],
    ),
    'to_dgl_block': lambda A: (
        A.to_dgl_block().edata['eid'],
        A.to_dgl(block=True).edata['eid'],
    ),
    'to_dgl_graph': lambda A: (
        A.to_dgl_graph().edata['eid'],
        A.to_dgl().edata['eid'],
    ),
}


def test_every_old_attribute_of_a_matrix_is_tested():
    assert set(OLD) == set(OLD_NAMES)


@pytest.mark.parametrize('name', OLD)
def test_old_attributes_of_a_matrix_are_the_new_ones(name, fake_dgl):
    new = OLD_NAMES[name][0]
    text = f'SparseSample.{name} is deprecated: use SparseSample.{new}'
    with pytest.warns(DeprecationWarning, match=re.escape(text)) as caught:
        old, want = OLD[name](matrix())
    assert caught[0].filename == __file__
    torch.testing.assert_close(old, want)


def test_old_attributes_are_captured():
    """Without a warning, which Dynamo cannot capture."""
    run = gsample.compile(lambda A: A.row_of_edge() + A.nnz)
    assert run(matrix()).tolist() == [5, 3, 4]
