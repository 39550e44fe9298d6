"""neighbor_sample_padded on the (emulated) GPU against the CPU."""

import pytest
import torch

from tests.cuda import test_neighbor_sample as cases
from tests.cuda.conftest import ON_CUDA
from tests.ops.cases import arguments
from tests.ops.compare import assert_equal_tensors, numbers
from torch_gsample import ops
from torch_gsample.formats import CSC
from torch_gsample.ops import PaddedSample
from torch_gsample.rng import make_key


def sample(operator, graph, seeds, fanouts, max_edges, **options):
    return operator(*graph, seeds, fanouts, make_key(3), max_edges, **options)


@pytest.mark.parametrize('options', cases.OPTIONS)
def test_it_equals_the_cpu(cuda, options):
    graph, seeds = cases.skewed_graph(0), cases.some_seeds(1)
    given, _ = arguments(CSC(*graph, 80), seeds, **cases.OPTIONS[options])
    given = numbers(given)
    for seed, (fanouts, more) in enumerate([([3, 2], 9), ([2], 0), ([], 3)]):
        cuda.configure(seed, *cases.SHAPES[seed])
        on_cpu = torch.ops.gsample.neighbor_sample
        edges = on_cpu(*graph, seeds, fanouts, make_key(3), **given)[0].numel()
        args = graph, seeds, fanouts, edges + more
        want = sample(torch.ops.gsample.neighbor_sample_padded, *args, **given)
        out = sample(cuda.operator('neighbor_sample_padded'), *args, **given)
        assert_equal_tensors(out, want)


def faulty(cuda, seeds=(0, 1), indptr=(0, 2, 4), indices=(0, 1, 1, 0), most=9):
    cuda.configure()
    graph = torch.tensor(indptr), torch.tensor(indices)
    operator = cuda.operator('neighbor_sample_padded')
    out = sample(operator, graph, torch.tensor(seeds), [-1, -1], most)
    out = PaddedSample(*out)
    if int(out.fault[0]) != 0:
        assert set(out.row.tolist() + out.node.tolist()) <= {-1}
        assert int(out.num_nodes.sum()) == int(out.num_edges.sum()) == 0
    return out


@pytest.mark.sanitize
def test_faults_are_noted_and_the_sample_is_empty(cuda):
    faulty(cuda).check()
    with pytest.raises(IndexError, match=r'got 2 at position 1'):
        faulty(cuda, seeds=(0, 2)).check()
    with pytest.raises(RuntimeError, match="'indptr' must ascend"):
        faulty(cuda, indptr=(0, 5, 4)).check()
    with pytest.raises(RuntimeError, match="'indices' must be nodes"):
        faulty(cuda, indices=(0, 1, 1, 2)).check()
    for most in (0, 3):
        with pytest.raises(RuntimeError, match=r'at least 4'):
            faulty(cuda, most=most).check()


@pytest.mark.parametrize('device', ON_CUDA)
def test_a_cuda_graph_samples_anew_for_each_key(device):
    """It takes a GPU: the key is read, and the seeds, at each replay."""
    graph = [tensor.to(device) for tensor in cases.skewed_graph(0)]
    seeds = cases.some_seeds(0).to(device)
    key = make_key(0).to(device)

    def run():
        return ops.neighbor_sample_padded(
            *graph, seeds, [3, 2], key=key, max_edges=99
        )

    run()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        out = run()
    for batch in range(3):
        key.copy_(make_key(0, batch=batch))
        seeds.copy_(cases.some_seeds(batch))
        captured.replay()
        want = ops.neighbor_sample_padded(
            *cases.skewed_graph(0),
            cases.some_seeds(batch),
            [3, 2],
            key=make_key(0, batch=batch),
            max_edges=99,
        )
        out.check()
        for a, b in zip(out, want, strict=True):
            assert torch.equal(a.cpu(), b)
