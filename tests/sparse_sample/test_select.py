"""Selections: validity, distributions, and the same draws everywhere."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.sampler import NodeSamplerInput

from tests.sparse_sample.cases import case, with_cases
from torch_gsample import NeighborSampler, SparseSample
from torch_gsample.rng import batch_scope, make_key, program_scope
from torch_gsample.sparse_sample.labor import importance_of, inclusion
from torch_gsample.sparse_sample.select import random_walk_step
from torch_gsample.testing import random_graph


def graph(num_nodes=40, num_edges=400):
    g = random_graph(num_nodes, num_edges, seed=1)
    generator = torch.Generator().manual_seed(2)
    value = torch.rand(num_edges, generator=generator)
    value[::7] = 0
    return SparseSample.from_csc(g.indptr, g.indices, value)


def assert_part_of(S, A):
    """Asserts that the edges of `S` are edges of `A`, with their values."""
    at = {e: i for i, e in enumerate(A.edge_id.tolist())}
    index = torch.tensor(
        [at[e] for e in S.edge_id.tolist()], dtype=torch.int64
    )
    assert torch.equal(
        torch.stack(S.edges()), torch.stack(A.edges())[:, index]
    )
    assert torch.equal(S.values(), A.values()[index])


@with_cases
@pytest.mark.parametrize('k', [0, 1, 2, 100, -1])
def test_individual_samples_are_valid(c, k):
    A = c.matrix
    S = A.individual_sample(k)
    assert_part_of(S, A)
    degree = A.degree(0)
    assert torch.equal(S.degree(0), degree if k < 0 else degree.clamp(max=k))
    assert S.edge_id.unique().numel() == S.num_edges
    R = A.individual_sample(k, replace=True)
    assert_part_of(R, A)
    count = degree if k < 0 else torch.where(degree > 0, k, 0)
    assert torch.equal(R.degree(0), count)


def test_edges_of_probability_zero_are_never_sampled():
    A = graph()
    positive = A.with_value((A.value > 0).double()).sum(0)
    for k, replace in ((3, False), (100, False), (5, True)):
        for probs in (A.value, A, A.value.double(), A.T.T):
            S = A.individual_sample(k, probs, replace)
            assert bool((S.value > 0).all())
            want = positive.clamp(max=k) if not replace else k + 0 * positive
            assert torch.equal(S.degree(0), want.long())
    none = A.individual_sample(3, torch.zeros(A.num_edges))
    assert none.num_edges == 0


def test_probabilities_follow_the_values_of_a_matrix_by_rows():
    A = graph()
    B = SparseSample.from_csr(*A.to_csr())
    S = B.individual_sample(100, B.value)
    assert bool((S.value > 0).all())
    assert S.num_edges == int((A.value > 0).sum())


def test_weighted_samples_follow_their_weights():
    size, weight = 40_000, torch.tensor([1.0, 2.0, 3.0, 4.0])
    A = SparseSample.from_coo(
        torch.arange(4).repeat(size),
        torch.arange(size).repeat_interleave(4),
        weight.repeat(size),
        (4, size),
    )
    count = A.individual_sample(1, A.value).degree(1)
    want = weight.double() / 10
    error = (want * (1 - want) / size).sqrt()
    assert bool(((count / size - want).abs() < 4 * error).all())


@with_cases
@pytest.mark.parametrize('k', [0, 1, 3, 100])
def test_collective_samples_are_valid(c, k):
    A = c.matrix
    S = A.collective_sample(k)
    assert_part_of(S, A)
    held = int((A.degree(1) > 0).sum())
    assert S.num_rows == min(k, held)
    assert S.num_cols == A.num_cols
    assert bool((S.degree(1) > 0).all())
    # All edges of a sampled row are kept.
    kept = torch.isin(A.edges()[0], S.row())
    assert S.num_edges == int(kept.sum())


def test_collective_samples_with_probabilities():
    A = graph()
    probs = A.sum(1)
    probs[:30] = 0
    S = A.collective_sample(100, probs)
    assert set(S.row().tolist()) == set(range(30, 40))
    S = A.collective_sample(4, probs)
    assert S.num_rows == 4
    assert int(S.row().min()) >= 30
    R = A.collective_sample(50, probs, replace=True)
    assert R.num_rows == 50
    assert_part_of(R, A)
    # Degrees are integers.
    assert A.collective_sample(4, A.degree(1)).num_rows == 4


def test_collective_frequencies_follow_their_probabilities():
    A = SparseSample.from_coo(torch.arange(4), torch.zeros(4).long())
    probs, size = torch.tensor([0.1, 0.2, 0.3, 0.4]).double(), 20_000
    rows = A.collective_sample(size, probs, replace=True).edges()[0]
    count = torch.bincount(rows, minlength=4)
    error = (probs * (1 - probs) / size).sqrt()
    assert bool(((count / size - probs).abs() < 4 * error).all())


def test_collective_samples_are_uniform_and_by_degree_on_request():
    """gSampler's paper draws by degree where no probabilities are given."""
    row = torch.tensor([0, 1, 1, 1, 3, 3])  # row 2 holds no edge
    A = SparseSample.from_coo(row, torch.tensor([0, 0, 1, 2, 1, 2]))
    size = 20_000
    for probs, expected in (
        (None, [1 / 3, 1 / 3, 0, 1 / 3]),
        (A.degree(dim=1), [1 / 6, 3 / 6, 0, 2 / 6]),
    ):
        S = A.collective_sample(size, probs, replace=True)
        count = torch.bincount(S.row_ids, minlength=4)
        expected = torch.tensor(expected).double()
        error = (expected * (1 - expected) / size).sqrt()
        assert bool(((count / size - expected).abs() <= 4 * error).all())


