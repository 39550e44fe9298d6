"""GraphSAINT draws by its laws, and its normalisation removes the bias."""

import math

import pytest
import torch

from tests.algorithms.checks import (
    chi_square_p,
    neighbors,
    random_graph,
    undirected,
    within_4_standard_errors,
)
from torch_gsample import SparseSample
from torch_gsample.algorithms import (
    saint_edge,
    saint_frontier,
    saint_node,
    saint_norm,
    saint_normalize,
    saint_walk,
)
from torch_gsample.rng import make_key, program_scope

NUM_DRAWS = 1000


def normalised():
    A = random_graph(20, 4)
    return A.div(A.sum(dim=0), dim=0)


def walk_from_uniform_roots(A):
    return saint_walk(A, torch.randint(A.num_rows, (3,)), 2)


def frontier_of_uniform_roots(A):
    return saint_frontier(A, torch.randint(A.num_rows, (3,)), 4)


DRAWS = {
    'node': lambda A: saint_node(A, 6),
    'edge': lambda A: saint_edge(A, 4),
    'walk': walk_from_uniform_roots,
    'frontier': frontier_of_uniform_roots,
}


def draw_many(name, A, seed):
    with program_scope(make_key(seed)):
        return [DRAWS[name](A) for _ in range(NUM_DRAWS)]


def membership(A, samples):
    out = torch.zeros(len(samples), A.num_cols, dtype=torch.float64)
    for i, sample in enumerate(samples):
        out[i, sample.col_ids] = 1
    return out


@pytest.mark.parametrize('name', DRAWS)
def test_subgraphs_are_induced(name):
    A = normalised()
    dense = A.to_dense()
    for sample in draw_many(name, A, 0)[:20]:
        nodes = sample.col_ids
        assert torch.equal(nodes, nodes.unique())
        assert torch.equal(sample.to_dense(), dense[nodes][:, nodes])


def test_node_sampler_draws_by_squared_norm():
    A = normalised()
    p = (A.to_dense().double() ** 2).sum(1)
    truth = 1 - (1 - p / p.sum()) ** 6  # in one of 6 draws
    samples = membership(A, draw_many('node', A, 1))
    assert within_4_standard_errors(samples, truth)


def test_edge_sampler_draws_by_inverse_degrees():
    A = normalised()
    u, v = A.coo()
    degree = A.degree(0).double()
    p = 1 / degree[u] + 1 / degree[v]
    p /= p.sum()
    touched = torch.stack([p[(u == i) | (v == i)].sum() for i in range(20)])
    samples = membership(A, draw_many('edge', A, 2))
    assert within_4_standard_errors(samples, 1 - (1 - touched) ** 4)


def test_edges_of_a_directed_graph_are_drawn_by_the_degrees_of_their_ends():
    """Out-edges of the source, in-edges of the destination."""
    u = torch.tensor([0, 0, 0, 0, 5, 6, 7, 8])
    v = torch.tensor([1, 2, 3, 4, 9, 9, 9, 10])
    A = SparseSample.from_edge_index(torch.stack([u, v]))
    p = torch.tensor([5 / 4] * 4 + [4 / 3] * 3 + [2.0]).double()
    with program_scope(make_key(7)):
        draws = [saint_edge(A, 1).col_ids for _ in range(NUM_DRAWS)]
    drawn = torch.stack(
        [torch.isin(u, nodes) & torch.isin(v, nodes) for nodes in draws]
    )
    assert (drawn.sum(dim=1) == 1).all()
    assert within_4_standard_errors(drawn.double(), p / p.sum())


def frontier_law(near, frontier, steps):
    """The probability of each set of nodes that walkers left."""
    if steps == 0 or not any(near[v] for v in frontier):
        return {frozenset(): 1.0}
    total, out = sum(len(near[v]) for v in frontier), {}
    for i, v in enumerate(frontier):
        for to in near[v]:
            moved = (*frontier[:i], to, *frontier[i + 1 :])
            for left, p in frontier_law(near, moved, steps - 1).items():
                left |= {v}
                out[left] = out.get(left, 0) + p / total
    return out


