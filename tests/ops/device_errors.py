"""Errors about where tensors are, and about tangents that they carry."""

import torch
from torch.autograd import forward_ad

from tests.ops.fake_cuda import FAKE, kernels, on_cuda
from torch_gsample import ops
from torch_gsample.rng import make_key

KEY = make_key(0)
INDPTR, INDICES = torch.tensor([0, 1, 2]), torch.tensor([1, 0])
SEEDS = torch.tensor([0])
CUDA = on_cuda(INDPTR), on_cuda(INDICES)
OTHER = on_cuda(INDPTR, 1), on_cuda(INDICES, 1)
ROWS = torch.ones(3, 2)


def walk(indptr, indices, seeds, key=KEY):
    with kernels():
        ops.random_walk(indptr, indices, seeds, 2, key=key)


def metapath(indptr, indices, seeds):
    with kernels():
        ops.metapath_walk(indptr, indices, [0, 1], seeds, key=KEY)


def sample(indptr, cols):
    with kernels():
        ops.sample_columns(indptr, 1, cols=cols, key=KEY)


def fire(indptr, indices, seeds):
    with kernels():
        ops.forest_fire(indptr, indices, seeds, 0.5, key=KEY)


def sample_nodes_of_no_build():
    with FAKE, kernels(built=False):
        ops.sample_nodes(3, 1, key=KEY, device=CUDA[0].device)


def gather(input, index):
    with kernels():
        ops.gather_rows(input, index)


def unique():
    with kernels(built=False):
        ops.unique_nodes(on_cuda(SEEDS), 3)


def gather_with_tangent():
    with forward_ad.dual_level():
        ops.gather_rows(forward_ad.make_dual(ROWS, ROWS), SEEDS)


DEVICE_ERRORS = [
    (
        ValueError,
        unique,
        "'id' is on cuda:0, but this torch_gsample was built without CUDA",
    ),
    (
        ValueError,
        sample_nodes_of_no_build,
        "sample_nodes: 'device' is on cuda:0, but this torch_gsample was bui",
    ),
    (
        ValueError,
        lambda: walk(INDPTR, INDICES, on_cuda(SEEDS)),
        "random_walk: 'indptr' must be on cuda:0 or in pinned memory (got ",
    ),
    (
        ValueError,
        lambda: walk(*CUDA, SEEDS),
        "'seeds' must be on cuda:0, where the graph is (got cpu)",
    ),
    (
        ValueError,
        lambda: walk(CUDA[0], OTHER[1], SEEDS),
        "'indices' must be on cuda:0 or in pinned memory (got cuda:1, not pin",
    ),
    (
        ValueError,
        lambda: walk(*CUDA, on_cuda(SEEDS), KEY.to('meta')),
        "'key' must be on the CPU (got meta)",
    ),
    (
        ValueError,
        lambda: metapath(*zip(CUDA, OTHER, strict=True), on_cuda(SEEDS)),
        "'indptr' must be on cuda:0 or in pinned memory (got cuda:1, not pin",
    ),
    (
        ValueError,
        lambda: sample(CUDA[0], SEEDS),
        "'cols' must be on cuda:0, where the graph is (got cpu)",
    ),
    (
        ValueError,
        lambda: fire(*CUDA, SEEDS),
        "'seeds' must be on cuda:0, where the graph is (got cpu)",
    ),
    (
        ValueError,
        lambda: gather(ROWS, on_cuda(SEEDS)),
        "'input' must be on cuda:0, the device of 'index', or in pinned "
        'memory for CUDA (got cpu, not pinned)',
    ),
    (
        ValueError,
        lambda: gather(on_cuda(ROWS), SEEDS),
        "'input' must be on cpu, the device of 'index'",
    ),
    (
        NotImplementedError,
        gather_with_tangent,
        'gather_rows: forward-mode gradients and transforms of torch.func',
    ),
]
