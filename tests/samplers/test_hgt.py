"""HGTSampler: PyG's contract, and errors of bad input."""

import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric import sampler as pyg

from tests.samplers import graphs
from tests.samplers.graphs import FOLLOWS, RATES
from tests.samplers.oracle import assert_consistent, edge_lists, fields_of
from tests.samplers.test_pickle import tensors_of
from torch_gsample import HGTSampler
from torch_gsample.loader import NeighborLoader

DATA = graphs.heterogeneous()
TYPES = DATA.node_types


def long(ids):
    return torch.tensor(ids, dtype=torch.long)


def outcome(sampler, ids=(4, 9, 4)):
    return fields_of(sampler.sample_from_nodes(graphs.nodes(ids, 'item')))


def test_it_is_a_pyg_sampler():
    sampler = HGTSampler(DATA, [2, 3], seed=3)
    assert isinstance(sampler, pyg.BaseSampler)
    assert sampler.is_hetero
    assert sampler.num_samples == {t: [2, 3] for t in TYPES}
    assert repr(sampler).startswith("HGTSampler(hgt, {'user': [2, 3]")
    inputs = graphs.nodes([1, 2], 'item', input_id=[7, 8])
    out = sampler.sample_from_nodes(inputs)
    assert isinstance(out, pyg.HeteroSamplerOutput)
    assert out.metadata[0].tolist() == [7, 8]
    assert out.batch is out.num_sampled_edges is None
    for values in (out.node, out.row, out.col, out.edge):
        assert all(value.dtype == torch.int64 for value in values.values())


@settings(deadline=None, max_examples=60)
@given(
    node_type=st.sampled_from(TYPES),
    seeds=st.lists(st.integers(0, 2), max_size=4),
    sizes=st.lists(st.integers(0, 4), min_size=1, max_size=3),
    seed=st.integers(0, 2**63 - 1),
)
def test_a_sample_is_induced_and_bounded(node_type, seeds, sizes, seed):
    sampler = HGTSampler(DATA, sizes, seed=seed)
    out = sampler.sample_from_nodes(graphs.nodes(long(seeds), node_type))
    fields, edges = assert_consistent(sampler, out, edge_lists(DATA))
    nodes = fields['node']
    assert list(nodes) == TYPES
    for t, ids in nodes.items():
        own = seeds if t == node_type else []
        later = ids[len(own) :]
        assert ids[: len(own)] == own
        assert len(set(later) - set(own)) == len(later) <= sum(sizes)
        assert fields['num_sampled_nodes'][t] == [len(own), len(later)]
    assert list(edges) == DATA.edge_types
    for t, pairs in edge_lists(DATA).items():
        # A seed that occurs twice has its in-edges twice.
        times = {v: nodes[t[2]].count(v) for v in nodes[t[2]]}
        expected = [
            e
            for e, (u, v) in enumerate(pairs)
            if u in nodes[t[0]]
            for _ in range(times.get(v, 0))
        ]
        assert sorted(edges[t]) == expected


def test_types_have_numbers_of_their_own():
    sizes = {'user': [2, 0], 'item': [0, 3], 'tag': [0, 1], 'lone': [9, 9]}
    for sampler in (HGTSampler(DATA, sizes), HGTSampler(DATA, [1])):
        sampler.num_samples = sizes
        assert sampler.num_samples == sizes
        out = sampler.sample_from_nodes(graphs.nodes([4], 'item'))
        numbers = {t: len(ids) for t, ids in out.node.items()}
        assert numbers == {'user': 2, 'item': 4, 'tag': 1, 'lone': 0}


@pytest.mark.parametrize('node_type', ['lone', 'tag'])
def test_seeds_without_edges_are_there(node_type):
    out = HGTSampler(DATA, [3, 3]).sample_from_nodes(
        graphs.nodes([2, 0], node_type)
    )
    assert {t: ids.tolist() for t, ids in out.node.items()} == {
        t: [2, 0] if t == node_type else [] for t in TYPES
    }
    assert all(row.numel() == 0 for row in out.row.values())


def test_a_sample_is_a_function_of_seed_epoch_and_batch():
    sampler = HGTSampler(DATA, [2, 3], seed=1)
    first = outcome(sampler)
    assert outcome(HGTSampler(DATA, [2, 3], seed=1)) == first
    assert outcome(HGTSampler(DATA, [2, 3], seed=2)) != first
    assert outcome(sampler, (9, 4)) != first
    sampler.set_epoch(1)
    assert outcome(sampler) != first


def test_edges_that_are_sorted_need_no_sorting():
    data = graphs.heterogeneous()
    for store in data.edge_stores:
        order = store.edge_index[1].argsort(stable=True)
        store.edge_index = store.edge_index[:, order]
    sampler = HGTSampler(data, [2, 3], is_sorted=True, seed=0)
    assert sampler.graph[RATES].edge_id is None
    assert outcome(sampler) == outcome(HGTSampler(data, [2, 3], seed=0))


