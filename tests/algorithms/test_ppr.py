"""PageRanks by pushes are near the exact ones; IBMB's batches use them."""

import pytest
import torch

from tests.algorithms.checks import dense_ppr, random_graph, undirected
from torch_gsample import SparseSample
from torch_gsample.algorithms import (
    approximate_ppr,
    ibmb,
    ibmb_partition,
)


@pytest.mark.parametrize('eps', [1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize('alpha', [0.15, 0.6, 1.0])
def test_pushes_are_within_epsilon_times_degree(alpha, eps):
    A, seeds = random_graph(40), torch.tensor([7, 0, 7])
    got = approximate_ppr(A, seeds, alpha, eps)
    error = dense_ppr(A, alpha)[:, seeds] - got.to_dense()
    bound = eps * A.degree(0).double()[:, None]
    assert bool((error >= -1e-12).all())
    assert bool((error <= bound + 1e-12).all())


def test_pushes_are_local():
    """All residues that were pushed are at least epsilon times the degree."""
    n = 1000
    A = undirected({(i, i + 1) for i in range(n - 1)}, n)
    got = approximate_ppr(A, torch.tensor([500]), 0.5, 1e-3)
    assert 3 < got.num_edges < 20


def test_pushes_of_a_directed_weighted_graph_come_near():
    """Node 3 has no in-edge, and node 4's are of weight 0."""
    A = SparseSample.from_coo(
        torch.tensor([1, 2, 3, 3, 0, 1]),
        torch.tensor([0, 0, 1, 2, 2, 4]),
        torch.tensor([1.0, 3.0, 1.0, 2.0, 2.0, 0.0]),
        (5, 5),
    )
    got = approximate_ppr(A, torch.arange(5), 0.2, 1e-12).to_dense()
    torch.testing.assert_close(got, dense_ppr(A, 0.2), atol=1e-9, rtol=0)


@pytest.mark.parametrize(
    ('alpha', 'eps', 'name'), [(0.0, 1e-3, 'alpha'), (0.5, 0.0, 'eps')]
)
def test_impossible_parameters_are_named(alpha, eps, name):
    with pytest.raises(ValueError, match=f"approximate_ppr: '{name}' must"):
        approximate_ppr(random_graph(5), torch.tensor([0]), alpha, eps)


def cliques(count, size):
    """Cliques in a ring, with an edge between two neighbours."""
    pairs = {
        (c * size + i, c * size + j)
        for c in range(count)
        for i in range(size)
        for j in range(i + 1, size)
    }
    pairs |= {(c * size, (c + 1) * size + 1) for c in range(count - 1)}
    return undirected(pairs, count * size)


def test_ibmb_groups_outputs_that_influence_each_other():
    A = cliques(4, 5)
    outputs = torch.arange(20).view(4, 5).T.reshape(-1)  # cliques mixed
    parts = ibmb_partition(outputs, approximate_ppr(A, outputs), 5)
    groups = [{int(outputs[i]) // 5 for i in part} for part in parts]
    assert sorted(map(list, groups)) == [[0], [1], [2], [3]]


@pytest.mark.parametrize('batch_size', [1, 4, 7, 100])
def test_ibmb_batches_divide_the_outputs_and_hold_their_top_k(batch_size):
    A, k, alpha = random_graph(60, 3), 3, 0.25
    outputs = torch.arange(0, 60, 2)
    exact = dense_ppr(A, alpha)
    batches = ibmb(A, outputs, k, batch_size, alpha, 1e-10)
    assert sorted(torch.cat([b.output for b in batches]).tolist()) == list(
        range(30)
    )
    for matrix, part in batches:
        nodes = matrix.col_ids
        own = outputs[part]
        assert part.numel() <= batch_size
        assert torch.equal(nodes[: part.numel()], own)
        expected = set(own.tolist())
        for v in own.tolist():
            scores = exact[:, v].clone()
            scores[v] = -1
            expected |= set(scores.topk(k).indices.tolist())
        assert set(nodes.tolist()) == expected
        dense = A.to_dense()[nodes][:, nodes]
        assert torch.equal(matrix.to_dense(), dense)


def test_ibmb_leaves_no_two_batches_that_fit_into_one_next_to_another():
    outputs = torch.arange(10)
    alone = SparseSample.from_coo(outputs, outputs, shape=(10, 10))
    parts = ibmb_partition(outputs, alone, 4)
    assert sorted(part.numel() for part in parts) == [2, 4, 4]


def test_ibmb_names_a_bad_batch_size():
    with pytest.raises(ValueError, match="'batch_size' must be positive"):
        ibmb(random_graph(5), torch.arange(3), 2, 0)
