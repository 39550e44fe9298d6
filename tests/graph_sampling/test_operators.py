"""The operators equal plain loops, and keep their promises."""

from itertools import product

import pytest
import torch
from scipy.stats import binomtest
from torch_geometric.data import Data

from tests.graph_sampling import reference
from torch_gsample import graph_sampling as gs
from torch_gsample.datasets import power_law


def small_graph(size=30, num_edges=120, seed=0):
    """With parallel edges, self-loops, a hub and isolated vertices."""
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(size - 3, (2, num_edges), generator=generator)
    edge_index[0, : num_edges // 4] = 1
    edge_index[:, -1] = edge_index[:, -2]
    return Data(
        edge_index=edge_index,
        x=torch.arange(size).view(-1, 1) * 10,
        edge_attr=torch.arange(num_edges),
        num_nodes=size,
    )


def pairs(data):
    return list(zip(*data.edge_index.tolist(), strict=True))


def operators(data, fraction, seed, **kwargs):
    """Each operator's sample, and the reference's."""
    edges, size = pairs(data), data.num_nodes
    yield (
        gs.random_vertex(data, fraction, seed=seed, **kwargs),
        reference.random_vertex(edges, size, fraction, seed, **kwargs),
    )
    for direction, keep_edges in product(
        ('in', 'out', 'both'), ('incident', 'induced')
    ):
        kept = kwargs | {'keep_edges': keep_edges}
        yield (
            gs.random_vertex_neighborhood(
                data, fraction, direction, seed=seed, **kept
            ),
            reference.random_vertex_neighborhood(
                edges, size, fraction, direction, seed, **kept
            ),
        )
    for walkers, p in ((1, 0.1), (4, 0.0), (7, 1.0), (50, 0.3)):
        yield (
            gs.random_walk(data, fraction, walkers, p, seed=seed, **kwargs),
            reference.random_walk(
                edges, size, fraction, walkers, p, seed, **kwargs
            ),
        )


@pytest.mark.parametrize('keep_isolated', [False, True])
@pytest.mark.parametrize('fraction', [0, 0.05, 0.5, 1.0])
def test_operators_equal_the_reference(fraction, keep_isolated):
    for seed in (0, 7, 2**63 + 5):
        data = small_graph()
        for got, expected in operators(
            data, fraction, seed, keep_isolated=keep_isolated
        ):
            assert reference.as_lists(got) == expected


def test_a_neighborhood_has_the_edges_that_touch_a_drawn_vertex():
    """Vertex 0 alone is drawn: 1 -> 2 joins two of its neighbours."""
    data = Data(
        edge_index=torch.tensor([[0, 0, 1, 2, 3], [1, 2, 2, 0, 1]]),
        num_nodes=4,
    )
    seed = next(
        seed
        for seed in range(1000)
        if gs.random_vertex(
            data, 0.1, seed=seed, keep_isolated=True
        ).n_id.tolist()
        == [0]
    )
    for direction, keep_edges, expected in (
        ('out', 'incident', [0, 1]),
        ('in', 'incident', [3]),
        ('both', 'incident', [0, 1, 3]),
        ('out', 'induced', [0, 1, 2, 3]),
        ('in', 'induced', [1, 3]),
        ('both', 'induced', [0, 1, 2, 3]),
    ):
        sample = gs.random_vertex_neighborhood(
            data, 0.1, direction, seed=seed, keep_edges=keep_edges
        )
        assert sample.e_id.tolist() == expected


def test_a_neighborhood_of_a_few_vertices_has_a_few_edges():
    """A share f touches 1 - (1 - f)^2 of the edges; induced ones are most."""
    graph = power_law(20_000, 320_000, 2000)
    edge_index = torch.stack([graph.indices, graph.col()]).long()
    data = Data(edge_index=edge_index, num_nodes=20_000)
    sample = gs.random_vertex_neighborhood(data, 0.02, seed=1)
    assert abs(sample.num_edges / 320_000 - 0.04) < 0.02
    whole = gs.random_vertex_neighborhood(
        data, 0.02, seed=1, keep_edges='induced'
    )
    assert whole.num_edges / 320_000 > 0.3


@pytest.mark.parametrize('fraction', [0, 0.3, 1.0])
def test_random_edge_equals_the_reference(fraction):
    data = small_graph()
    for ids in (None, torch.arange(data.num_edges) * 3):
        got = gs.random_edge(data, fraction, seed=5, edge_id=ids)
        expected = reference.random_edge(
            pairs(data), 30, fraction, 5, None if ids is None else ids.tolist()
        )
        assert reference.as_lists(got) == expected


def test_attributes_go_along():
    data = small_graph()
    for out in (
        gs.random_vertex(data, 0.6, seed=1),
        gs.random_edge(data, 0.3, seed=1),
        gs.random_walk(data, 0.5, seed=1),
    ):
        assert torch.equal(out.x.view(-1), out.n_id * 10)
        assert torch.equal(out.edge_attr, out.e_id)
        assert torch.equal(
            out.n_id[out.edge_index], data.edge_index[:, out.e_id]
        )


def test_a_walk_visits_the_requested_share():
    data = small_graph()
    for fraction, expected in ((0.5, 15), (0.51, 16), (1.0, 30)):
        out = gs.random_walk(
            data, fraction, 4, 0.1, seed=2, keep_isolated=True
        )
        assert out.num_nodes == expected


def test_empty_graphs_give_empty_samples():
    data = Data(edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=0)
    for out in (
        gs.random_vertex(data, 0.5),
        gs.random_edge(data, 0.5),
        gs.random_vertex_neighborhood(data, 0.5),
        gs.random_walk(data, 0.5),
    ):
        assert out.num_nodes == 0
        assert out.num_edges == 0


def test_without_a_seed_the_default_generator_decides():
    data = small_graph()
    torch.manual_seed(3)
    first, second = (gs.random_vertex(data, 0.5).n_id for _ in range(2))
    assert not torch.equal(first, second)
    torch.manual_seed(3)
    assert torch.equal(gs.random_vertex(data, 0.5).n_id, first)


def test_shares_are_the_requested_ones():
    graph = power_law(20_000, 100_000, 300)
    edge_index = torch.stack([graph.indices, graph.col()]).long()
    data = Data(edge_index=edge_index, num_nodes=20_000)
    kept = gs.random_vertex(data, 0.2, seed=1, keep_isolated=True).num_nodes
    assert binomtest(kept, 20_000, 0.2).pvalue > 0.001
    ids = torch.arange(100_000)
    for edge_id in (ids, None):
        kept = gs.random_edge(data, 0.2, seed=1, edge_id=edge_id).num_edges
        assert binomtest(kept, 100_000, 0.2).pvalue > 0.0001


BAD = [
    (gs.random_vertex, dict(fraction=1.5), ValueError, 'fraction'),
    (gs.random_vertex, dict(fraction=-0.1), ValueError, 'fraction'),
    (gs.random_edge, dict(fraction=float('nan')), ValueError, 'fraction'),
    (gs.random_edge, dict(fraction='1'), TypeError, 'fraction'),
    (
        gs.random_edge,
        dict(fraction=1, edge_id=torch.arange(3)),
        ValueError,
        'edge_id',
    ),
    (
        gs.random_vertex_neighborhood,
        dict(fraction=1, direction='up'),
        ValueError,
        'direction',
    ),
    (
        gs.random_vertex_neighborhood,
        dict(fraction=1, keep_edges='all'),
        ValueError,
        'keep_edges',
    ),
    (gs.random_walk, dict(fraction=1, walkers=0), ValueError, 'walkers'),
    (
        gs.random_walk,
        dict(fraction=1, jump_probability=2),
        ValueError,
        'jump_probability',
    ),
]


@pytest.mark.parametrize(('function', 'kwargs', 'error', 'name'), BAD)
def test_bad_arguments_are_named(function, kwargs, error, name):
    with pytest.raises(error, match=f"{function.__name__}: '{name}'"):
        function(small_graph(), **kwargs)


def test_bad_graphs_are_refused():
    with pytest.raises(TypeError, match="random_vertex: 'data'"):
        gs.random_vertex(torch.zeros(2, 3), 0.5)
    data = Data(edge_index=torch.tensor([[0], [9]]), num_nodes=3)
    with pytest.raises(IndexError, match=r"random_edge: 'edge_index'.*9"):
        gs.random_edge(data, 0.5)
