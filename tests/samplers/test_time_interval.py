"""Which edges a hop sees: whose time bounds it, and which ends belong to it.

The reference is a recursion over all edges of a node, in plain loops.
"""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from torch_geometric.data import Data, HeteroData

from tests.samplers import graphs
from tests.samplers.oracle import assert_consistent, by_type, edge_lists
from torch_gsample import NeighborSampler
from torch_gsample.loader import NeighborLoader
from torch_gsample.rng import batch_scope

OPEN = {'both': '<=<=', 'left': '<=<', 'right': '<<=', 'neither': '<<'}


def timed(num_times=9, seed=0):
    generator = torch.Generator().manual_seed(seed)
    time = torch.randint(num_times, (150,), generator=generator)
    return graphs.homogeneous(time=time)


def sees(time, bound, window, inclusive):
    """Whether an edge of a time is seen from a bound."""
    early = time < bound if inclusive in ('left', 'neither') else time <= bound
    if window is None:
        return early
    begin = bound - window
    late = time > begin if inclusive in ('right', 'neither') else time >= begin
    return early and late


def tree(data, node, bound, fanouts, rule, bound_rule):
    """The last edges of a node, and of their sources: a list a hop."""
    seen = [
        e
        for e in range(data.num_edges)
        if data.edge_index[1, e] == node
        and sees(int(data.time[e]), bound, *rule)
    ]
    seen.sort(key=lambda e: (int(data.time[e]), e))
    chosen = seen[max(len(seen) - fanouts[0], 0) :]
    hops = [[] for _ in fanouts]
    hops[0] = chosen
    if len(fanouts) > 1:
        for e in chosen:
            then = int(data.time[e]) if bound_rule == 'edge' else bound
            source = int(data.edge_index[0, e])
            below = tree(data, source, then, fanouts[1:], rule, bound_rule)
            for hop, edges in enumerate(below):
                hops[hop + 1] += edges
    return hops


@settings(deadline=None, max_examples=60)
@given(
    seeds=st.lists(st.integers(0, 29), min_size=1, max_size=4),
    inclusive=st.sampled_from(sorted(OPEN)),
    window=st.none() | st.integers(2, 7),
    fanouts=st.lists(st.integers(0, 3), min_size=1, max_size=3),
    shift=st.integers(0, 9),
)
def test_the_last_edges_before_the_edge_are_those_of_a_recursion(
    seeds, inclusive, window, fanouts, shift
):
    data = timed()
    time = [(shift + 3 * i) % 10 for i in range(len(seeds))]
    sampler = NeighborSampler(
        data,
        fanouts,
        time_attr='time',
        temporal_strategy='last',
        time_window=window,
        time_bound='edge',
        time_inclusive=inclusive,
        seed=0,
    )
    out = sampler.sample_from_nodes(graphs.nodes(seeds, time=time))
    fields, ids = assert_consistent(sampler, out, edge_lists(data))
    # Each edge has a source of its own.
    new = range(len(seeds), len(fields['node'][None]))
    assert fields['row'][None] == list(new)
    got = {i: [[] for _ in fanouts] for i in range(len(seeds))}
    ends = itertools.accumulate(fields['num_sampled_edges'][None], initial=0)
    for hop, (begin, end) in enumerate(itertools.pairwise(ends)):
        for i in range(begin, end):
            root = fields['batch'][None][fields['row'][None][i]]
            got[root][hop].append(ids[None][i])
    rule = window, inclusive
    for i, (seed, bound) in enumerate(zip(seeds, time, strict=True)):
        want = tree(data, seed, bound, fanouts, rule, 'edge')
        assert got[i] == want


@settings(deadline=None, max_examples=40)
@given(
    inclusive=st.sampled_from(sorted(OPEN)),
    window=st.none() | st.integers(2, 7),
    bound=st.sampled_from(['seed', 'batch']),
    shift=st.integers(0, 9),
)
def test_all_neighbours_in_the_interval_are_sampled(
    inclusive, window, bound, shift
):
    data = timed()
    seeds = [3, 4, 3, 9]
    time = [(shift + 3 * i) % 10 for i in range(len(seeds))]
    sampler = NeighborSampler(
        data,
        [-1],
        time_attr='time',
        time_window=window,
        time_bound=bound,
        time_inclusive=inclusive,
        seed=0,
    )
    out = sampler.sample_from_nodes(graphs.nodes(seeds, time=time))
    _, ids = assert_consistent(sampler, out, edge_lists(data))
    bounds = time if bound == 'seed' else [min(time)] * len(time)
    want = [
        tree(data, seed, b, [99], (window, inclusive), 'seed')[0]
        for seed, b in zip(seeds, bounds, strict=True)
    ]
    assert sorted(ids[None]) == sorted(e for edges in want for e in edges)
    assert out.metadata[1].tolist() == time  # the user's argument


def typed():
    """Users act on items at times; items have parts, without times."""
    data = HeteroData()
    data['user'].num_nodes, data['item'].num_nodes = 4, 5
    generator = torch.Generator().manual_seed(1)
    acts = torch.stack(
        [
            torch.randint(4, (40,), generator=generator),
            torch.randint(5, (40,), generator=generator),
        ]
    )
    data['user', 'acts', 'item'].edge_index = acts
    data['user', 'acts', 'item'].time = torch.arange(40)
    data['item', 'by', 'user'].edge_index = acts.flip(0)
    data['item', 'by', 'user'].time = torch.arange(40)
    data['item', 'of', 'item'].edge_index = torch.tensor([[1, 2], [0, 1]])
    return data


