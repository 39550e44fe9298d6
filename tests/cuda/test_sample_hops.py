"""Several hops on simulated CUDA against the CPU's, bit for bit."""

import pytest
import torch

from tests.cuda.simulated import OnCuda, Simulated, held
from tests.cuda.test_matrix import graph_of
from tests.cuda.test_neighbor_sample import DTYPES, some_seeds
from tests.cuda.test_walk import some_weights
from torch_gsample import ops
from torch_gsample.ops.sample_hops import FRONTIERS
from torch_gsample.ops.sample_hops_cuda import sample_hops_cuda
from torch_gsample.rng import make_key

KEYS = [make_key(seed) for seed in range(3)]


@pytest.mark.parametrize('is_sorted', [False, True])
@pytest.mark.parametrize('dtypes', DTYPES, ids=str)
@pytest.mark.parametrize('frontier', FRONTIERS)
def test_hops(frontier, dtypes, is_sorted):
    """The loop itself, over operators of the CPU."""
    graph = graph_of(dtypes)
    weight = some_weights(graph[0], graph[1].numel(), 1)
    for seed, fanouts in enumerate([[], [3], [2, 3], [3, 0, 2], [4, -1, 2]]):
        hops = range(len(fanouts))
        args = *graph, some_seeds(seed), fanouts, KEYS[: len(fanouts)]
        for cum_weight in (None, weight):
            options = {
                'cum_weight': cum_weight,
                'frontier': frontier,
                'sorted': is_sorted,
                'replace': seed % 2 == 1 and -1 not in fanouts,
                'return_frontier': seed > 2,
            }
            want = torch.ops.gsample.sample_hops(*args, hops, **options)
            out = sample_hops_cuda(*args, list(hops), **options)
            for ours, theirs in zip(out, want, strict=True):
                for x, y in zip(ours, theirs, strict=True):
                    assert x.dtype == y.dtype
                    assert torch.equal(x, y)


@pytest.mark.parametrize('frontier', FRONTIERS)
def test_hops_on_simulated_cuda(emulated, frontier):
    emulated.configure(5, 2, 64, 10)
    graph, seeds = graph_of(DTYPES[0]), some_seeds(0)
    options = {'key': KEYS[:2], 'frontier': frontier}
    want = ops.sample_hops(*graph, seeds, [3, 2], **options)
    with Simulated(emulated) as simulated:
        graph = map(OnCuda, graph)
        out = ops.sample_hops(*graph, OnCuda(seeds), [3, 2], **options)
    assert [held(x).tolist() for part in out for x in part] == [
        x.tolist() for part in want for x in part
    ]
    assert not simulated.on_cpu
