"""DepRound and EXP3.M, against plain loops."""

from collections import Counter

import pytest
import torch

from tests.algorithms.checks import chi_square_p
from tests.algorithms.graphs import (
    assert_mean,
    features,
    runs,
    skewed_graph,
    star,
)
from torch_gsample import SparseSample
from torch_gsample.algorithms import GCNBS
from torch_gsample.algorithms.dep_round import dep_round, inclusion
from torch_gsample.rng import make_key, program_scope


def rounded(probs, start=0):
    """The probability of each sample, pair by pair in the order of edges."""
    open_ = [i for i, p in enumerate(probs) if 1e-12 < p < 1 - 1e-12]
    if len(open_) < 2:
        return {tuple(i for i, p in enumerate(probs) if p > 0.5): 1.0}
    i, j = open_[:2]
    p, q = probs[i], probs[j]
    alpha, beta = min(1 - p, q), min(p, 1 - q)
    out = Counter()
    for chance, change in (
        (beta / (alpha + beta), alpha),
        (alpha / (alpha + beta), -beta),
    ):
        moved = list(probs)
        moved[i], moved[j] = p + change, q - change
        for sample, rest in rounded(moved).items():
            out[sample] += chance * rest
    return out


PROBS = [
    [0.5, 0.5, 0.5, 0.5],
    [0.7, 0.6, 0.4, 0.3],
    [0.3, 0.4, 0.6, 0.7],
    [0.2, 0.9, 0.15, 0.35, 0.4],
    [0.9, 0.9, 0.9, 0.15, 0.15],
    [0.25, 1.0, 0.5, 0.25, 0.6, 0.4],
    [0.1] * 10,
    [1.0, 0.01, 0.99],
]


@pytest.mark.parametrize('probs', PROBS, ids=str)
def test_samples_have_the_distribution_of_pairwise_rounding(probs):
    expected, times, n = rounded(probs), 3000, len(probs)
    # One call: each node draws its own.
    row, col = torch.arange(n).repeat(times), torch.arange(times)
    A = SparseSample.from_coo(
        row, col.repeat_interleave(n), None, (times, times)
    )
    p = torch.tensor(probs).double().repeat(times)
    with program_scope(make_key(4)):
        S = dep_round(A, p, round(sum(probs)))
    counts = Counter(map(tuple, S.coo()[0].view(times, -1).tolist()))
    assert set(counts) <= set(expected)
    cells = sorted((p * times, counts[s]) for s, p in expected.items())
    while len(cells) > 1 and cells[0][0] < 5:  # rare outcomes count as one
        (p, n), (q, m), *rest = cells
        cells = sorted([(p + q, n + m), *rest])
    if len(cells) > 1:
        wanted, observed = zip(*cells, strict=True)
        assert chi_square_p(observed, wanted) > 0.001


def test_the_reference_keeps_probabilities():
    for probs in PROBS:
        mean = [0.0] * len(probs)
        for sample, p in rounded(probs).items():
            assert len(sample) == round(sum(probs))
            for i in sample:
                mean[i] += p
        assert mean == pytest.approx(probs)


@pytest.mark.parametrize('k', [1, 2, 5, 40])
def test_columns_draw_distinct_edges_by_their_probabilities(k):
    """Also where edges are stored by row, and values are not by column."""
    A = skewed_graph()
    for sub in (A, A.T.T, type(A).from_csr(*A.to_csr(), num_cols=40)):
        size = sub.degree(dim=0).clamp(max=k)
        weight = sub.with_value(features(A.num_edges, 1).view(-1) * 2)
        p = inclusion(weight, size, 0.2, k)
        expected = torch.zeros(A.num_edges).double()
        expected[sub.edge_id] = p

        def drawn(sub=sub, p=p, size=size):
            S = dep_round(sub, p, k)
            assert torch.equal(S.degree(dim=0), size)
            count = S.edge_id.bincount(minlength=A.num_edges)
            assert count.max() == 1
            return count.double()

        assert_mean(runs(drawn, 700), expected)


def test_columns_of_one_node_draw_the_same():
    A = skewed_graph()
    sub = A[:, torch.tensor([3, 0, 3])]
    size = sub.degree(dim=0).clamp(max=2)
    S = dep_round(sub, inclusion(sub, size, 0.5, 2), 2)
    column = S.coo()[1]
    assert torch.equal(S.edge_id[column == 0], S.edge_id[column == 2])


def capped(weight, m, eta):
    """EXP3.M: caps the greatest weights, one by one."""
    n = len(weight)
    if n <= m:
        return [1.0] * n
    held = set()
    while True:
        rest = sum(w for i, w in enumerate(weight) if i not in held)
        share = m - len(held) - m * eta / n * (n - len(held))
        p = [
            1.0 if i in held else share * w / rest + m * eta / n
            for i, w in enumerate(weight)
        ]
        over = [i for i, x in enumerate(p) if x >= 1 and i not in held]
        if not over:
            return p
        held.add(max(over, key=lambda i: weight[i]))