def test_edges_without_time_pass_the_bound_on():
    data = typed()
    sampler = NeighborSampler(
        data, [-1, -1, -1], time_attr='time', time_bound='edge', seed=0,
        time_inclusive='left', temporal_strategy='last',
    )  # fmt: skip
    inputs = graphs.nodes([0, 1], 'item', time=[20, 30])
    out = sampler.sample_from_nodes(inputs)
    assert_consistent(sampler, out, edge_lists(data))
    fields = by_type(out)
    bound = {t: {} for t in fields['node']}
    bound['item'] = dict(enumerate([20, 30]))
    perm = sampler.edge_permutation
    hops = [(t, h) for h in range(3) for t in data.edge_types]
    begin = dict.fromkeys(data.edge_types, 0)
    checked = 0
    for t, hop in hops:
        end = begin[t] + fields['num_sampled_edges'][t][hop]
        for i in range(begin[t], end):
            row, col = fields['row'][t][i], fields['col'][t][i]
            position = fields['edge'][t][i]
            e = position if perm[t] is None else int(perm[t][position])
            latest = bound[t[2]][col]
            if t[1] == 'of':
                bound[t[0]][row] = latest
            else:
                assert e < latest
                bound[t[0]][row] = e
                checked += 1
        begin[t] = end
    assert checked > 50
    assert sum(fields['num_sampled_edges']['item', 'of', 'item']) > 2


def test_draws_among_the_edges_before_are_uniform_and_independent():
    """Node 1 is reached twice, and draws of 4 edges each time."""
    edges = [(1, 0, 9), (1, 0, 8), *((2 + i, 1, i) for i in range(4))]
    src, dst, time = torch.tensor(edges).T
    data = Data(edge_index=torch.stack([src, dst]), time=time, num_nodes=6)
    sampler = NeighborSampler(
        data, [2, 1], time_attr='time', time_bound='edge', seed=3
    )
    counts = torch.zeros(4, 4)
    for batch in range(1600):
        with batch_scope(0, batch):
            inputs = graphs.nodes([0], time=[10])
            drawn = sampler.sample_from_nodes(inputs).node[3:] - 2
        counts[drawn[0], drawn[1]] += 1
    assert chisquare(counts.flatten().numpy()).pvalue > 0.001


def test_weights_and_replacement_work_with_the_times_of_edges():
    data = timed()
    data.weight = (torch.arange(150) % 3).float()
    sampler = NeighborSampler(
        data, [4, 4], time_attr='time', time_bound='edge', replace=True,
        weight_attr='weight', seed=0,
    )  # fmt: skip
    out = sampler.sample_from_nodes(graphs.nodes([3, 4], time=[9, 9]))
    _, ids = assert_consistent(sampler, out, edge_lists(data))
    assert ids[None]
    assert all(e % 3 for e in ids[None])
    assert len(set(ids[None])) < len(ids[None])


def test_an_epoch_draws_alike_for_every_batch():
    data = timed()
    sampler = NeighborSampler(
        data, [2, 2], time_attr='time', time_bound='edge', seed=0,
        rng_scope='epoch',
    )  # fmt: skip
    one, two = (
        sampler.sample_from_nodes(graphs.nodes(seeds, time=[8] * len(seeds)))
        for seeds in ([5], [4, 5])
    )
    of_five = two.edge[two.batch[two.row] == 1]
    assert torch.equal(one.edge, of_five)


def test_a_loader_makes_batches_of_trees():
    data = timed()
    loader = NeighborLoader(
        data, [2, 2], input_time=torch.full((30,), 7), time_attr='time',
        time_bound='edge', time_inclusive='left', batch_size=8, seed=1,
        num_workers=0,
    )  # fmt: skip
    for batch in loader:
        assert batch.num_nodes == batch.batch_size + batch.num_edges
        assert (batch.time < 7).all()


@pytest.mark.parametrize(
    ('options', 'match'),
    [
        ({'time_bound': 'hop'}, "'time_bound' must be one of .* \\(got 'hop'"),
        ({'time_inclusive': '<'}, "'time_inclusive' must be one of"),
        (
            {'time_window': 1, 'time_inclusive': 'neither'},
            "'time_window' must be at least 2 with time_inclusive='neither'",
        ),
        (
            {'time_bound': 'edge', 'subgraph_type': 'induced'},
            "time_bound='edge' needs subgraph_type",
        ),
        ({'time_bound': 'edge', 'time_attr': None}, "need 'time_attr'"),
    ],
)
def test_wrong_options_are_named(options, match):
    with pytest.raises(ValueError, match=f'NeighborSampler: .*{match}'):
        NeighborSampler(timed(), [2], **{'time_attr': 'time', **options})


def test_a_gpu_does_not_sample_by_the_times_of_edges(monkeypatch):
    monkeypatch.setattr(
        'torch_gsample.samplers.neighbor.node_wise.read_device',
        lambda *args: torch.device('cuda'),
    )
    with pytest.raises(ValueError, match=r"'edge' needs device='cpu' .got"):
        NeighborSampler(timed(), [2], time_attr='time', time_bound='edge')


def test_an_open_end_needs_an_earlier_time():
    data = timed()
    data.time[3] = torch.iinfo(torch.int64).min
    with pytest.raises(ValueError, match='times must be greater than -92'):
        NeighborSampler(data, [2], time_attr='time', time_inclusive='left')
    sampler = NeighborSampler(
        timed(), [-1], time_attr='time', time_inclusive='left', seed=0
    )
    first = [torch.iinfo(torch.int64).min]
    out = sampler.sample_from_nodes(graphs.nodes([3], time=first))
    assert out.edge.numel() == 0
