"""``NodeProbs``: draws by probabilities that are prepared once."""

import pytest
import torch
from scipy.stats import chisquare

from torch_gsample.algorithms import fastgcn
from torch_gsample.rng import make_key, program_scope
from torch_gsample.sparse_sample import NodeProbs, SparseSample

PROBS = torch.tensor([0.0, 1.0, 0.0, 5.0, 2.0])


def matrix():
    row = torch.tensor([1, 3, 4, 3, 0])
    col = torch.tensor([0, 0, 0, 1, 1])
    return SparseSample.from_coo(row, col, shape=(5, 2))


@pytest.mark.parametrize('replace', [False, True])
def test_rows_are_those_of_a_collective_sample(replace):
    A, q = matrix(), NodeProbs(PROBS)
    for seed in range(20):
        with program_scope(make_key(seed)):
            rows = q.sample(2, replace)
        with program_scope(make_key(seed)):
            S = A[:, [0]].collective_sample(2, PROBS, replace)
        assert torch.equal(A[rows, :][:, [0]].to_dense(), S.to_dense())
        assert torch.equal(S.row_ids, rows)


def test_draws_follow_the_probabilities():
    with program_scope(make_key(0)):
        rows = NodeProbs(PROBS).sample(8_000, replace=True)
    count = torch.bincount(rows, minlength=5)
    assert count[[0, 2]].tolist() == [0, 0]
    expected = 8_000 * torch.tensor([1.0, 5.0, 2.0]) / 8
    assert chisquare(count[[1, 3, 4]], expected).pvalue > 0.001


def test_all_candidates_are_taken_where_there_are_not_more():
    assert NodeProbs(PROBS).sample(3).tolist() == [1, 3, 4]
    assert NodeProbs(PROBS).sample(9).tolist() == [1, 3, 4]
    assert NodeProbs(PROBS[:0]).sample(2).tolist() == []


def test_probabilities_are_normalised_and_keep_their_gradient():
    probs = PROBS.clone().requires_grad_()
    q = NodeProbs(probs)
    torch.testing.assert_close(q.probs, PROBS / 8)
    q.probs[3].backward()
    torch.testing.assert_close(
        probs.grad, torch.tensor([-5.0, -5.0, -5.0, 3.0, -5.0]) / 64
    )


def test_none_is_sampled_where_all_probabilities_are_0():
    for size in (0, 3):
        q = NodeProbs(torch.zeros(size))
        assert q.probs.tolist() == [0] * size
        assert q.sample(2, replace=True).numel() == 0
    edges = torch.empty(2, 0, dtype=torch.int64)
    A = SparseSample.from_edge_index(edges, num_nodes=3)
    [S] = fastgcn(A, torch.tensor([1]), [4])
    assert S.num_edges == 0
