"""Errors of graphs on a GPU and of padded samples, which need none."""

import sys
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tests.ops.fake_cuda import kernels
from tests.ops.layers import sample_typed_layers
from tests.ops.neighbors import sample_one
from torch_gsample.ops.sampling import check_fault
from torch_gsample.rng import make_key


def on_gpu(size):
    """A tensor without memory."""
    with FakeTensorMode():
        return torch.empty(size, dtype=torch.int64, device='cuda:0')


def on_cpu(size):
    return torch.zeros(size, dtype=torch.int64)


def module(name):
    """A module of `ops`: the function of its name hides it in Python 3.10."""
    return sys.modules[f'torch_gsample.ops.{name}']


def sample(indptr, indices, seeds, built=True):
    """Errors of arguments that the operator of a build refuses."""
    refused = mock.Mock(side_effect=RuntimeError('refused'))
    with (
        kernels(built),
        mock.patch.object(module('sample_neighbors'), '_operator', refused),
    ):
        sample_one(indptr, indices, seeds, [1], key=make_key(0))


def layers(indptr, indices, seeds):
    """sample_layers of a build that has CUDA kernels."""
    refused = mock.Mock(side_effect=RuntimeError('refused'))
    with (
        kernels(),
        mock.patch.object(module('sample_layers'), '_operator', refused),
    ):
        sample_typed_layers(
            *[[indptr], [indices], [(0, 0)], [3], [seeds], [[1]]],
            key=[make_key(0)],
        )


CUDA_ERRORS = [
    (
        IndexError,
        lambda: check_fault([1, 2, 7, 1]),
        "sample_neighbors: 'seeds' must be in the graph "
        '(got 7 at position 2 of node type 1)',
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
        lambda: layers(on_cpu(4), on_cpu(0), on_gpu(2)),
        "sample_layers: 'indptr' must be on cuda:0 or in p",
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
