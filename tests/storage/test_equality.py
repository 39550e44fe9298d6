"""Samples of graphs on disk are those of graphs in memory, bit for bit."""

import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.sampler import EdgeSamplerInput

from tests.samplers import graphs
from tests.storage import disk
from torch_gsample.datasets import DebianPackages, GccChangelog
from torch_gsample.rng import batch_scope
from torch_gsample.storage import RandomReadSampler, StreamingSampler

STORAGE = settings(
    deadline=None, derandomize=True, max_examples=40, database=None
)
OPTIONS = {
    'plain': {},
    'replace': {'replace': True},
    'disjoint': {'disjoint': True},
    'bidirectional': {'subgraph_type': 'bidirectional'},
    'weighted': {'weighted': True},
    'weighted-replace': {'weighted': True, 'replace': True},
    'temporal': {'temporal': True},
    'last': {'temporal': True, 'temporal_strategy': 'last'},
    'window': {'temporal': True, 'time_window': 4},
    'earlier': {'temporal': True, 'time_inclusive': 'left'},
    'open-window': {
        'temporal': True,
        'time_window': 6,
        'time_inclusive': 'neither',
    },
    'weighted-temporal': {'temporal': True, 'weighted': True},
    'edge': {'temporal': True, 'time_bound': 'edge'},
    'edge-last-open-window': {
        'temporal': True,
        'temporal_strategy': 'last',
        'time_bound': 'edge',
        'time_window': 9,
        'time_inclusive': 'neither',
    },
    'edge-weighted-replace': {
        'temporal': True,
        'weighted': True,
        'replace': True,
        'time_bound': 'edge',
    },
}


def samplers(folder, data, fanouts, options, write):
    """The two samplers of a graph on disk, and those of it in memory."""
    graph_options = {
        k: options[k] for k in ('weighted', 'temporal') if k in options
    }
    own = {k: v for k, v in options.items() if k not in graph_options}
    graph = disk.write(folder / 'graph', data, **graph_options, **write)
    graph.verify()
    reading = RandomReadSampler(
        graph, fanouts, seed=3, cache_bytes=1 << 14, **own
    )
    streaming = StreamingSampler(
        graph, fanouts, seed=3, memory_limit=disk.MEMORY, **own
    )
    want = [
        disk.in_memory(data, fanouts, seed=3, rng_scope=scope, **options)
        for scope in ('batch', 'epoch')
    ]
    return (reading, want[0]), (streaming, want[1])


def both_sample(graph, fanouts, want, inputs, **options):
    """Asserts that both samplers on disk draw what one in memory does."""
    for kind in (RandomReadSampler, StreamingSampler):
        sampler = kind(graph, fanouts, seed=1, rng_scope='epoch', **options)
        if kind is StreamingSampler:
            sampler.prepare_epoch(inputs, 0)
        disk.assert_same(
            sampler.sample_from_nodes(inputs),
            want.sample_from_nodes(inputs),
            want.edge_permutation,
        )


def check(data, seeds, fanouts, options, node_type=None, **write):
    time = torch.arange(len(seeds)) * 5 % 23
    time = time if options.get('temporal') else None
    with tempfile.TemporaryDirectory() as folder:
        pairs = samplers(Path(folder), data, fanouts, options, write)
        pairs[1][0].prepare_epoch(seeds, 4, node_type, time)
        for sampler, want in pairs:
            permutation = want.edge_permutation
            for batch in range(3):
                part = slice(batch, None, 3)
                inputs = graphs.nodes(
                    seeds[part],
                    node_type,
                    None if time is None else time[part],
                    torch.arange(len(seeds))[part],
                )
                with batch_scope(4, batch):
                    disk.assert_same(
                        sampler.sample_from_nodes(inputs),
                        want.sample_from_nodes(inputs),
                        permutation,
                    )
        pairs[1][0].close()


@pytest.mark.parametrize('options', OPTIONS)
def test_homogeneous_samples_are_equal(options):
    seeds = torch.tensor([3, 17, 3, 59, 0, 30, 31, 32, 17])
    check(disk.homogeneous(), seeds, [4, -1, 2], OPTIONS[options])


# PyG asks for reverse edge types where both directions are sampled.
@pytest.mark.parametrize('options', sorted({*OPTIONS} - {'bidirectional'}))
def test_heterogeneous_samples_are_equal(options):
    data, seeds = disk.heterogeneous(), torch.tensor([3, 1, 3, 14, 0])
    fanouts = graphs.each(data, [3, 2])
    check(data, seeds, fanouts, OPTIONS[options], 'item')


