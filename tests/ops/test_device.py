"""The fronts let tensors on CUDA through without a look at their values."""

import re
from pathlib import Path

import pytest
import torch
from torch.utils._pytree import tree_leaves

from tests.ops.fake_cuda import FAKE, kernels, on_cuda
from tests.ops.layers import sample_plain_layers, sample_typed_layers
from tests.ops.neighbors import make_graph, sample_one, sample_typed
from torch_gsample import ops
from torch_gsample.rng import make_key

CSRC = Path(__file__).resolve().parents[2] / 'csrc'
KEY = make_key(0)
TWO = KEY.repeat(2, 1)


class Operands:
    """What operators are called with, where `on_cuda` puts it."""

    def __init__(self, on_cuda):
        self.graph = (
            on_cuda(torch.tensor([0, 1, 2])),
            on_cuda(torch.tensor([1, 0])),
        )
        self.ptr = self.graph[0]
        self.ids = on_cuda(torch.tensor([0, 1]))
        self.weight = on_cuda(torch.ones(2))
        self.cum_weight = on_cuda(torch.ones(3, dtype=torch.int64))
        self.rows = on_cuda(torch.ones(3, 2))
        self.key = on_cuda(KEY)


#: Calls each operator that has a CUDA kernel.
CALLS = {
    'check_csc': lambda t: torch.ops.gsample.check_csc(*t.graph, 2),
    'coo_to_csc': lambda t: ops.coo_to_csc(t.ids, t.ids, 2, 2),
    'cumulate_weights': lambda t: ops.cumulate_weights(t.graph[0], t.weight),
    'forest_fire': lambda t: ops.forest_fire(*t.graph, t.ids, 0.5, key=KEY),
    'gather_rows': lambda t: ops.gather_rows(t.rows, t.ids),
    'induce_subgraph': lambda t: ops.induce_subgraph(
        *t.graph, 2, t.ids, t.ids, t.ids, t.ids
    ),
    'labor_scale': lambda t: ops.labor.labor_scale(
        t.graph[0], t.weight.double(), 1
    ),
    'sample_layers, typed': lambda t: tree_leaves(
        sample_typed_layers(
            *([t.graph[0]] * 2, [t.graph[1]] * 2, [(0, 0)] * 2, [2]),
            *([t.ids], [[2, 2]] * 2),
            key=[KEY, KEY],
            cum_weight=[t.cum_weight, None],
            edge_time=[t.ids, None],
            seed_time=[t.ids],
            disjoint=True,
        )
    ),
    'metapath_walk': lambda t: ops.metapath_walk(
        [t.graph[0]], [t.graph[1]], [0, 0], t.ids, key=KEY
    ),
    'negative_sample': lambda t: ops.negative_sample(
        t.ids,
        2,
        key=KEY,
        anchor=t.ids,
        indptr=t.graph[0],
        indices=t.graph[1],
        order=t.ids,
        order_time=t.ids,
        max_time=t.ids,
        cum_weight=t.cum_weight,
    ),
    'node2vec_walk': lambda t: ops.node2vec_walk(
        *t.graph, t.ids, 3, 1.0, 2.0, key=KEY
    ),
    'positive_weights': lambda t: ops.formats.positive_weights(t.weight),
    'positive_weights of batches': lambda t: ops.formats.positive_weights(
        t.weight, ptr=t.ptr
    ),
    'random_uniform': lambda t: ops.random_uniform(t.ids, key=KEY),
    'random_walk': lambda t: ops.random_walk(*t.graph, t.ids, 3, key=KEY),
    'sample_columns': lambda t: ops.sample_columns(
        t.graph[0], 2, key=TWO, cols=t.ids, id=t.ids, ptr=t.ptr
    ),
    'sample_columns elsewhere': lambda t: ops.sample_columns(
        t.graph[0],
        1,
        key=KEY,
        start=t.ids,
        root=t.ids,
        cum_weight=t.cum_weight,
        edge_time=t.ids,
        column_time=t.ids,
    ),
    'sample_layers': lambda t: next(
        iter(sample_plain_layers(*t.graph, t.ids, [2, 2], key=[KEY, KEY]))
    ),
    'sample_neighbors': lambda t: sample_one(*t.graph, t.ids, [2], key=KEY),
    'sample_neighbors of types': lambda t: ops.sample_neighbors(
        make_graph([t.graph[0]] * 2, [t.graph[1]] * 2, [(0, 0)] * 2, [2]),
        [t.ids],
        [[2], [1]],
        t.key,
        max_edges=[3, 2],
    )[:6],
    'sample_nodes': lambda t: ops.sample_nodes(
        2, 1, key=KEY, device=t.ids.device
    ),
    'sample_nodes of batches': lambda t: ops.sample_nodes(
        2, 1, key=TWO, ptr=t.ptr, cum_weight=t.cum_weight
    ),
    'slice_cols': lambda t: ops.slice_cols(*t.graph, t.ids),
    'slice_rows': lambda t: ops.slice_rows(*t.graph, 2, t.ids, t.ids),
    'slice_rows of batches': lambda t: ops.slice_rows(
        *t.graph, 2, t.ids, t.ids, row_ptr=t.ptr, col_ptr=t.ptr
    ),
    'sum_columns': lambda t: ops.sum_columns(t.graph[0], t.weight, t.ids),
    'unique_nodes': lambda t: ops.unique_nodes(t.ids, 9),
    'unique_nodes of batches': lambda t: ops.unique_nodes(t.ids, 9, ptr=t.ptr),
}


@pytest.mark.parametrize('name', CALLS)
def test_nothing_waits_for_the_gpu(name):
    with FAKE, kernels():
        out = CALLS[name](Operands(on_cuda))
    first = out if isinstance(out, torch.Tensor) else next(iter(out))
    assert first.device == torch.device('cuda:0')


def test_every_operator_on_cuda_is_called():
    text = ''.join(p.read_text() for p in (CSRC / 'bind').glob('*_cuda.cpp'))
    registered = set(re.findall(r'm\.impl\("(\w+)"', text))
    assert registered == {re.match(r'\w+', name)[0] for name in CALLS}


IDS = on_cuda(torch.tensor([0, 1]))
HOST = torch.tensor([0, 1, 2]), torch.tensor([1, 0])
OF_HOST = {
    'sample_neighbors': lambda: sample_one(*HOST, IDS, [2], key=KEY),
    'sample_neighbors, padded': lambda: (
        sample_typed(
            *[[HOST[0]], [HOST[1]], [(0, 0)], [2], [IDS], [[2]]],
            key=KEY,
            max_edges=[4],
        ).row
    ),
    'sample_layers': lambda: sample_typed_layers(
        *[[HOST[0]], [HOST[1]], [(0, 0)], [2], [IDS], [[2]]], key=[KEY]
    ).row[0],
}


@pytest.mark.parametrize('name', OF_HOST)
def test_graphs_in_pinned_memory_are_sampled_where_seeds_are(
    name, monkeypatch
):
    monkeypatch.setattr(ops._check, 'is_readable', lambda *_: True)
    with FAKE, kernels():
        out = OF_HOST[name]()
    assert out[0].device == torch.device('cuda:0')
