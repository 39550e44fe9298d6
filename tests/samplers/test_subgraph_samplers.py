"""ShaDowSampler and SaintSampler: subgraphs, laws, normalisation."""

import math
import pickle

import pytest
import torch
from torch_geometric.data import Data

from tests.algorithms.checks import dense_ppr
from tests.loader.batches import run
from tests.samplers import graphs
from tests.samplers.oracle import fields_of
from torch_gsample import SaintSampler, ShaDowSampler, SparseSample
from torch_gsample.algorithms import saint_frontier
from torch_gsample.loader import NeighborLoader
from torch_gsample.rng import program_scope

DATA = graphs.homogeneous(num_nodes=40, num_edges=160)
TYPED = graphs.heterogeneous()


def loop_induced(nodes, data=DATA):
    """The ids of all edges between some nodes, by a plain loop."""
    nodes = set(nodes)
    return [
        e
        for e, (u, v) in enumerate(data.edge_index.t().tolist())
        if u in nodes and v in nodes
    ]


def ball(seed, hops):
    """The nodes from which a seed is reached."""
    out = {seed}
    for _ in range(hops):
        out |= {u for u, v in DATA.edge_index.t().tolist() if v in out}
    return out


def test_shadow_of_all_neighbours_is_the_ball():
    sampler = ShaDowSampler(DATA, [-1, -1])
    out = sampler.sample_from_nodes(graphs.nodes([3, 20]))
    for i, seed in enumerate((3, 20)):
        own = out.node[out.batch == i].tolist()
        assert set(own) == ball(seed, 2)
        edges = out.edge[out.batch[out.col] == i]
        assert sorted(edges.tolist()) == loop_induced(own)


@pytest.mark.parametrize('replace', [False, True])
def test_shadow_is_bounded(replace):
    sampler = ShaDowSampler(DATA, [2, 2], replace=replace, seed=0)
    out = sampler.sample_from_nodes(graphs.nodes(torch.arange(40)))
    sizes = out.batch.bincount()
    assert sizes.max() <= 7
    plain = ShaDowSampler(DATA, [2, 2], seed=0)
    other = plain.sample_from_nodes(graphs.nodes(torch.arange(40)))
    assert torch.equal(out.node, other.node) != replace


def test_shadow_by_pagerank_takes_the_top_scores():
    sampler = ShaDowSampler(DATA, ppr=5, alpha=0.2, eps=1e-10)
    out = sampler.sample_from_nodes(graphs.nodes([3, 20]))
    exact = dense_ppr(SparseSample.from_data(DATA), 0.2)
    for i, seed in enumerate((3, 20)):
        scores = exact[:, seed].clone()
        scores[seed] = 2
        own = out.node[out.batch == i]
        least = scores[own].min()
        others = scores.index_fill(0, own, 0)
        assert own.numel() == 6
        assert others.max() <= least + 1e-6


def saint(**options):
    options = {'walk_length': 3, 'seed': 0} | options
    return SaintSampler(DATA, **options)


def test_saint_induces_nodes_visited_by_walks():
    out = saint().sample_from_nodes(graphs.nodes([5, 9, 5]))
    assert out.node[:3].tolist() == [5, 9, 5]
    later = out.node.tolist()
    reached, now = {5, 9}, {5, 9}
    for _ in range(3):
        now = {v for u, v in DATA.edge_index.t().tolist() if u in now}
        reached |= now
    assert set(later) <= reached
    assert len(later) > 4
    assert out.batch is None
    single = saint().sample_from_nodes(graphs.nodes([5, 9]))
    assert sorted(single.edge.tolist()) == loop_induced(single.node.tolist())


def frontier(**options):
    return SaintSampler(DATA, frontier_steps=12, **({'seed': 0} | options))


def test_saint_induces_nodes_of_the_frontier_walk():
    out = frontier().sample_from_nodes(graphs.nodes([5, 9]))
    with program_scope(frontier().batch_key(torch.tensor([5, 9]), None)):
        A = SparseSample.from_data(DATA)
        expected = saint_frontier(A, torch.tensor([5, 9]), 12)
    assert set(out.node.tolist()) == set(expected.col_ids.tolist())
    assert sorted(out.edge.tolist()) == loop_induced(out.node.tolist())
    assert 4 < len(out.node) <= 14


def test_norms_of_frontiers_make_the_loss_unbiased():
    loss = torch.arange(1.0, 41.0) ** 2
    sampler = frontier(sample_coverage=1000, batch_size=4)
    loader = NeighborLoader(
        *(DATA,), sampler=sampler, batch_size=4, shuffle=True, prefetch=0
    )
    torch.manual_seed(0)
    estimates = torch.tensor(
        [
            float((loss[batch.n_id] * batch.node_norm).sum())
            for _ in range(100)
            for batch in loader
        ]
    ).double()
    error = math.sqrt(2) * estimates.std() / math.sqrt(estimates.numel())
    assert abs(estimates.mean() - loss.mean()) <= 4 * error


def test_norms_are_factors_of_nodes_and_edges():
    sampler = saint(sample_coverage=20, batch_size=4)
    loader = NeighborLoader(DATA, sampler=sampler, batch_size=4, shuffle=True)
    for batch in loader:
        assert torch.equal(batch.node_norm, sampler.norm.node[batch.n_id])
        assert torch.equal(batch.edge_norm, sampler.norm.edge[batch.e_id])
        assert batch.node_norm.dtype == torch.float32


