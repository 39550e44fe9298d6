"""GraphSAINT's loaders: fields, laws, normalisation, one sample everywhere."""

import math

import pytest
import torch
from torch_geometric.data import Data

from tests.algorithms.checks import chi_square_p
from tests.loader.batches import run
from tests.samplers import graphs
from torch_gsample.loader import (
    GraphSAINTEdgeSampler,
    GraphSAINTNodeSampler,
    GraphSAINTRandomWalkSampler,
)


@pytest.fixture(autouse=True)
def _one_thread():
    """Thousands of tiny samples are drawn fastest by one thread."""
    torch.set_num_threads(1)


KINDS = [
    GraphSAINTNodeSampler,
    GraphSAINTEdgeSampler,
    GraphSAINTRandomWalkSampler,
]


def cyclic(num_nodes=30, num_edges=120, **attributes):
    """Every node has an in-edge and an out-edge."""
    data = graphs.homogeneous(num_nodes, num_edges, **attributes)
    path = torch.arange(num_nodes)
    ring = torch.stack([path, (path + 1) % num_nodes])
    data.edge_index = torch.cat([data.edge_index, ring], 1)
    data.edge_attr = torch.arange(num_edges + num_nodes)
    return data


def loader_of(kind, data=None, num_draws=6, **options):
    data = cyclic() if data is None else data
    args = (num_draws, 2) if kind is KINDS[2] else (num_draws,)
    return kind(data, *args, **({'seed': 0, 'log': False} | options))


@pytest.mark.parametrize('kind', KINDS)
def test_batches_have_pygs_fields(kind):
    data = cyclic(y=torch.arange(30) * 2, name='ring')
    data.wide = torch.randn(30, 20)
    loader = loader_of(kind, data, num_steps=7, sample_coverage=3)
    assert len(loader) == len(list(loader)) == 7
    for batch in loader:
        assert set(batch.keys()) == {
            *('x', 'edge_index', 'edge_attr', 'num_nodes', 'y', 'name'),
            *('node_norm', 'edge_norm', 'wide'),
        }
        node = batch.x.view(-1)
        assert batch.num_nodes == node.numel() == len(set(node.tolist()))
        assert torch.equal(batch.y, node * 2)
        assert torch.equal(batch.wide, data.wide[node])
        nodes = set(node.tolist())
        expected = [
            e
            for e, (u, v) in enumerate(data.edge_index.t().tolist())
            if u in nodes and v in nodes
        ]
        assert sorted(batch.edge_attr.tolist()) == expected
        ends = data.edge_index[:, batch.edge_attr]
        assert torch.equal(node[batch.edge_index], ends)
        assert torch.equal(batch.node_norm, loader.node_norm[node])
        assert torch.equal(batch.edge_norm, loader.edge_norm[batch.edge_attr])
        assert batch.node_norm.dtype == batch.edge_norm.dtype == torch.float32
    assert 'node_norm' not in next(iter(loader_of(kind, data)))


def degrees(data):
    source, target = data.edge_index
    size = data.num_nodes
    return (
        torch.bincount(source, minlength=size).double(),
        torch.bincount(target, minlength=size).double(),
    )


def law_of_nodes(data):
    source, target = data.edge_index
    weight = 1 / degrees(data)[1][target] ** 2
    law = torch.zeros(data.num_nodes).double().index_add(0, source, weight)
    return law / law.sum()


def law_of_edges(data):
    source, target = data.edge_index
    out_degree, in_degree = degrees(data)
    law = 1 / out_degree[source] + 1 / in_degree[target]
    return law / law.sum()


def test_nodes_are_drawn_by_their_norm():
    """One draw each: the subgraph is the drawn node."""
    data = cyclic(num_nodes=12, num_edges=40)
    loader = loader_of(KINDS[0], data, 1, num_steps=3000, prefetch=0)
    count = torch.zeros(12)
    for batch in loader:
        count[batch.x.view(-1)] += 1
    expected = law_of_nodes(data) * 3000
    assert chi_square_p(count.tolist(), expected.tolist()) > 0.001
    uniform = degrees(data)[0] / data.num_edges * 3000  # PyG's law
    assert chi_square_p(count.tolist(), uniform.tolist()) < 0.001


def simple(num_nodes=10):
    """At most one edge between two nodes: the ends tell the edge."""
    generator = torch.Generator().manual_seed(3)
    pairs = {(v, (v + 1) % num_nodes) for v in range(num_nodes)}
    for _ in range(40):
        u, v = torch.randint(num_nodes, (2,), generator=generator).tolist()
        if u != v and (v, u) not in pairs:
            pairs.add((u, v))
    edge_index = torch.tensor(sorted(pairs)).t()
    return Data(
        x=torch.arange(num_nodes).view(-1, 1),
        edge_index=edge_index,
        edge_attr=torch.arange(len(pairs)),
    )


