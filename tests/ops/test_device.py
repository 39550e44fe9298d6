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
CALLS = {
    'gather_rows': lambda: ops.gather_rows(on_cuda(torch.ones(3, 2)), IDS),
    'hetero_neighbor_sample': lambda: [
        tensors[0]
        for tensors in ops.hetero_neighbor_sample(
            [GRAPH[0]], [GRAPH[1]], [(0, 0)], [2], [IDS], [[2]], key=KEY
        )
    ],
    'metapath_walk': lambda: ops.metapath_walk(
        [GRAPH[0]], [GRAPH[1]], [0, 0], IDS, key=KEY
    ),
    'neighbor_sample': lambda: ops.neighbor_sample(*GRAPH, IDS, [2], key=KEY),
    'neighbor_sample_padded': lambda: ops.neighbor_sample_padded(
        *GRAPH, IDS, [2], key=on_cuda(KEY), max_edges=3
    ),
    'node2vec_walk': lambda: ops.node2vec_walk(
        *GRAPH, IDS, 3, 1.0, 2.0, key=KEY
    ),
    'random_uniform': lambda: ops.random_uniform(IDS, key=KEY),
    'random_walk': lambda: ops.random_walk(*GRAPH, IDS, 3, key=KEY),
    'sample_cols': lambda: ops.sample_cols(
        GRAPH[0], 2, key=KEY, cols=IDS, id=IDS
    ),
    'slice_cols': lambda: ops.slice_cols(*GRAPH, IDS),
    'unique_nodes': lambda: ops.unique_nodes(IDS, 9),
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
    assert registered == set(CALLS)
