import pytest
import torch

from tests.algorithms.graphs import (
    aggregate,
    assert_mean,
    features,
    runs,
    skewed_graph,
    star,
)
from torch_gsample.algorithms import fastgcn

SEEDS = torch.tensor([0, 3, 17, 30, 39])


@pytest.mark.parametrize('fanouts', [[10], [10, 12]])
def test_estimate_is_unbiased(fanouts):
    A, x = skewed_graph(), features(40)
    full = A[:, SEEDS].T @ (x if len(fanouts) == 1 else A.T @ x)
    samples = runs(lambda: aggregate(fastgcn(A, SEEDS, fanouts), x), 1000)
    assert_mean(samples, full)


def test_nodes_are_drawn_by_the_norm_of_their_rows():
    A = skewed_graph()
    q = A.to_dense().square().sum(dim=1)
    everything = torch.arange(40)  # so that each drawn node holds an edge

    def drawn():
        [S] = fastgcn(A, everything, [10])
        return S.row_ids.bincount(minlength=40).double() / 10

    assert_mean(runs(drawn, 1000), q / q.sum())


def test_a_node_that_is_drawn_twice_is_two_rows():
    [S] = fastgcn(star(1), torch.tensor([0]), [5])
    assert S.row_ids.tolist() == [1] * 5
    torch.testing.assert_close(S.values(), torch.full((5,), 1 / 5))


def test_draws_without_an_edge_into_the_layer_are_dropped():
    A = skewed_graph()
    for S in fastgcn(A, SEEDS[-1:], [20, 20]):
        assert S.num_rows < 20
        assert (S.degree(dim=1) > 0).all()
