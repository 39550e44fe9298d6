"""Compiled programs follow changes of a graph that torch does not count."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.sampler import NodeSamplerInput

import torch_gsample as gsample
from tests.compiler.programs import A, tensors
from torch_gsample.rng import make_key, program_scope
from torch_gsample.samplers import FastGCNSampler

SEEDS = torch.arange(5)


def fastgcn(A, seeds):
    return gsample.algorithms.fastgcn(A, seeds, [4])


def run(program, *args):
    with program_scope(make_key(1, 0, 0)):
        return tensors(program(*args))


def write_data(value, batch):
    value.data[batch::8] *= 100


def write_array(value, batch):
    array = value.numpy()
    array[batch::8] *= 100


@pytest.mark.parametrize('write', [write_data, write_array])
def test_each_batch_sees_weights_that_were_written_without_a_version(write):
    B = A.with_value(A.values().clone())
    fast = gsample.compile(fastgcn)
    for batch in range(8):
        write(B.value, batch)
        expected = run(fastgcn, B, SEEDS)
        for a, b in zip(run(fast, B, SEEDS), expected, strict=True):
            torch.testing.assert_close(a, b)


@pytest.fixture
def unnoticed(monkeypatch):
    """No change is noticed but those that torch counts."""
    nowhere = 'torch_gsample.snapshot._spread'
    monkeypatch.setattr(nowhere, lambda count: np.arange(0))


def matrix():
    B = A.with_value(A.values().clone())
    write_data(B.value, 3)
    return B


def change(B):
    B.value.data.copy_(A.values())


@pytest.mark.usefixtures('unnoticed')
@pytest.mark.parametrize(
    'forget',
    [lambda fast: fast.forget(), lambda fast: gsample.forget()],
    ids=['function', 'all'],
)
def test_a_compiled_function_forgets(forget):
    B, fast = matrix(), gsample.compile(fastgcn)
    before = run(fast, B, SEEDS)
    change(B)
    stale = run(fast, B, SEEDS)
    assert all(map(torch.equal, stale[:3], before[:3]))
    forget(fast)
    for a, b in zip(run(fast, B, SEEDS), run(fastgcn, B, SEEDS), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.usefixtures('unnoticed')
def test_several_batches_forget():
    B, batched = matrix(), gsample.super_batch(fastgcn, 2)

    def together():
        torch.manual_seed(3)
        outs = batched(B, [SEEDS, SEEDS + 5])
        return [tensors(out)[:3] for out in outs]

    together()  # layouts are measured
    before = together()
    assert batched.notes == ('several batches run together',)
    change(B)
    torch.testing.assert_close(together(), before)  # stale
    batched.forget()
    found = together()
    batched = gsample.super_batch(fastgcn, 2)
    torch.testing.assert_close(found, together())


@pytest.mark.usefixtures('unnoticed')
@pytest.mark.parametrize('options', [{}, {'super_batch': 1}])
def test_samplers_forget(options):
    edge_index = torch.stack(A.coo())
    data = Data(edge_index=edge_index, num_nodes=40, w=matrix().value)

    def sample(sampler):
        return sampler.sample_from_nodes(NodeSamplerInput(None, SEEDS))

    sampler = FastGCNSampler(
        data, [4], seed=1, weight_attr='w', compile=True, options=options
    )
    sample(sampler)
    [value] = [matrix.value for matrix in sampler.matrices.values()]
    value.data.fill_(1)
    gsample.forget()
    found = sample(sampler)
    sampler.compile = False
    sampler.fanouts = [4]
    assert torch.equal(found.edge, sample(sampler).edge)