def test_nothing_is_sampled_of_nothing():
    A = SparseSample.from_coo(
        torch.empty(0).long(), torch.empty(0).long(), shape=(3, 3)
    )
    for replace in (False, True):
        assert A.individual_sample(2, replace=replace).num_edges == 0
        assert A.collective_sample(2, replace=replace).num_edges == 0
    assert A.collective_sample(2, torch.zeros(3)).num_edges == 0
    assert A.labor_sample(2).num_edges == 0
    walkers = torch.tensor([2, 0, 2])
    assert torch.equal(random_walk_step(A, walkers), walkers)


def draws(A):
    return [
        A.individual_sample(3).edge_id,
        A.individual_sample(3).edge_id,
        A.individual_sample(3, A.value, replace=True).edge_id,
        A.collective_sample(9, A.sum(1)).edge_id,
        A.labor_sample(2).edge_id,
        random_walk_step(A, torch.arange(A.num_cols)),
    ]


def equal(left, right):
    return all(map(torch.equal, left, right))


def test_a_sample_is_a_function_of_its_key_for_any_threads():
    A, outs = graph(3_000, 60_000), []
    for threads in (1, 2, 4):
        torch.set_num_threads(threads)
        with program_scope(make_key(3, 1, 4)):
            outs.append(draws(A))
    torch.set_num_threads(1)
    assert equal(outs[0], outs[1])
    assert equal(outs[0], outs[2])
    # Draws of a program are numbered, and keys differ.
    assert not torch.equal(outs[0][0], outs[0][1])
    with program_scope(make_key(3, 1, 5)):
        assert not equal(draws(A)[:1], outs[0][:1])


def test_torch_seeds_programs_without_a_scope():
    A, outs = graph(), []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        outs.append(draws(A))
    assert equal(outs[0], outs[1])
    assert not equal(outs[0], outs[2])
    assert not torch.equal(outs[0][0], outs[0][1])


@pytest.mark.parametrize('replace', [False, True])
def test_a_hop_of_the_neighbor_sampler_draws_the_same(replace):
    g = random_graph(40, 400, seed=1)
    data = Data(edge_index=torch.stack([g.indices, g.col()]), num_nodes=40)
    seeds = torch.tensor([7, 3, 21, 0])
    sampler = NeighborSampler(data, [4], replace=replace, seed=12)
    with batch_scope(2, 5):
        out = sampler.sample_from_nodes(NodeSamplerInput(None, seeds))
    A = SparseSample.from_data(data)
    with program_scope(make_key(12, 2, 5)):
        S = A[:, seeds].individual_sample(4, replace=replace)
    mine = SparseSample.to_sampler_output([S])
    for name in ('node', 'row', 'col', 'edge'):
        want = getattr(out, name)
        assert want is None or torch.equal(getattr(mine, name), want), name
    assert list(mine.num_sampled_nodes) == list(out.num_sampled_nodes)
    assert list(mine.num_sampled_edges) == list(out.num_sampled_edges)


