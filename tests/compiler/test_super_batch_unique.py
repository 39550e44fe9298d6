"""Distinct integers of several batches that run together."""

import warnings

import pytest
import torch

from torch_gsample import SparseSample, super_batch

EDGES = torch.randint(
    100, (2, 2_000), generator=torch.Generator().manual_seed(0)
)


@pytest.mark.parametrize('dtype', [torch.int32, torch.int64])
@pytest.mark.parametrize('moved', [0, -50, -(2**31) + 1])
def test_negative_integers_are_unique_in_batches_together(moved, dtype):
    def program(A, seeds):
        rows = (A[:, seeds].edges()[0].long() + moved).to(dtype)
        distinct = rows.unique(return_inverse=True, return_counts=True)
        return *distinct, (rows * 2).unique()

    A = SparseSample.from_edge_index(EDGES)
    seeds = [torch.arange(size) * 7 % 100 for size in (9, 0, 30)]
    together = super_batch(program, 3)
    with warnings.catch_warnings():
        warnings.simplefilter('error')  # that of batches one by one
        found = together(A, seeds)
        again = together(A, seeds)
    assert together.notes[0] == 'several batches run together'
    for batch, ids in enumerate(seeds):
        want = program(A, ids)
        for x, y, z in zip(want, found[batch], again[batch], strict=True):
            assert x.dtype == y.dtype
            assert torch.equal(x, y)
            assert torch.equal(x, z)


def test_integers_too_far_apart_run_one_by_one():
    def program(A, seeds):
        ends = torch.tensor([-(2**62), 2**62])
        return (A[:, seeds].edges()[0] * 0 + ends[seeds[:1]]).unique()

    A = SparseSample.from_edge_index(EDGES)
    seeds = [torch.tensor([0, 1]), torch.tensor([1, 0])]
    with pytest.warns(UserWarning, match='one by one'):
        found = super_batch(program, 2)(A, seeds)
    assert [x.tolist() for x in found] == [[-(2**62)], [2**62]]