def test_edges_are_drawn_by_the_degrees_of_their_ends():
    data = simple()
    loader = loader_of(KINDS[1], data, 1, num_steps=3000, prefetch=0)
    count = torch.zeros(data.num_edges)
    for batch in loader:
        count[batch.edge_attr] += 1
    assert count.sum() == 3000
    expected = law_of_edges(data) * 3000
    assert chi_square_p(count.tolist(), expected.tolist()) > 0.001
    out_degree, in_degree = degrees(data)
    source, target = data.edge_index
    theirs = out_degree[source] + in_degree[target]  # PyG's law
    theirs = theirs / theirs.sum() * 3000
    assert chi_square_p(count.tolist(), theirs.tolist()) < 0.001


def test_walks_start_anywhere_and_follow_edges():
    data = simple()
    loader = kind_of_walk(data)
    size = data.num_nodes
    step = torch.zeros(size, size, dtype=torch.float64)
    for u, v in data.edge_index.t().tolist():
        step[u, v] += 1
    step /= step.sum(1, keepdim=True)
    # One step: the pair of nodes tells the walk, as no edge goes back.
    expected = (step / size)[data.edge_index[0], data.edge_index[1]]
    count = torch.zeros(data.num_edges)
    for batch in loader:
        assert batch.num_nodes == 2
        count[batch.edge_attr] += 1
    assert chi_square_p(count.tolist(), (expected * 3000).tolist()) > 0.001


def kind_of_walk(data):
    return GraphSAINTRandomWalkSampler(
        data, 1, 1, num_steps=3000, seed=0, prefetch=0
    )


@pytest.mark.parametrize('kind', KINDS)
def test_the_normalisation_counts_subgraphs(kind):
    """Where each batch holds the whole graph, all counts are equal."""
    data = Data(
        edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]),
        x=torch.arange(3).view(-1, 1),
    )
    loader = loader_of(kind, data, 200, sample_coverage=5)
    assert torch.allclose(loader.node_norm, torch.full((3,), 1 / 3))
    assert torch.equal(loader.edge_norm, torch.ones(3))


@pytest.mark.parametrize('kind', KINDS)
def test_norms_make_loss_and_aggregation_unbiased(kind):
    data = cyclic(num_nodes=20, num_edges=60)
    loader = loader_of(
        kind, data, 5, num_steps=3000, sample_coverage=1200, prefetch=0
    )
    loss = torch.arange(1.0, 21.0) ** 2
    source, target = data.edge_index
    truth = torch.zeros(20).index_add(0, target, loss[source])
    totals, sums = [], [[] for _ in range(20)]
    for batch in loader:
        node = batch.x.view(-1)
        totals.append(float((loss[node] * batch.node_norm).sum()))
        row, col = batch.edge_index
        message = loss[node][row] * batch.edge_norm
        into = torch.zeros(len(node)).index_add(0, col, message)
        for v, value in zip(node.tolist(), into.tolist(), strict=True):
            sums[v].append(value)
    for samples, mean in ((totals, loss.mean()), *zip(sums, truth, strict=1)):
        samples = torch.tensor(samples, dtype=torch.float64)
        # The factors are estimated from about as many subgraphs.
        error = math.sqrt(2) * samples.std() / math.sqrt(samples.numel())
        assert abs(samples.mean() - mean) <= 4 * error + 1e-5


@pytest.mark.parametrize('kind', KINDS)
def test_set_epoch_returns_to_an_epoch(kind):
    loader = loader_of(kind, num_steps=6, sample_coverage=2)
    expected = [run(loader), run(loader)]
    loader.set_epoch(1)
    assert run(loader) == expected[1]


def test_the_normalisation_does_not_depend_on_the_seed():
    a, b = (loader_of(KINDS[0], seed=s, sample_coverage=3) for s in (1, 2))
    assert torch.equal(a.node_norm, b.node_norm)
    assert torch.equal(a.edge_norm, b.edge_norm)


@pytest.mark.parametrize(
    ('kind', 'options', 'error', 'text'),
    [
        (KINDS[0], {'num_draws': 0}, ValueError, "'batch_size' must be at l"),
        (KINDS[0], {'num_draws': 2.5}, TypeError, "'batch_size' must be an"),
        (KINDS[1], {'num_steps': 0}, ValueError, "'num_steps' must be at le"),
        (KINDS[1], {'sample_coverage': -1}, ValueError, "'sample_coverage' "),
        (KINDS[2], {'prefetch': -1}, ValueError, "'prefetch' must not be ne"),
    ],
)
def test_bad_input(kind, options, error, text):
    with pytest.raises(error, match=f'^{kind.__name__}: {text}'):
        loader_of(kind, **options)


def test_bad_graphs():
    with pytest.raises(ValueError, match=r"'walk_length' .* \(got 0\)"):
        GraphSAINTRandomWalkSampler(cyclic(), 5, 0)
    data = cyclic(node_norm=torch.ones(30))
    with pytest.raises(ValueError, match="must not have 'node_norm'"):
        loader_of(KINDS[0], data)
    none = Data(edge_index=torch.empty(2, 0).long(), num_nodes=3)
    with pytest.raises(ValueError, match="'data' must have edges"):
        loader_of(KINDS[1], none)
    with pytest.raises(TypeError, match=r'must be a Data \(got Het'):
        loader_of(KINDS[0], graphs.heterogeneous())
