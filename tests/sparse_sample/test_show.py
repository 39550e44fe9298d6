"""Texts and pictures of matrices."""

import pytest
import torch

from tests.sparse_sample.cases import GRAPHS, case
from torch_gsample import SparseSample


def test_repr_of_a_matrix():
    A = SparseSample.from_coo(torch.tensor([0, 1]), torch.tensor([1, 1]))
    assert repr(A) == 'SparseSample(shape=[2, 2], num_edges=2, csc)'
    value = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    B = A.with_value(value)[:, [1]]
    assert repr(B) == (
        'SparseSample(shape=[2, 1], num_edges=2, value=float64, features=[3], '
        'requires_grad=True, col_ids, csc)'
    )
    B.csr  # noqa: B018  (made at its first use)
    assert repr(B.T).endswith('row_ids, csc+csr)')


def test_html_lists_the_first_edges():
    A = SparseSample.from_coo(torch.arange(12), torch.arange(12))
    text = A._repr_html_()
    assert text.count('<tr>') == 12
    assert '2 more' in text
    assert '<td>9</td><td>9</td><td>1.0</td><td>9</td>' in text
    assert '<td>10</td>' not in text


def test_html_is_escaped(monkeypatch):
    A = SparseSample.from_coo(torch.arange(1), torch.arange(1))
    monkeypatch.setattr(SparseSample, '__repr__', lambda self: '<b>&')
    assert '<caption>&lt;b&gt;&amp;</caption>' in A._repr_html_()


@pytest.mark.parametrize('graph', GRAPHS)
@pytest.mark.filterwarnings('ignore:Attempting to set identical')
def test_plots_are_axes(graph):
    pytest.importorskip('matplotlib')
    from matplotlib.figure import Figure

    A = case(graph).matrix
    ax = A.plot()
    assert ax.get_xlabel() == 'destination'
    drawn = ax.images[0].get_array()
    assert drawn.shape == A.shape
    assert int((~torch.tensor(drawn.filled(torch.nan)).isnan()).sum()) == (
        A.to_dense().count_nonzero()
    )
    other = Figure().subplots()
    assert A.plot(other) is other
