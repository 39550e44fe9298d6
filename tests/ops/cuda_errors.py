"""Errors of graphs on a GPU and of padded samples, which need none."""

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tests.ops.fake_cuda import kernels
from torch_gsample import ops
from torch_gsample.rng import make_key


def on_gpu(size):
    """A tensor without memory."""
    with FakeTensorMode():
        return torch.empty(size, dtype=torch.int64, device='cuda:0')


def on_cpu(size):
    return torch.zeros(size, dtype=torch.int64)


def sample(indptr, indices, seeds, built=True):
    """neighbor_sample of a build that has CUDA kernels, or none."""
    with kernels(built):
        ops.neighbor_sample(indptr, indices, seeds, [1], key=make_key(0))


def hetero(indptr, indices, seeds):
    """hetero_neighbor_sample of a build that has CUDA kernels."""
    with kernels():
        ops.hetero_neighbor_sample(
            *[[indptr], [indices], [(0, 0)], [3], [seeds], [[1]]],
            key=make_key(0),
        )


def padded(fault):
    """A padded sample, with what a GPU found."""
    out = ops.neighbor_sample_padded(
        *[on_cpu(4), on_cpu(0), on_cpu(2), [1]],
        key=make_key(0),
        max_edges=2,
    )
    out._replace(fault=torch.tensor(fault)).check()


def hetero_padded(fault=(0, 0, 0, 0), max_edges=(2,)):
    """The same, of two node types and a relation."""
    out = ops.hetero_neighbor_sample_padded(
        *[[on_cpu(4)], [on_cpu(0)], [(1, 0)], [3, 9]],
        *[[on_cpu(2), on_cpu(2)], [[1]]],
        key=make_key(0),
        max_edges=max_edges,
    )
    out._replace(fault=torch.tensor(fault)).check()


CUDA_ERRORS = [
    (
        IndexError,
        lambda: hetero_padded([1, 2, 7, 1]),
        "hetero_neighbor_sample_padded: 'seeds' must be in the graph "
        '(got 7 at position 2 of node type 1)',
    ),
    (
        ValueError,
        lambda: hetero_padded(max_edges=[1, 1]),
        "'max_edges' must have one item for each of 1 relations (got 2)",
    ),
    (
        ValueError,
        lambda: hetero_padded(max_edges=[-1]),
        "hetero_neighbor_sample_padded: 'max_edges' must be at least 0 (got -",
    ),
    (
        IndexError,
        lambda: padded([1, 2, 7]),
        "neighbor_sample_padded: 'seeds' must be in the graph (got 7 at posi",
    ),
    (
        ValueError,
        lambda: sample(on_gpu(4), on_gpu(3), on_gpu(2), built=False),
        "'indptr' is on cuda:0, but this torch_gsample was built without CUDA;"
        ' build it with GSAMPLE_CUDA=1, or move the graph to the CPU',
    ),
    (
        ValueError,
        lambda: sample(on_cpu(4), on_cpu(0), on_gpu(2)),
        "'indptr' must be on cuda:0 or in pinned memory "
        '(got cpu, not pinned): move the graph there, or pin it with '
        'torch_gsample.placement.pin',
    ),
    (
        ValueError,
        lambda: hetero(on_cpu(4), on_cpu(0), on_gpu(2)),
        "hetero_neighbor_sample: 'indptr' must be on cuda:0 or in p",
    ),
    (
        ValueError,
        lambda: sample(on_cpu(4), on_cpu(0), on_gpu(2), built=False),
        "'seeds' is on cuda:0, but this torch_gsample was built without CUDA",
    ),
    (
        ValueError,
        lambda: sample(on_gpu(4), on_cpu(3), on_gpu(2)),
        "'indices' must be on cuda:0 or in pinned memory (got cpu",
    ),
    (
        ValueError,
        lambda: sample(on_gpu(4), on_gpu(3), on_cpu(2)),
        "'seeds' must be on cuda:0, where the graph is (got cpu)",
    ),
]
