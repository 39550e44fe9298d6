"""Samplers give several batches what they give one."""

import pytest
import torch
from torch_geometric.data import Data
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
        assert_equal_tensors(fields(out)[0], fields(want)[0])
        assert fields(out)[1] == fields(want)[1]
        assert out.metadata[0] is inputs.input_id


def test_batches_of_edges_are_sampled_one_by_one(data):
    sampler = NeighborSampler(data, [3, 2], seed=1)
    batches = [
        EdgeSamplerInput(None, *data.edge_index[:, i : i + 4]) for i in (0, 9)
    ]
    outs = sampler.sample_batches(batches, NUMBERS[:2], 'binary')
    for out, inputs, number in zip(outs, batches, NUMBERS, strict=False):
        with batch_scope(*number):
            want = sampler.sample_from_edges(inputs, 'binary')
        assert_equal_tensors(fields(out)[0], fields(want)[0])
