"""Errors of weights name the user's operation, argument and position."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.sampler import EdgeSamplerInput, NegativeSampling

from torch_gsample import NeighborSampler, SparseSample
from torch_gsample.graph import Graph
from torch_gsample.storage import ChunkedGraph

# Neither by source nor by destination: edges are sorted for both.
EDGES = torch.tensor([[3, 0, 1, 2, 0], [2, 1, 0, 2, 0]])
WEIGHT = torch.tensor([1.0, 1.0, 1.0, -2.0, 1.0])
SEEDS = torch.tensor([0, 1])


def data():
    return Data(edge_index=EDGES, num_nodes=4, weight=WEIGHT)


def matrix():
    return SparseSample.from_edge_index(EDGES, num_nodes=4)


def negatives(_):
    weight = torch.tensor([1.0, 1.0, 1.0, -2.0])
    sampling = NegativeSampling('binary', 1, weight, torch.ones(4))
    inputs = EdgeSamplerInput(None, EDGES[0], EDGES[1])
    sampler = NeighborSampler(data(), [2], seed=0)
    return sampler.sample_from_edges(inputs, sampling)


CALLS = {
    "NeighborSampler: 'weight'": lambda _: NeighborSampler(
        data(), [2], weight_attr='weight'
    ),
    "Graph.with_weights: 'weight'": lambda _: Graph.from_edge_index(
        EDGES
    ).with_weights({None: WEIGHT}),
    "ChunkedGraph.write: 'weight'": lambda path: ChunkedGraph.write(
        path / 'graph', data(), weight_attr='weight'
    ),
    "individual_sample: 'probs'": lambda _: matrix().individual_sample(
        1, probs=WEIGHT
    ),
    "random_walk: 'probs'": lambda _: matrix().random_walk(
        SEEDS, 3, probs=WEIGHT
    ),
    "node2vec_walk: 'probs'": lambda _: matrix().node2vec_walk(
        SEEDS, 3, 1.0, 1.0, probs=WEIGHT
    ),
    "NeighborSampler: 'src_weight'": negatives,
}


@pytest.mark.parametrize('prefix', CALLS)
def test_a_negative_weight_is_named_as_the_user_gave_it(tmp_path, prefix):
    match = f'^{prefix} must be finite and not negative .got -2.0 at '
    with pytest.raises(ValueError, match=f'{match}position 3'):
        CALLS[prefix](tmp_path)


@pytest.mark.parametrize(
    'weight', [WEIGHT.to(torch.complex64), WEIGHT[:, None]]
)
def test_weights_of_another_kind_are_named(weight):
    with pytest.raises(
        TypeError, match=r"^Graph\.with_weights: 'weight' must"
    ):
        Graph.from_edge_index(EDGES).with_weights({None: weight})