def test_columns_of_one_node_draw_alike_and_walkers_do_not():
    A = graph()
    S = A[:, [5, 5]].individual_sample(3)
    first, second = S.edge_id.view(2, -1)
    assert torch.equal(first, second)
    steps = random_walk_step(A, torch.full((200,), 5))
    assert steps.unique().numel() > 3


def test_steps_of_walks_follow_edges():
    A = case('isolated').matrix
    walkers = torch.tensor([0, 1, 2, 3, 4, 1], dtype=torch.int32)
    out = random_walk_step(A, walkers)
    row, col = A.coo()
    edges = set(zip(row.tolist(), col.tolist(), strict=True))
    for node, to in zip(walkers.tolist(), out.tolist(), strict=True):
        assert (to, node) in edges or (to == node and node in (2, 3))
    A = graph()
    probs = (A.coo()[0] < 20).double()
    out = random_walk_step(A, torch.arange(40).repeat(20), probs)
    assert int(out.max()) < 20


def test_steps_of_walks_in_a_part_are_by_position():
    row, col = torch.tensor([7, 7, 2, 9]), torch.tensor([9, 2, 7, 2])
    A = SparseSample.from_coo(row, col, shape=(10, 10))
    rows, cols = torch.tensor([2, 9, 7]), torch.tensor([9, 7, 0])
    part = A[rows, cols]
    out = random_walk_step(part, torch.tensor([1, 0, 2]))
    assert rows[out[:2]].tolist() == [2, 7]
    assert out.tolist() == [0, 2, 2]  # column 2 has no edge


def labor_frequencies(A, k, importance, rounds):
    count = torch.zeros(A.num_edges, dtype=torch.float64)
    for batch in range(rounds):
        with program_scope(make_key(7, 0, batch)):
            count[A.labor_sample(k, importance).edge_id] += 1
    return count / rounds


@pytest.mark.parametrize('weighted', [False, True])
def test_labor_includes_edges_as_its_formula_says(weighted):
    A, k, rounds = graph(20, 120), 3, 4_000
    importance = torch.linspace(0.5, 4, 20).double() if weighted else None
    probs = inclusion(A, k, importance)
    # min(1, c_v pi_u), with c_v such that the sum of 1 / p is d^2 / min(k, d).
    degree = A.degree(0).double()
    torch.testing.assert_close(
        A.with_value(1 / probs).sum(0),
        torch.where(degree > 0, degree**2 / degree.clamp(1, k), 0),
        rtol=1e-9,
        atol=0,
    )
    if weighted:
        ratio = A.with_value(probs / importance[A.coo()[0]])
        free = ratio.masked(probs < 1)
        low = ratio.masked(probs < 1).min(0)
        assert bool((free.max(0) - low < 1e-9).all())
        # One that is held at 1 would pass it.
        held = ratio.masked(probs >= 1)
        scale = free.max(0)[held.coo()[1]]
        assert bool((held.value <= scale + 1e-9).logical_or(scale == 0).all())
    else:
        c = k / A.degree(0).clamp(min=1).double()
        torch.testing.assert_close(probs, c.clamp(max=1)[A.coo()[1]])
    found = labor_frequencies(A, k, importance, rounds)
    error = (probs * (1 - probs) / rounds).sqrt()
    assert bool(((found - probs).abs() <= 4 * error + 1e-12).all())


def test_labor_shares_rows_and_importance_lowers_their_number():
    A, k = graph(400, 8_000), 5

    def rows(S):
        return S.row().numel()

    labor = sum(rows(A[:, :60].labor_sample(k)) for _ in range(20))
    each = sum(rows(A[:, :60].individual_sample(k)) for _ in range(20))
    assert labor < each
    part = A[:, :60]
    weights = importance_of(part, k, 3)
    better = sum(rows(part.labor_sample(k, weights)) for _ in range(20))
    assert better < labor
    assert_part_of(part.labor_sample(k, weights), A)
