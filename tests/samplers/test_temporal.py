"""Temporal sampling against an oracle that looks at every edge's times.

An edge is allowed in a tree if its own time and that of its source have come
at the tree's time, and fall in the window.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.samplers import graphs
from tests.samplers.graphs import FOLLOWS, MARKS, RATES, REV_RATES
from tests.samplers.oracle import (
    assert_consistent,
    assert_valid,
    edge_lists,
    original_edges,
)
from torch_gsample import NeighborSampler

LEVELS = {
    'node': 'node_time',
    'edge': 'edge_time',
    'both': ('node_time', 'edge_time'),
}


def timed(num_times=12, seed=0):
    """Times of nodes and edges, with many ties."""
    generator = torch.Generator().manual_seed(seed)
    return graphs.homogeneous(
        node_time=torch.randint(num_times, (30,), generator=generator),
        edge_time=torch.randint(num_times, (150,), generator=generator),
    )


def visible_from(data, level, e, backward=False):
    """The time from which on an edge can be seen."""
    source = int(data.edge_index[1 if backward else 0, e])
    times = []
    if level != 'edge':
        times.append(int(data.node_time[source]))
    if level != 'node':
        times.append(int(data.edge_time[e]))
    return max(times)


@settings(deadline=None, max_examples=80)
@given(
    level=st.sampled_from(sorted(LEVELS)),
    seeds=st.lists(st.integers(0, 29), min_size=1, max_size=5),
    shift=st.integers(-1, 12),
    window=st.none() | st.integers(0, 6),
    fanouts=st.lists(st.integers(-1, 3), min_size=1, max_size=3),
    replace=st.booleans(),
    backward=st.booleans(),
)
def test_only_edges_of_the_past_are_sampled(
    level, seeds, shift, window, fanouts, replace, backward
):
    data = timed()
    sampler = NeighborSampler(
        data,
        fanouts,
        time_attr=LEVELS[level],
        time_window=window,
        replace=replace,
        sample_direction='backward' if backward else 'forward',
        seed=0,
    )
    time = [(shift + 5 * i) % 13 - 1 for i in range(len(seeds))]

    def allowed(_, e, tree):
        first = -1 if window is None else time[tree] - window
        seen = visible_from(data, level, e, backward)
        return first <= seen <= time[tree]

    out = sampler.sample_from_nodes(graphs.nodes(seeds, time=time))
    assert sampler.is_temporal
    assert out.batch is not None
    assert_valid(
        sampler,
        out,
        edge_lists(data),
        {None: seeds},
        {None: fanouts},
        allowed=allowed,
        replace=replace,
        backward=backward,
    )


@pytest.mark.parametrize('level', LEVELS)
@pytest.mark.parametrize('fanout', [0, 1, 2, 4, -1])
def test_last_takes_the_latest_edges(level, fanout):
    data = timed()
    sampler = NeighborSampler(
        data, [fanout], time_attr=LEVELS[level], temporal_strategy='last'
    )
    seeds, time = list(range(30)), [i % 12 for i in range(30)]
    out = sampler.sample_from_nodes(graphs.nodes(seeds, time=time))
    _, ids = assert_consistent(sampler, out, edge_lists(data))
    for seed in seeds:
        own = [
            visible_from(data, level, e)
            for e, col in zip(ids[None], out.col.tolist(), strict=True)
            if col == seed
        ]
        all_times = sorted(
            visible_from(data, level, e)
            for e in range(150)
            if data.edge_index[1, e] == seed
            and visible_from(data, level, e) <= time[seed]
        )
        start = 0 if fanout < 0 else max(len(all_times) - fanout, 0)
        assert sorted(own) == all_times[start:]


def test_the_time_of_a_seed_is_that_of_its_node():
    data = timed()
    sampler = NeighborSampler(data, [3, 2], time_attr='node_time', seed=0)
    seeds = [4, 9, 20]
    out = sampler.sample_from_nodes(graphs.nodes(seeds))
    time = data.node_time[seeds].tolist()
    assert_valid(
        sampler,
        out,
        edge_lists(data),
        {None: seeds},
        {None: [3, 2]},
        allowed=lambda _, e, t: visible_from(data, 'node', e) <= time[t],
    )
    again = sampler.sample_from_nodes(graphs.nodes(seeds, time=time))
    assert (out.metadata[1] is None) != (again.metadata[1] is None)


def test_seeds_without_a_time_are_refused():
    sampler = NeighborSampler(timed(), [2], time_attr='edge_time')
    with pytest.raises(ValueError, match=r"needs the seeds' times"):
        sampler.sample_from_nodes(graphs.nodes([1]))
    with pytest.raises(ValueError, match=r"needs the seeds' times"):
        sampler.sample_from_edges(graphs.links([(1, 2)]))


@pytest.mark.parametrize('dtype', [torch.int8, torch.int32, torch.uint8])
def test_times_of_any_integer_dtype_are_taken(dtype):
    data = timed()
    inputs = graphs.nodes([4, 9], time=[6, 8])
    out = NeighborSampler(
        data, [3], time_attr='edge_time', seed=0
    ).sample_from_nodes(inputs)
    data.edge_time = data.edge_time.to(dtype)
    inputs = graphs.nodes([4, 9], time=torch.tensor([6, 8], dtype=dtype))
    again = NeighborSampler(
        data, [3], time_attr='edge_time', seed=0
    ).sample_from_nodes(inputs)
    assert out.edge.tolist() == again.edge.tolist()
    assert out.edge.numel() > 0


@pytest.mark.parametrize('name', ['node_time', 'edge_time'])
def test_times_that_are_no_integers_are_refused(name):
    data = timed()
    data[name] = data[name].float()
    with pytest.raises(TypeError, match=rf"'{name}' must hold integers"):
        NeighborSampler(data, [2], time_attr=name)
    sampler = NeighborSampler(timed(), [2], time_attr=name)
    with pytest.raises(TypeError, match="'seed time' must hold integers"):
        sampler.sample_from_nodes(graphs.nodes([1], time=[2.5]))


@pytest.mark.parametrize('level', LEVELS)
def test_is_sorted_is_believed_only_if_true(level):
    data = timed()
    seen = torch.tensor([visible_from(data, level, e) for e in range(150)])
    options = dict(time_attr=LEVELS[level], is_sorted=True)
    with pytest.raises(ValueError, match=r'sorted by destination'):
        NeighborSampler(data, [2], **options)
    by_col = data.edge_index[1].argsort(stable=True)
    by_time = (data.edge_index[1] * 100 + seen).argsort(stable=True)
    for order, right in ((by_col, False), (by_time, True)):
        graph = data.clone()
        graph.edge_index = data.edge_index[:, order]
        graph.edge_time = data.edge_time[order]
        if not right:
            with pytest.raises(ValueError, match=r'sorted by time'):
                NeighborSampler(graph, [2], **options)
            continue
        sampler = NeighborSampler(graph, [2], **options)
        assert sampler.edge_permutation is None
        out = sampler.sample_from_nodes(graphs.nodes([5], time=[8]))
        assert out.edge.numel() > 0
        assert_consistent(sampler, out, edge_lists(graph))


def test_columns_sorted_by_time_need_no_second_sort():
    """Descents between two columns are none."""
    data = timed()
    order = (data.edge_index[1] * 100 + data.edge_time).argsort(stable=True)
    data.edge_index = data.edge_index[:, order]
    data.edge_time = data.edge_time[order]
    sampler = NeighborSampler(data, [2], time_attr='edge_time')
    assert sampler.edge_permutation is None


def typed():
    """Items and edges of RATES have times; other types have none."""
    data = graphs.heterogeneous()
    data['item'].node_time = torch.arange(15)
    data[RATES].edge_time = torch.arange(60) % 15
    return data


@pytest.mark.parametrize('level', LEVELS)
@pytest.mark.parametrize('backward', [False, True])
def test_types_without_times_are_not_restricted(level, backward):
    data = typed()
    pairs = edge_lists(data)
    sampler = NeighborSampler(
        data,
        [3, 3],
        time_attr=LEVELS[level],
        sample_direction='backward' if backward else 'forward',
        seed=0,
    )
    seeds, time = [3, 14, 7], [4, 9, 12]

    def allowed(t, e, tree):
        source = t[2 if backward else 0]
        ok = True
        if level != 'edge' and source == 'item':
            ok &= pairs[t][e][1 if backward else 0] <= time[tree]
        if level != 'node' and t == RATES:
            ok &= e % 15 <= time[tree]
        return ok

    out = sampler.sample_from_nodes(graphs.nodes(seeds, 'item', time=time))
    assert_valid(
        sampler,
        out,
        pairs,
        {'item': seeds},
        graphs.each(data, [3, 3]),
        allowed=allowed,
        backward=backward,
    )
    unrestricted = out.num_sampled_edges[FOLLOWS if backward else MARKS]
    assert sum(unrestricted) > 0


def test_seeds_of_a_type_without_times_need_them():
    sampler = NeighborSampler(typed(), [2], time_attr='node_time')
    with pytest.raises(ValueError, match=r"needs the seeds' times"):
        sampler.sample_from_nodes(graphs.nodes([1], 'user'))
    out = sampler.sample_from_nodes(graphs.nodes([1], 'user', time=[3]))
    assert int(out.node['item'].max()) <= 3 or out.node['item'].numel() == 0
    assert out.row[REV_RATES].numel() == out.node['item'].numel()


def test_a_sparse_tensor_is_sampled_temporally():
    """PyG leaves the order of its edges to the caller."""
    data = timed()
    index = data.edge_index.flip(0).unique(dim=1)
    adj_t = torch.sparse_coo_tensor(
        index, torch.ones(index.size(1)), (30, 30)
    ).to_sparse_csr()
    graph = graphs.homogeneous(node_time=data.node_time)
    del graph.edge_index, graph.edge_attr
    graph.adj_t = adj_t
    sampler = NeighborSampler(graph, [-1], time_attr='node_time')
    out = sampler.sample_from_nodes(graphs.nodes([5, 6], time=[6, 9]))
    ends = torch.stack([out.node[out.col], out.node[out.row]])
    assert torch.equal(index[:, out.edge], ends)
    expected = [
        (v, u)
        for seed, time in ((5, 6), (6, 9))
        for v, u in index.t().tolist()
        if v == seed and data.node_time[u] <= time
    ]
    assert sorted(map(tuple, ends.t().tolist())) == sorted(expected)


@pytest.mark.parametrize(
    ('name', 'text'),
    [
        ('missing', "'missing' is neither a node-level nor an edge-level"),
        (('node_time', 'missing'), "'missing' is not an edge-level attribute"),
        (('missing', 'edge_time'), "'missing' is not a node-level attribute"),
        (('edge_time', 'node_time'), 'neither a node-level nor an edge-level'),
    ],
)
def test_a_missing_time_attribute_is_named(name, text):
    """Half of a pair would let the future in."""
    for data in (timed(), typed()):
        with pytest.raises(ValueError, match=text):
            NeighborSampler(data, [1], time_attr=name)


def test_times_of_a_wrong_length_are_named():
    data = typed()
    data['item'].node_time = torch.arange(14)
    with pytest.raises(ValueError, match=r"'node_time' must have 15 .*got 14"):
        NeighborSampler(data, [1], time_attr='node_time')
    data = typed()
    data[RATES].edge_time = torch.arange(59)
    with pytest.raises(ValueError, match=r"'edge_time' of .* 60 .*got 59"):
        NeighborSampler(data, [1], time_attr='edge_time')


@pytest.mark.parametrize('subgraph_type', ['directional', 'induced'])
def test_extreme_times_do_not_overflow(subgraph_type):
    data = timed()
    low, high = -(2**63), 2**63 - 1
    data.edge_time = torch.where(data.edge_time < 6, low, high)
    sampler = NeighborSampler(
        data,
        [-1],
        time_attr='edge_time',
        time_window=high,
        subgraph_type=subgraph_type,
    )
    seeds = list(range(30))
    out = sampler.sample_from_nodes(graphs.nodes(seeds, time=[low] * 30))
    early = set((data.edge_time == low).nonzero().view(-1).tolist())
    assert set(original_edges(sampler, out)[None]) == early
    out = sampler.sample_from_nodes(graphs.nodes(seeds, time=[high] * 30))
    late = set(range(150)) - early
    assert set(original_edges(sampler, out)[None]) == late