@pytest.mark.parametrize('options', ['plain', 'disjoint'])
def test_batches_without_seeds_are_equal(options):
    seeds = torch.tensor([3])  # only the first of three batches has one
    check(disk.homogeneous(), seeds, [2], OPTIONS[options])
    data = disk.heterogeneous()
    fanouts = graphs.each(data, [2])
    check(data, seeds, fanouts, OPTIONS[options], 'item')


@st.composite
def homogeneous(draw):
    size = draw(st.integers(1, 40))
    node = st.integers(0, size - 1)
    # A hub takes part in many edges.
    end = st.one_of(node, st.just(size // 2))
    edges = draw(st.lists(st.tuples(node, end), max_size=300))
    edge_index = torch.tensor(edges, dtype=torch.int64).view(-1, 2).t()
    data = Data(edge_index=edge_index.contiguous(), num_nodes=size)
    seeds = draw(st.lists(node, min_size=1, max_size=12))
    return disk.timed(data), torch.tensor(seeds)


@STORAGE
@given(
    homogeneous(),
    st.lists(st.sampled_from([-1, 0, 1, 3, 20]), min_size=1, max_size=3),
    st.sampled_from([o for o in OPTIONS if o != 'bidirectional']),
    st.integers(256, 1500),
    st.sampled_from([512, 4096]),
)
def test_random_graphs_are_equal(graph, fanouts, options, size, alignment):
    check(
        *graph,
        fanouts,
        OPTIONS[options],
        chunk_bytes=size,
        alignment=alignment,
    )


def test_packages_of_debian_are_equal():
    data = DebianPackages()[0]
    seeds = torch.arange(0, 60_000, 400)
    fanouts = graphs.each(data, [5, 3])
    for edge_type in data.edge_types[::2]:
        fanouts[edge_type] = [2, -1]
    check(data, seeds, fanouts, {}, 'package', chunk_bytes=1 << 18)


def test_changes_of_gcc_are_equal():
    data = GccChangelog()[0]
    edge_types = data.edge_types
    for _, store in data.edge_items():
        if 'edge_time' not in store:
            store.edge_time = store.time
            del store.time
    node_type = edge_types[0][2]
    fanouts = graphs.each(data, [5, 3])
    with tempfile.TemporaryDirectory() as folder:
        graph = disk.ChunkedGraph.write(
            Path(folder) / 'g',
            data,
            time_attr='edge_time',
            chunk_bytes=1 << 20,
        )
        want = disk.NeighborSampler(
            data,
            fanouts,
            time_attr='edge_time',
            temporal_strategy='last',
            seed=1,
            rng_scope='epoch',
        )
        seeds = torch.arange(0, data[node_type].num_nodes, 997)
        time = torch.full((len(seeds),), 10_000)
        inputs = graphs.nodes(seeds, node_type, time)
        both_sample(graph, fanouts, want, inputs, temporal_strategy='last')


@pytest.mark.parametrize('disjoint', [False, True])
def test_seeds_may_repeat_and_be_reached(disjoint):
    seeds = torch.tensor([5, 7, 5, 5, 1, 7, 9, 9, 5])  # repeated in a batch
    options = {'disjoint': disjoint}
    check(disk.homogeneous(12, 300), seeds, [6, 4], options)


def test_edges_without_ids_have_their_positions(tmp_path):
    edge_index = disk.homogeneous().edge_index
    row, col = edge_index[:, edge_index[1].argsort(stable=True)]
    graph = disk.ChunkedGraph.write(
        tmp_path / 'g', [(row, col)], num_nodes=60, chunk_bytes=400
    )
    assert graph.meta.relations[0].widths['edge_id'] == 0
    options = {'seed': 1, 'rng_scope': 'epoch'}
    data = Data(edge_index=torch.stack([row, col]), num_nodes=60)
    want = disk.in_memory(data, [3, 2], **options)
    inputs = graphs.nodes(torch.arange(0, 60, 3))
    both_sample(graph, [3, 2], want, inputs)


def test_edges_as_seeds_are_equal(tmp_path):
    data = disk.homogeneous()
    reading = RandomReadSampler(disk.write(tmp_path / 'g', data), [3, 2])
    want = disk.in_memory(data, [3, 2], seed=reading.seed)
    inputs = EdgeSamplerInput(None, *data.edge_index[:, :9])
    for sampler in (reading, want):
        sampler.set_epoch(2)
    outs = [
        s.sample_from_edges(inputs, {'mode': 'binary', 'amount': 2})
        for s in (reading, want)
    ]
    disk.assert_equal(outs[0].node, outs[1].node)
    disk.assert_equal(outs[0].row, outs[1].row)
    for a, b in zip(outs[0].metadata, outs[1].metadata, strict=True):
        disk.assert_equal(a, b)