def test_links_find_their_ends():
    pairs = edge_lists(DATA)[RATES][:5]
    sampler = HGTSampler(DATA, [2], seed=0, exclude_seed_edges=True)
    out = sampler.sample_from_edges(graphs.links(pairs, RATES))
    _, edges = assert_consistent(sampler, out, edge_lists(DATA))
    rows, cols = out.metadata[1]
    ends = out.node['user'][rows], out.node['item'][cols]
    ends = zip(*(ids.tolist() for ids in ends), strict=True)
    assert list(ends) == pairs
    kept = {edge_lists(DATA)[RATES][e] for e in edges[RATES]}
    assert kept
    assert not kept & set(pairs)
    assert edges[FOLLOWS]


def timed():
    data = graphs.heterogeneous()
    data['item'].when = torch.arange(data['item'].num_nodes) % 9
    return data


@pytest.mark.parametrize('compile', [False, True])
def test_times_bound_samples_and_are_in_batches(compile):
    data = timed()
    options = {'time_attr': 'when', 'max_time': 5, 'compile': compile}
    sampler = HGTSampler(data, [3, 3], seed=4, **options)
    loader = NeighborLoader(
        *(data,), sampler=sampler, batch_size=3, input_nodes=('item', None)
    )
    times = set()
    for epoch_batch in loader:
        item = epoch_batch['item']
        assert torch.equal(item.when, data['item'].when[item.n_id])
        assert (item.when[item.batch_size :] <= 5).all()
        user = epoch_batch['user']
        assert user.when.shape == user.n_id.shape
        assert set(user.when.tolist()) <= set(item.when.tolist())
        times |= set(user.when.tolist())
    assert len(times) > 3


def test_users_get_the_time_of_the_items_by_which_they_are_sampled():
    data = timed()
    sampler = HGTSampler(data, [4], seed=1, time_attr='when')
    inputs = graphs.nodes([4], 'item')
    out = sampler.sample_from_nodes(inputs)
    assert out.node['user'].numel() > 0
    stamp = out.attributes.node['user']['when']
    assert stamp.tolist() == [4] * out.node['user'].numel()
    assert 'when' not in out.attributes.node.get('item', {})


def test_seeds_of_a_type_without_times_have_the_latest():
    options = {'time_attr': 'when', 'max_time': 3}
    sampler = HGTSampler(timed(), [4], seed=1, **options)
    out = sampler.sample_from_nodes(graphs.nodes([0, 2], 'user'))
    assert out.attributes.node['user']['when'][:2].tolist() == [3, 3]
    assert (out.node['item'] % 9 <= 3).all()


@pytest.mark.parametrize(
    ('options', 'error', 'text'),
    [
        ({'max_time': 3}, ValueError, "'max_time' needs 'time_attr'"),
        (
            {'time_attr': 'age'},
            ValueError,
            "attribute 'age' is not a node-level",
        ),
        ({'time_attr': 'x'}, TypeError, "'x' of .* must hold integers"),
        ({'time_attr': 'when', 'max_time': 1.5}, TypeError, "'max_time'"),
    ],
)
def test_bad_times(options, error, text):
    data = timed()
    data['item'].x = torch.rand(data['item'].num_nodes)
    with pytest.raises(error, match='HGTSampler: .*' + text):
        HGTSampler(data, [2], **options)


def test_a_pickled_sampler_samples_the_same():
    sampler = HGTSampler(DATA, [2, 3], seed=0)
    assert outcome(pickle.loads(pickle.dumps(sampler))) == outcome(sampler)


def test_share_memory_shares_all_tensors():
    sampler = HGTSampler(DATA, [2], share_memory=True, true_negatives=True)
    assert all(t.is_shared() for t in tensors_of(sampler.graph).values())
    assert all(m.csc.indices.is_shared() for m in sampler.matrices.values())


@pytest.mark.parametrize(
    ('num_samples', 'error', 'text'),
    [
        (5, TypeError, r'must be a list of integers.*\(got 5\)'),
        ('ab', TypeError, r"must be a list of integers.*\(got 'ab'\)"),
        ([], ValueError, r'must not be empty \(got \[\]\)'),
        ([2, 1.5], TypeError, r'must hold integers \(got 1.5\)'),
        ([-2], ValueError, r'must be -1 \(all\).*\(got -2\)'),
    ],
    ids=str,
)
@pytest.mark.parametrize('typed', [False, True])
def test_bad_numbers(num_samples, error, text, typed):
    given = num_samples
    if typed:
        given = {t: [3] for t in TYPES} | {'tag': num_samples}
    with pytest.raises(error, match="^HGTSampler: 'num_samples' " + text):
        HGTSampler(DATA, given)


def test_bad_types():
    sizes = {t: [2] for t in TYPES}
    text = r"keys of 'num_samples' must be the node types of the graph, .*cat"
    with pytest.raises(ValueError, match=text):
        HGTSampler(DATA, sizes | {'cat': [2]})
    text = r"keys of 'num_samples' must be .*\(got \['user'\]\)"
    with pytest.raises(ValueError, match=text):
        HGTSampler(DATA, {'user': [2]})
    text = r"'num_samples' must have the same number .*'user': \[1, 2\]"
    with pytest.raises(ValueError, match=text):
        HGTSampler(DATA, sizes | {'user': [1, 2]})
    with pytest.raises(ValueError, match="'data' must be heterogeneous"):
        HGTSampler(graphs.homogeneous(), [2])
    with pytest.raises(IndexError, match=r"HGTSampler: 'seeds' .*\(got 15\)"):
        outcome(HGTSampler(DATA, [2]), [15])