@pytest.mark.parametrize('roots', [(0, 3), (2, 2, 5), (6, 1), (6,)])
def test_frontiers_move_the_walkers_of_high_degree(roots):
    """The distribution of all subgraphs of three steps; node 6 is alone."""
    pairs = {(0, 1), (0, 2), (0, 3), (2, 3), (3, 4), (4, 5)}
    A, times = undirected(pairs, 7), 1500
    law, expected = frontier_law(neighbors(A), roots, 3), {}
    for left, p in law.items():
        nodes = left | set(roots)
        expected[nodes] = expected.get(nodes, 0) + p
    assert math.isclose(sum(expected.values()), 1)
    counts = dict.fromkeys(expected, 0)
    for key in range(times):
        with program_scope(make_key(8, batch=key)):
            out = saint_frontier(A, torch.tensor(roots), 3)
        assert torch.equal(out.row_ids, out.col_ids)
        counts[frozenset(out.col_ids.tolist())] += 1
    cells = sorted((p * times, counts[s]) for s, p in expected.items())
    while len(cells) > 1 and cells[0][0] < 5:  # rare outcomes count as one
        (p, n), (q, m), *rest = cells
        cells = sorted([(p + q, n + m), *rest])
    if len(cells) > 1:
        wanted, observed = zip(*cells, strict=True)
        assert chi_square_p(observed, wanted) > 0.001


def test_a_frontier_without_walkers_or_steps_is_its_roots():
    A = random_graph(9)
    none = torch.tensor([], dtype=torch.int64)
    assert saint_frontier(A, none, 5).shape == (0, 0)
    out = saint_frontier(A, torch.tensor([4, 2, 4]), 0)
    assert out.col_ids.tolist() == [2, 4]


@pytest.mark.parametrize('name', DRAWS)
def test_normalisation_makes_the_loss_unbiased(name):
    A = normalised()
    loss = torch.arange(20.0) ** 2
    with program_scope(make_key(3)):
        norm = saint_norm(A, lambda: DRAWS[name](A), NUM_DRAWS)
    weight = (norm.node * loss).double()
    samples = membership(A, draw_many(name, A, 4)) @ weight
    # The normalisation is estimated from as many draws: twice the variance.
    error = math.sqrt(2) * samples.std() / math.sqrt(NUM_DRAWS)
    assert abs(samples.mean() - loss.mean()) <= 4 * error
    biased = membership(A, draw_many(name, A, 4)) @ loss.double() / 20
    assert abs(biased.mean() - loss.mean()) > 4 * error


@pytest.mark.parametrize('name', DRAWS)
def test_normalisation_makes_the_aggregation_unbiased(name):
    A = normalised()
    x = torch.arange(20.0) ** 2
    truth = (x @ A).double()
    with program_scope(make_key(5)):
        norm = saint_norm(A, lambda: DRAWS[name](A), NUM_DRAWS)
    values = [[] for _ in range(20)]
    plain = [[] for _ in range(20)]
    for sample in draw_many(name, A, 6):
        total = x[sample.row_ids] @ saint_normalize(sample, norm)
        raw = x[sample.row_ids] @ sample
        for v, a, b in zip(
            sample.col_ids.tolist(), total.tolist(), raw.tolist(), strict=True
        ):
            values[v].append(a)
            plain[v].append(b)
    for v in range(20):
        got = torch.tensor(values[v], dtype=torch.float64)
        error = math.sqrt(2) * got.std() / math.sqrt(got.numel())
        assert abs(got.mean() - truth[v]) <= 4 * error, v
        assert sum(plain[v]) / len(plain[v]) < truth[v] - 4 * error, v


def test_factors_are_counted_by_edge_id():
    """Also where values are not in the order of the edge index."""
    A = random_graph(8, 3)
    sample = A.induce(torch.tensor([1, 2, 3, 5]))
    other = A.induce(torch.tensor([1, 2]))
    subgraphs = iter([sample, other, sample])
    norm = saint_norm(A, lambda: next(subgraphs), 3)
    count = {1: 3, 2: 3, 3: 2, 5: 2}
    for v in range(8):
        expected = 3 / (8 * count.get(v, 1))
        assert math.isclose(float(norm.node[v]), expected, rel_tol=1e-6)
    u, v = sample.edges()
    for a, b, e in zip(
        u.tolist(), v.tolist(), sample.edge_id.tolist(), strict=True
    ):
        both = 3 if {a, b} == {1, 2} else 2
        assert math.isclose(norm.edge[e], count[b] / both, rel_tol=1e-6)


def test_normalisation_needs_draws():
    with pytest.raises(ValueError, match="'num_draws' must be positive"):
        saint_norm(normalised(), lambda: None, 0)
