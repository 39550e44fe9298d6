"""The fronts let tensors on CUDA through without a look at their values."""

import re
from pathlib import Path

import pytest
import torch

from tests.ops.fake_cuda import FAKE, kernels, on_cuda
from torch_gsample import ops
from torch_gsample.rng import make_key

CSRC = Path(__file__).resolve().parents[2] / 'csrc'
GRAPH = on_cuda(torch.tensor([0, 1, 2])), on_cuda(torch.tensor([1, 0]))
IDS = on_cuda(torch.tensor([0, 1]))
KEY = make_key(0)
WEIGHT = on_cuda(torch.ones(2))
CUM_WEIGHT = on_cuda(torch.ones(3, dtype=torch.int64))
PTR = GRAPH[0]
TWO = KEY.repeat(2, 1)
CALLS = {
    'check_csc': lambda: torch.ops.gsample.check_csc(*GRAPH, 2),
    'coo_to_csc': lambda: ops.coo_to_csc(IDS, IDS, 2, 2),
    'cumulate_weights': lambda: ops.cumulate_weights(GRAPH[0], WEIGHT),
    'forest_fire': lambda: ops.forest_fire(*GRAPH, IDS, 0.5, key=KEY),
    'gather_rows': lambda: ops.gather_rows(on_cuda(torch.ones(3, 2)), IDS),
    'induce_subgraph': lambda: ops.induce_subgraph(
        *GRAPH, 2, IDS, IDS, IDS, IDS
    ),
    'labor_scale': lambda: ops.labor_scale(GRAPH[0], WEIGHT.double(), 1),
    'hetero_neighbor_sample': lambda: [
        tensors[0]
        for tensors in ops.hetero_neighbor_sample(
            [GRAPH[0]], [GRAPH[1]], [(0, 0)], [2], [IDS], [[2]], key=KEY
        )
    ],
    'metapath_walk': lambda: ops.metapath_walk(
        [GRAPH[0]], [GRAPH[1]], [0, 0], IDS, key=KEY
    ),
    'negative_sample': lambda: ops.negative_sample(
        IDS,
        2,
        key=KEY,
        anchor=IDS,
        indptr=GRAPH[0],
        indices=GRAPH[1],
        order=IDS,
        order_time=IDS,
        max_time=IDS,
        cum_weight=CUM_WEIGHT,
    ),
    'neighbor_sample': lambda: ops.neighbor_sample(*GRAPH, IDS, [2], key=KEY),
    'neighbor_sample_padded': lambda: ops.neighbor_sample_padded(
        *GRAPH, IDS, [2], key=on_cuda(KEY), max_edges=3
    ),
    'node2vec_walk': lambda: ops.node2vec_walk(
        *GRAPH, IDS, 3, 1.0, 2.0, key=KEY
    ),
    'positive_weights': lambda: ops.positive_weights(WEIGHT),
    'positive_weights_segments': lambda: ops.positive_weights_segments(
        WEIGHT, PTR
    ),
    'random_uniform': lambda: ops.random_uniform(IDS, key=KEY),
    'random_walk': lambda: ops.random_walk(*GRAPH, IDS, 3, key=KEY),
    'sample_cols': lambda: ops.sample_cols(
        GRAPH[0], 2, key=TWO, cols=IDS, id=IDS, ptr=PTR
    ),
    'sample_frontier': lambda: ops.sample_frontier(
        GRAPH[0],
        IDS,
        IDS,
        1,
        key=KEY,
        root=IDS,
        cum_weight=CUM_WEIGHT,
        edge_time=IDS,
        column_time=IDS,
    ),
    'sample_hops': lambda: next(
        iter(ops.sample_hops(*GRAPH, IDS, [2, 2], key=[KEY, KEY]))
    ),
    'sample_nodes': lambda: ops.sample_nodes(2, 1, key=KEY, device=IDS.device),
    'sample_nodes_segments': lambda: ops.sample_nodes_segments(
        2, 1, key=TWO, ptr=PTR, cum_weight=CUM_WEIGHT
    ),
    'sample_nodes_segments of the same nodes': lambda: (
        ops.sample_nodes_segments(2, 1, key=TWO, device=IDS.device)
    ),
    'slice_cols': lambda: ops.slice_cols(*GRAPH, IDS),
    'slice_rows': lambda: ops.slice_rows(*GRAPH, 2, IDS, IDS),
    'slice_rows_segments': lambda: ops.slice_rows_segments(
        *GRAPH, 2, IDS, PTR, IDS, PTR
    ),
    'sum_columns': lambda: ops.sum_columns(GRAPH[0], WEIGHT, IDS),
    'unique_nodes': lambda: ops.unique_nodes(IDS, 9),
    'unique_nodes_segments': lambda: ops.unique_nodes_segments(IDS, PTR, 9),
}


@pytest.mark.parametrize('name', CALLS)
def test_nothing_waits_for_the_gpu(name):
    with FAKE, kernels():
        out = CALLS[name]()
    first = out if isinstance(out, torch.Tensor) else next(iter(out))
    assert first.device == torch.device('cuda:0')


def test_every_operator_on_cuda_is_called():
    text = ''.join(p.read_text() for p in (CSRC / 'bind').glob('*_cuda.cpp'))
    registered = set(re.findall(r'm\.impl\("(\w+)"', text))
    assert registered == {name.split()[0] for name in CALLS}


HOST = torch.tensor([0, 1, 2]), torch.tensor([1, 0])
OF_HOST = {
    'neighbor_sample': lambda: ops.neighbor_sample(*HOST, IDS, [2], key=KEY),
    'neighbor_sample_padded': lambda: ops.neighbor_sample_padded(
        *HOST, IDS, [2], key=KEY, max_edges=4
    ),
    'hetero_neighbor_sample': lambda: (
        ops.hetero_neighbor_sample(
            *[[HOST[0]], [HOST[1]], [(0, 0)], [2], [IDS], [[2]]], key=KEY
        ).row
    ),
}


@pytest.mark.parametrize('name', OF_HOST)
def test_graphs_in_pinned_memory_are_sampled_where_seeds_are(
    name, monkeypatch
):
    monkeypatch.setattr(ops._check, 'is_readable', lambda *_: True)
    with FAKE, kernels():
        out = OF_HOST[name]()
    assert out[0].device == torch.device('cuda:0')