def test_norms_make_the_loss_unbiased():
    loss = torch.arange(1.0, 41.0) ** 2
    sampler = saint(sample_coverage=2000, batch_size=4)
    loader = NeighborLoader(
        DATA,
        sampler=sampler,
        batch_size=4,
        shuffle=True,
        drop_last=True,
        prefetch=0,
    )
    torch.manual_seed(0)
    estimates, plain = [], []
    for _ in range(150):
        for batch in loader:
            values = loss[batch.n_id]
            estimates.append(float((values * batch.node_norm).sum()))
            plain.append(float(values.mean()))
    estimates = torch.tensor(estimates, dtype=torch.float64)
    error = math.sqrt(2) * estimates.std() / math.sqrt(estimates.numel())
    assert abs(estimates.mean() - loss.mean()) <= 4 * error
    plain = torch.tensor(plain, dtype=torch.float64)
    error = plain.std() / math.sqrt(plain.numel())
    assert abs(plain.mean() - loss.mean()) > 4 * error


def test_the_normalisation_does_not_depend_on_the_seed():
    a, b = (
        saint(seed=s, sample_coverage=5, batch_size=4).norm for s in (1, 2)
    )
    assert torch.equal(a.node, b.node)
    assert torch.equal(a.edge, b.edge)


def test_the_estimate_walks_from_the_given_nodes():
    data = Data(
        edge_index=torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]), num_nodes=4
    )
    for nodes in (torch.tensor([2, 3]), torch.arange(4) >= 2):
        norm = SaintSampler(data, 1, 10, batch_size=1, input_nodes=nodes).norm
        drawn = norm.node[0] * 4  # nodes 0 and 1 count as if once
        assert drawn == norm.node[1] * 4 == 20
        assert norm.node[2] == norm.node[3] == 0.25


@pytest.mark.parametrize(
    'make',
    [
        lambda: ShaDowSampler(DATA, [3, 2], seed=0),
        lambda: ShaDowSampler(DATA, ppr=3, seed=0),
        lambda: saint(sample_coverage=3, batch_size=4),
        lambda: frontier(sample_coverage=3, batch_size=4),
    ],
)
def test_a_pickled_sampler_samples_the_same(make):
    sampler = make()
    other = pickle.loads(pickle.dumps(sampler))
    inputs = graphs.nodes([5, 9])
    expected, out = (s.sample_from_nodes(inputs) for s in (sampler, other))
    assert fields_of(out) == fields_of(expected)


def test_workers_change_no_batch_of_walks():
    outs = []
    for num_workers in (0, 1, 2):
        sampler = saint(
            sample_coverage=3, batch_size=8, share_memory=num_workers > 0
        )
        loader = NeighborLoader(
            DATA, sampler=sampler, batch_size=8, num_workers=num_workers
        )
        outs.append(run(loader))
    assert outs[0] == outs[1] == outs[2]


@pytest.mark.parametrize(
    ('make', 'error', 'text'),
    [
        (lambda: ShaDowSampler(DATA), ValueError, "one of 'num_neighbors' an"),
        (
            lambda: ShaDowSampler(DATA, [2], ppr=3),
            ValueError,
            r"one of 'num_neighbors' and 'ppr' must.*\[2\] and 3",
        ),
        (
            lambda: ShaDowSampler(DATA, ppr=-1),
            ValueError,
            r"'ppr' must be at least 0 \(got -1\)",
        ),
        (lambda: ShaDowSampler(DATA, []), ValueError, 'must not be empty'),
        (
            lambda: ShaDowSampler(TYPED, [2]),
            ValueError,
            "'data' must have one type of nodes and edges with 'disjoint'",
        ),
        (
            lambda: SaintSampler(DATA),
            ValueError,
            r"one of 'walk_length' and 'frontier_steps' .*\(got None and None",
        ),
        (lambda: frontier(walk_length=2), ValueError, r'\(got 2 and 12\)'),
        (
            lambda: SaintSampler(DATA, frontier_steps=0),
            ValueError,
            r"'frontier_steps' must be at least 1 \(got 0\)",
        ),
        (lambda: saint(walk_length=0), ValueError, r"'walk_length'.*got 0"),
        (lambda: saint(walk_length=1.5), TypeError, r"'walk_length'.*got 1.5"),
        (
            lambda: saint(sample_coverage=-1),
            ValueError,
            r"'sample_coverage' must be at least 0 \(got -1\)",
        ),
        (
            lambda: saint(sample_coverage=1),
            ValueError,
            "'sample_coverage' needs the loader's 'batch_size'",
        ),
        (
            lambda: saint(sample_coverage=1, batch_size=0),
            ValueError,
            r"'batch_size' must be at least 1 \(got 0\)",
        ),
        (
            lambda: saint(
                sample_coverage=1,
                batch_size=1,
                input_nodes=torch.tensor([40]),
            ),
            IndexError,
            r"'input_nodes' must be in \[0, 40\) \(got 40\)",
        ),
        (
            lambda: saint(
                sample_coverage=1,
                batch_size=1,
                input_nodes=torch.zeros(40, dtype=torch.bool),
            ),
            ValueError,
            "'input_nodes' must not be empty",
        ),
        (
            lambda: SaintSampler(TYPED, 2),
            ValueError,
            "'data' must be homogeneous",
        ),
    ],
)
def test_bad_input(make, error, text):
    with pytest.raises(error, match=text):
        make()
