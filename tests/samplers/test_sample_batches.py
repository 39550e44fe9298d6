"""Samplers give several batches at once the samples of each alone."""

import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.sampler import EdgeSamplerInput, NodeSamplerInput

from tests.ops.compare import assert_equal_tensors
from torch_gsample.rng import BatchNumber, batch_scope
from torch_gsample.samplers import NeighborSampler
from torch_gsample.samplers.neighbor import drawn

SEEDS = [[3, 3, 7], [], [41], [0, 7, 49]]
NUMBERS = [BatchNumber(2, b) for b in (4, 5, 9, 1)]
OPTIONS = [
    {},
    {'disjoint': True, 'order': 'random'},
    {'time_attr': 'time'},
    {'time_attr': 'time', 'time_bound': 'batch', 'time_inclusive': 'left'},
    {'time_attr': 'time', 'time_bound': 'edge', 'time_inclusive': 'right'},
    {'subgraph_type': 'induced', 'weight_attr': 'weight'},
    {'subgraph_type': 'bidirectional'},
    {'rng_scope': 'epoch'},
]


@pytest.fixture
def data():
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(50, (2, 400), generator=generator)
    time = torch.randint(9, (400,), generator=generator)
    weight = torch.rand(400, generator=generator)
    return Data(edge_index=edge_index, num_nodes=50, time=time, weight=weight)


@pytest.fixture
def typed():
    generator = torch.Generator().manual_seed(1)
    data = HeteroData()
    data['a'].num_nodes, data['b'].num_nodes = 30, 40
    for src, dst in ('ab', 'ba', 'bb'):
        ends = [data[src].num_nodes, data[dst].num_nodes]
        rows = [torch.randint(n, (200,), generator=generator) for n in ends]
        data[src, 'to', dst].edge_index = torch.stack(rows)
        data[src, 'to', dst].time = rows[0] % 9
    return data


def assert_equal_typed(out, want):
    for name in ('node', 'row', 'col', 'edge', 'batch'):
        of_types, wanted = getattr(out, name), getattr(want, name)
        assert (of_types is None) == (wanted is None)
        if wanted is not None:
            assert list(of_types) == list(wanted)
            assert_equal_tensors(of_types.values(), wanted.values())
    assert out.num_sampled_nodes == want.num_sampled_nodes
    assert out.num_sampled_edges == want.num_sampled_edges


def assert_equal_fields(out, want):
    assert_equal_tensors(fields(out)[0], fields(want)[0])
    assert fields(out)[1] == fields(want)[1]


def fields(out):
    named = {'node', 'row', 'col', 'edge', 'batch'}
    tensors = [x for k, x in vars(out).items() if k in named]
    return [x for x in tensors if x is not None], (
        out.num_sampled_nodes,
        out.num_sampled_edges,
    )


@pytest.mark.parametrize('most', [1, 3, 9])
@pytest.mark.parametrize('options', OPTIONS, ids=str)
def test_batches_equal_single_ones(data, monkeypatch, options, most):
    monkeypatch.setattr(drawn, 'batches_in_launch', lambda *_: most)
    sampler = NeighborSampler(data, [3, 2], seed=1, **options)
    batches = []
    for i, seeds in enumerate(SEEDS):
        node = torch.tensor(seeds, dtype=torch.int64)
        time = node % 9 if sampler.is_temporal else None
        batches.append(NodeSamplerInput(torch.tensor([i]), node, time))
    outs = sampler.sample_batches(batches, NUMBERS)
    for out, inputs, number in zip(outs, batches, NUMBERS, strict=True):
        with batch_scope(*number):
            want = sampler.sample_from_nodes(inputs)
        assert_equal_fields(out, want)
        assert out.metadata[0] is inputs.input_id


@pytest.mark.parametrize('most', [1, 3])
@pytest.mark.parametrize('options', [{}, {'time_attr': 'time'}], ids=str)
def test_batches_of_typed_nodes_equal_single_ones(
    typed, monkeypatch, options, most
):
    """Seeds may be of several types."""
    monkeypatch.setattr(drawn, 'batches_in_launch', lambda *_: most)
    sampler = NeighborSampler(typed, [3, 2], seed=1, **options)
    batches = []
    for seeds, node_type in zip(SEEDS, 'abab', strict=True):
        node = torch.tensor(seeds, dtype=torch.int64) % 30
        time = node % 9 if sampler.is_temporal else None
        batches.append(NodeSamplerInput(None, node, time, node_type))
    outs = sampler.sample_batches(batches, NUMBERS)
    for out, inputs, number in zip(outs, batches, NUMBERS, strict=True):
        with batch_scope(*number):
            want = sampler.sample_from_nodes(inputs)
        assert_equal_typed(out, want)


@pytest.mark.parametrize('disjoint', [False, True])
@pytest.mark.parametrize('mode', ['binary', 'triplet'])
def test_batches_of_edges_equal_single_ones(data, typed, mode, disjoint):
    """With their negatives and labels."""
    options = {'seed': 1, 'disjoint': disjoint, 'exclude_seed_edges': True}
    sampler = NeighborSampler(data, [3, 2], **options)
    of_types = NeighborSampler(typed, [3, 2], **options)
    edge_type = ('a', 'to', 'b')
    index = typed[edge_type].edge_index
    for sampler_of, edges, name, same in (
        (sampler, data.edge_index, None, assert_equal_fields),
        (of_types, index, edge_type, assert_equal_typed),
    ):
        batches = [
            EdgeSamplerInput(None, *edges[:, i : i + 4], input_type=name)
            for i in (0, 9)
        ]
        outs = sampler_of.sample_batches(batches, NUMBERS[:2], mode)
        for out, inputs, number in zip(outs, batches, NUMBERS, strict=False):
            with batch_scope(*number):
                want = sampler_of.sample_from_edges(inputs, mode)
            same(out, want)
            assert repr(out.metadata) == repr(want.metadata)


def test_a_subclass_with_its_own_sampling_is_called(data):
    class Counted(NeighborSampler):
        def sample_from_nodes(self, inputs, **kwargs):
            return len(inputs.node)

    class Inherits(Counted):
        pass

    batches = [NodeSamplerInput(None, torch.tensor(s).long()) for s in SEEDS]
    for sampler in (Counted, Inherits):
        counts = sampler(data, [3, 2], seed=1).sample_batches(batches, NUMBERS)
        assert counts == [3, 0, 1, 3]
