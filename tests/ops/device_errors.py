"""Errors about where tensors are."""

import torch

from tests.ops.fake_cuda import on_cuda
from torch_gsample import ops
from torch_gsample.ops import _check
from torch_gsample.rng import make_key

KEY = make_key(0)
INDPTR, INDICES = torch.tensor([0, 1, 2]), torch.tensor([1, 0])
SEEDS = torch.tensor([0])
CUDA = on_cuda(INDPTR), on_cuda(INDICES)
OTHER = on_cuda(INDPTR, 1), on_cuda(INDICES, 1)
ROWS = torch.ones(3, 2)


def no_kernel():
    raise NotImplementedError("gsample::x: arguments from the 'CUDA' backend")


no_kernel.__name__ = 'random_walk.default'


def walk(indptr, indices, seeds, key=KEY):
    return ops.random_walk(indptr, indices, seeds, 2, key=key)


DEVICE_ERRORS = [
    (
        ValueError,
        lambda: walk(INDPTR, INDICES, on_cuda(SEEDS)),
        "'seeds' must be on cpu, where the graph is (got cuda:0); move one of "
        'them with Tensor.to',
    ),
    (
        ValueError,
        lambda: walk(*CUDA, SEEDS),
        "'seeds' must be on cuda:0, where the graph is (got cpu)",
    ),
    (
        ValueError,
        lambda: walk(CUDA[0], OTHER[1], SEEDS),
        "'indices' must be on cuda:0, where the graph is (got cuda:1)",
    ),
    (
        ValueError,
        lambda: walk(*CUDA, on_cuda(SEEDS), KEY.to('meta')),
        "'key' must be on the CPU (got meta)",
    ),
    (
        ValueError,
        lambda: ops.metapath_walk(
            [CUDA[0], OTHER[0]],
            [CUDA[1], OTHER[1]],
            [0, 1],
            on_cuda(SEEDS),
            key=KEY,
        ),
        "'indptr' must be on cuda:0, where the graph is (got cuda:1)",
    ),
    (
        ValueError,
        lambda: ops.sample_cols(CUDA[0], 1, cols=SEEDS, key=KEY),
        "'cols' must be on cuda:0, where the graph is (got cpu)",
    ),
    (
        ValueError,
        lambda: ops.induce_subgraph(*CUDA, 2, SEEDS, SEEDS),
        "'indptr' must be on the CPU (got cuda:0)",
    ),
    (
        ValueError,
        lambda: ops.gather_rows(ROWS, on_cuda(SEEDS)),
        "'input' must be on cuda:0, where 'index' is, or in pinned memory for "
        'CUDA (got cpu, not pinned)',
    ),
    (
        ValueError,
        lambda: ops.gather_rows(on_cuda(ROWS), SEEDS),
        "'input' must be on cpu, where 'index' is",
    ),
    (
        NotImplementedError,
        lambda: _check.call(no_kernel),
        'random_walk: this build of torch_gsample has no kernel for CUDA; '
        'build it with GSAMPLE_CUDA=1, or move the tensors to the CPU',
    ),
]
