"""Weighted sampling through the sampler; the operator has its own tests."""

import pytest
import torch
from torch_geometric.data import Data

from tests.samplers import graphs
from tests.samplers.graphs import FOLLOWS, RATES
from tests.samplers.oracle import (
    assert_valid,
    edge_lists,
    original_edges,
)
from torch_gsample import NeighborSampler


def star(weight, num_leaves=8, shuffle=True):
    """Edges from the leaves 1, 2, ... to 0, in a shuffled order."""
    order = torch.randperm(num_leaves) if shuffle else torch.arange(num_leaves)
    return Data(
        edge_index=torch.stack([order + 1, torch.zeros_like(order)]),
        weight=torch.as_tensor(weight)[order],
        num_nodes=num_leaves + 1,
    )


@pytest.mark.parametrize('fanout', [-1, 3, 8])
@pytest.mark.parametrize('replace', [False, True])
def test_edges_of_weight_zero_are_never_sampled(fanout, replace):
    """PyG takes them when the fan-out asks for more than there are."""
    data = star(torch.tensor([0.0, 1, 0, 1, 0, 0, 0, 0]))
    sampler = NeighborSampler(
        data, [fanout], weight_attr='weight', replace=replace, seed=0
    )
    out = sampler.sample_from_nodes(graphs.nodes([0]))
    assert set(out.node[1:].tolist()) <= {2, 4}
    if not replace or fanout < 0:
        assert sorted(out.node[1:].tolist()) == [2, 4]


@pytest.mark.parametrize(
    'dtype', [torch.float16, torch.float64, torch.int64, torch.bool]
)
def test_weights_of_any_real_dtype_are_taken(dtype):
    data = star(torch.tensor([0, 1, 0, 1, 0, 0, 0, 0]).to(dtype))
    sampler = NeighborSampler(data, [-1], weight_attr='weight')
    out = sampler.sample_from_nodes(graphs.nodes([0]))
    assert sorted(out.node[1:].tolist()) == [2, 4]


def test_weights_hold_for_the_edge_types_that_have_them():
    data = graphs.heterogeneous()
    weight = torch.zeros(60)
    weight[::2] = 1
    data[RATES].weight = weight
    sampler = NeighborSampler(data, [-1, -1], weight_attr='weight', seed=0)
    out = sampler.sample_from_nodes(graphs.nodes([3, 5, 7], 'item'))
    assert_valid(
        sampler,
        out,
        edge_lists(data),
        {'item': [3, 5, 7]},
        graphs.each(data, [-1, -1]),
        allowed=lambda t, e, tree: t != RATES or e % 2 == 0,
    )
    assert out.num_sampled_edges[FOLLOWS][1] > 0


@pytest.mark.parametrize('strategy', ['uniform', 'last'])
@pytest.mark.parametrize('direction', ['forward', 'backward'])
def test_weights_and_times_hold_together(strategy, direction):
    data = graphs.homogeneous(edge_time=torch.randint(20, (150,)))
    data.weight = torch.randint(3, (150,)).float()
    sampler = NeighborSampler(
        data,
        [2, 2],
        weight_attr='weight',
        time_attr='edge_time',
        temporal_strategy=strategy,
        sample_direction=direction,
        seed=0,
    )
    seeds, time = [3, 5, 7, 9], [5, 10, 15, 19]
    out = sampler.sample_from_nodes(graphs.nodes(seeds, time=time))
    ids = original_edges(sampler, out)[None]
    assert ids
    tree = out.batch[out.col].tolist()
    for e, t in zip(ids, tree, strict=True):
        assert data.weight[e] > 0
        assert data.edge_time[e] <= time[t]
    if strategy == 'uniform':
        assert_valid(
            sampler,
            out,
            edge_lists(data),
            {None: seeds},
            {None: [2, 2]},
            allowed=lambda _, e, t: (
                bool(data.weight[e] > 0) and bool(data.edge_time[e] <= time[t])
            ),
            backward=direction == 'backward',
        )


def test_weights_may_be_a_column():
    data = star(torch.tensor([0.0, 1, 0, 1, 0, 0, 0, 0]))
    data.weight = data.weight.view(-1, 1)
    sampler = NeighborSampler(data, [-1], weight_attr='weight')
    out = sampler.sample_from_nodes(graphs.nodes([0]))
    assert sorted(out.node[1:].tolist()) == [2, 4]


@pytest.mark.parametrize(
    ('weight', 'text'),
    [
        (torch.tensor([1.0, -1, 1]), "'weight' must be finite .*got -1.0"),
        (torch.tensor([1.0, float('nan'), 1]), "'weight' must be finite"),
        (torch.tensor([1.0, float('inf'), 1]), "'weight' must be finite"),
        (torch.ones(4), "'weight' is not an edge-level attribute"),
        (None, "'weight' is not an edge-level attribute"),
    ],
)
def test_bad_weights_are_named(weight, text):
    data = Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]), num_nodes=9)
    data.weight = weight
    with pytest.raises(ValueError, match=text):
        NeighborSampler(data, [1], weight_attr='weight')


def test_typed_weights_of_a_wrong_length_are_named():
    data = graphs.heterogeneous()
    data[RATES].weight = torch.ones(7)
    with pytest.raises(ValueError, match=r"'weight' of .*must have 60 .*7"):
        NeighborSampler(data, [1], weight_attr='weight')