@pytest.mark.parametrize('spread', [0.0, 1.0, 8.0, 900.0])
@pytest.mark.parametrize('eta', [0.01, 0.4, 1.0])
@pytest.mark.parametrize('k', [1, 3, 7])
def test_probabilities_are_those_of_exp3_m(k, eta, spread):
    """Also where exponentials of weights would not be finite."""
    A = skewed_graph()
    logits = A.with_value(features(A.num_edges, 1).view(-1) * spread)
    size = A.degree(dim=0).clamp(max=k)
    p = A.with_value(inclusion(logits, size, eta, k))
    torch.testing.assert_close(p.sum(dim=0), size.double())
    column = A.coo()[1]
    if spread == 900:
        least = (k * eta / A.degree(dim=0).double())[column].clamp(max=1)
        assert (p.values() >= least - 1e-9).all()
        return
    for v in range(40):
        mine = column == v
        expected = capped(logits.values()[mine].exp().tolist(), k, eta)
        assert p.values()[mine].tolist() == pytest.approx(expected)


def test_an_estimate_of_distinct_edges_is_unbiased():
    A, x = skewed_graph(), features(40)
    bandit = GCNBS(A.num_edges, eta=0.2, replace=False).double()
    bandit.log_weight.copy_(features(A.num_edges, 1).view(-1) * 2)
    seeds = torch.tensor([0, 3, 17])
    samples = runs(lambda: bandit(A, seeds, [3])[0].T @ x, 1000)
    assert_mean(samples, A[:, seeds].T @ x)


def test_an_update_is_that_of_exp3_m():
    """By loops; edges that are drawn for certain keep their weights."""
    A, h = skewed_graph(), features(40, 2)
    options = {'eta': 0.3, 'delta': 0.5, 'max_step': 0.05, 'replace': False}
    bandit = GCNBS(A.num_edges, **options).double()
    bandit.log_weight.copy_(2 * features(A.num_edges, 1).view(-1))
    before = bandit.log_weight.clone()
    layers = bandit(A, torch.tensor([3, 30, 17]), [4, 2])
    bandit.update(A, layers, [h[S.row()] for S in layers])
    value, steps = A.to_dense(), torch.zeros(A.num_edges).double()
    certain = 0
    for S, k in zip(layers, [4, 2], strict=True):
        for u, v, e in zip(*S.edges(), S.edge_id, strict=True):
            edges = A[:, [int(v)]].edge_id
            weight = before[edges].exp().tolist()
            p = capped(weight, k, 0.3)[edges.tolist().index(int(e))]
            certain += p == 1
            if p < 1:
                reward = (value[u, v] / p * h[u]).square().sum()
                steps[e] += 0.5 * reward / (p * len(weight))
    assert certain > 0
    steps = steps.clamp(max=0.05)
    assert 0 < int((steps == 0.05).sum()) < int((steps > 0).sum())
    torch.testing.assert_close(bandit.log_weight, before + steps)


def test_mass_moves_to_the_arms_of_large_activations():
    A, h = star(8), torch.full((9, 1), 0.1)
    h[[2, 5]] = 3.0
    bandit = GCNBS(8, delta=1e-2, replace=False)
    for step in range(400):
        with program_scope(make_key(2, batch=step)):
            [S] = bandit(A, torch.tensor([0]), [3])
        assert S.num_edges == 3
        bandit.update(A, [S], [h[S.row()]])
    p = bandit.chances(A[:, :1], torch.tensor([3]))
    assert p[[1, 4]].min() > 0.8
    assert p[[0, 2, 3, 5, 6, 7]].max() < 0.5


@pytest.mark.parametrize('k', [1, 5])
def test_columns_without_edges_draw_nothing(k):
    A = star(3)
    bandit = GCNBS(3, replace=False)
    for seeds in (torch.tensor([1, 2]), torch.tensor([], dtype=torch.int64)):
        [S] = bandit(A, seeds, [k])
        assert S.num_edges == 0
        bandit.update(A, [S], [torch.ones(0, 1)])
    [S] = bandit(A, torch.tensor([1, 0]), [k])
    assert S.degree(dim=0).tolist() == [0, min(k, 3)]


def test_a_fan_out_is_positive():
    bandit = GCNBS(3, replace=False)
    for k in (0, -1):
        with pytest.raises(ValueError, match=rf'GCNBS: .* \(got {k}\)'):
            bandit(star(3), torch.tensor([0]), [k])
