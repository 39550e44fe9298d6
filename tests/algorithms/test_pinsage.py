"""PinSAGE and HetGNN: importance is how often walks visit."""

from collections import Counter

import pytest
import torch

from tests.algorithms.checks import random_graph
from torch_gsample import SparseSample
from torch_gsample.algorithms import hetgnn, pinsage
from torch_gsample.rng import make_key, program_scope


def visits_by_hand(A, seeds, num_walks, length, restart):
    """Counts of the same walks, with plain loops."""
    walks = A.random_walk(seeds.repeat(num_walks), length, restart)
    counts = [Counter() for _ in seeds]
    for i, (nodes, edges) in enumerate(
        zip(walks.nodes.tolist(), walks.edges.tolist(), strict=True)
    ):
        for node, edge in zip(nodes[1:], edges, strict=True):
            if edge >= 0 and node != nodes[0]:
                counts[i % len(seeds)][node] += 1
    return counts


def test_importance_is_visit_frequency_among_the_most_visited():
    A, seeds = random_graph(30), torch.tensor([3, 17, 3])
    with program_scope(make_key(0)):
        near = pinsage(A, seeds, 4, num_walks=30, length=6).to_dense()
    with program_scope(make_key(0)):
        counts = visits_by_hand(A, seeds, 30, 6, 0.5)
    for column, count in enumerate(counts):
        best = sorted(count.items(), key=lambda item: (-item[1], item[0]))[:4]
        expected = torch.zeros(30)
        total = sum(n for _, n in best)
        for node, n in best:
            expected[node] = n / total
        torch.testing.assert_close(near[:, column], expected)


def test_importance_converges_to_the_stationary_visits():
    A, restart = random_graph(12), 0.3
    dense = A.to_dense().double()
    step = dense / dense.sum(1, keepdim=True)
    restarted = (1 - restart) * step
    restarted[:, 5] += restart
    value, vector = torch.linalg.eig(restarted.T)
    stationary = vector[:, value.real.argmax()].real
    # Arrivals by steps, of which the seed's own do not count.
    truth = stationary / stationary.sum()
    truth[5] = 0
    truth /= truth.sum()
    errors = []
    for length in (100, 10000):
        with program_scope(make_key(4)):
            near = pinsage(A, torch.tensor([5]), 12, 20, length, restart)
        errors.append(float((near.to_dense()[:, 0] - truth).abs().sum()))
    assert errors[1] < 0.015  # about 1 / sqrt of 140,000 steps
    assert errors[1] < errors[0] / 3


BUYS, BOUGHT = ('user', 'buys', 'item'), ('item', 'by', 'user')


def purchases():
    """Users and items; item 5 has no user."""
    generator = torch.Generator().manual_seed(3)
    user = torch.randint(8, (30,), generator=generator)
    item = torch.randint(5, (30,), generator=generator)
    return {
        BUYS: SparseSample.from_coo(user, item, shape=(8, 6)),
        BOUGHT: SparseSample.from_coo(item, user, shape=(6, 8)),
    }


@pytest.mark.parametrize('restart', [0.0, 0.4])
def test_visits_of_a_metapath_are_those_of_its_transitions(restart):
    """Of traversals that a walk begins: (1 - restart)^j of the j-th."""
    A, seeds, length = purchases(), torch.tensor([0, 3, 5]), 3
    step = torch.eye(6).double()
    for t in (BOUGHT, BUYS):
        dense = A[t].to_dense().double()
        step = step @ (dense / dense.sum(dim=1, keepdim=True).clamp(min=1))
    visits, at = 0, torch.eye(6).double()[seeds]
    for j in range(length):
        at = at @ step
        visits = visits + (1 - restart) ** j * at
    visits[torch.arange(3), seeds] = 0
    truth = visits / visits.sum(dim=1, keepdim=True).clamp(min=1e-9)
    with program_scope(make_key(2)):
        near = pinsage(
            A, seeds, 6, 20_000, length, restart, metapath=[BOUGHT, BUYS]
        )
    assert near.col_ids is seeds
    torch.testing.assert_close(
        near.to_dense().T.double(), truth, atol=0.015, rtol=0
    )


def test_a_metapath_takes_the_most_visited():
    A, seeds = purchases(), torch.tensor([0, 3, 0, 5])
    path = [BOUGHT, BUYS]
    with program_scope(make_key(2)):
        whole = pinsage(A, seeds, 6, 50, 3, 0.2, path).to_dense()
    with program_scope(make_key(2)):
        near = pinsage(A, seeds, 2, 50, 3, 0.2, path)
    assert near.degree(dim=0).tolist() == [2, 2, 2, 0]
    top = whole * (near.to_dense() > 0)
    assert torch.equal(top.topk(2, dim=0).values, whole.topk(2, dim=0).values)
    torch.testing.assert_close(
        near.to_dense(), top / top.sum(dim=0).clamp(min=1e-9)
    )


@pytest.mark.parametrize(
    ('path', 'message'),
    [
        ([], r'the end type of the previous.* \(got \[\]\)'),
        ([BUYS], 'the first at that of the last'),
        ([BOUGHT, BOUGHT], 'must start at the end type of the previous'),
        ([('item', 'by', 'shop')], "must be of .*got .'item', 'by', 'shop'"),
    ],
    ids=str,
)
def test_a_metapath_is_closed(path, message):
    with pytest.raises(ValueError, match=f"pinsage: .*'metapath' .*{message}"):
        pinsage(purchases(), torch.tensor([0]), 2, 3, 2, metapath=path)


def test_hetgnn_takes_the_most_visited_of_each_type():
    A, seeds = random_graph(30), torch.tensor([3, 17])
    node_type = torch.arange(30) % 3
    with program_scope(make_key(0)):
        groups = hetgnn(A, seeds, node_type, [2, 3, 1], 30, 6)
    with program_scope(make_key(0)):
        counts = visits_by_hand(A, seeds, 30, 6, 0.5)
    for number, (group, k) in enumerate(zip(groups, [2, 3, 1], strict=True)):
        dense = group.to_dense()
        for column, count in enumerate(counts):
            own = [(-n, v) for v, n in count.items() if v % 3 == number]
            expected = {v: -n for n, v in sorted(own)[:k]}
            held = dense[:, column].nonzero().view(-1).tolist()
            assert {v: int(dense[v, column]) for v in held} == expected
