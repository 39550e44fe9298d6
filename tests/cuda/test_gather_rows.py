"""gather_rows on the GPU against the CPU, bit for bit."""

import pytest
import torch

from tests.cuda.graphs import SHAPES
from tests.cuda.test_walk import assert_same

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.half,
    torch.float32,
    torch.int64,
    torch.complex128,
]
INDEX = torch.tensor([3, 1, 4, 1, 0, 2, 2] * 3)


@pytest.mark.parametrize('dtype', DTYPES, ids=str)
@pytest.mark.parametrize('row', [(), (1,), (3,), (2, 4), (0,), (33,), (100,)])
def test_it_equals_the_cpu(cuda, row, dtype):
    values = torch.arange(5 * torch.Size(row).numel()).view(5, *row)
    values = values.to(dtype)
    for seed, index in enumerate([INDEX, INDEX[:1], INDEX[:0]]):
        cuda.configure(seed, *SHAPES[seed])
        assert_same(cuda, 'gather_rows', values, index)


@pytest.mark.parametrize('offset', range(1, 17))
def test_rows_that_are_not_aligned(cuda, offset):
    memory = torch.arange(200, dtype=torch.uint8)
    values = memory[offset : offset + 160].view(5, 32)
    cuda.configure()
    assert_same(cuda, 'gather_rows', values, INDEX)


@pytest.mark.parametrize('row', [(), (3,), (2, 4), (0,), (33,)])
@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16, torch.int8])
def test_widened_rows_equal_the_cpus(cuda, row, dtype):
    values = torch.randn(5, *row).mul(40).to(dtype)
    scale = torch.rand(5) if dtype == torch.int8 else None
    for seed, index in enumerate([INDEX, INDEX[:1], INDEX[:0]]):
        cuda.configure(seed, *SHAPES[seed])
        assert_same(cuda, 'gather_rows', values, index, scale, widen=True)


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_every_number_widens_as_on_the_cpu(cuda, dtype):
    bits = torch.arange(2**16).to(torch.int32).to(torch.int16)
    values = bits.view(dtype).view(-1, 64)
    cuda.configure()
    index = torch.arange(len(values))
    out = cuda.operator('gather_rows')(values, index, widen=True)
    want = torch.ops.gsample.gather_rows(values, index, widen=True)
    assert torch.equal(out.view(torch.int32), want.view(torch.int32))


@pytest.mark.parametrize('seed', range(10))
def test_the_order_of_execution_changes_nothing(cuda, seed):
    cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
    values = torch.rand(5, 7)
    assert_same(cuda, 'gather_rows', values, INDEX)


@pytest.mark.parametrize('bad', [-1, 5, 2**62, -(2**63)])
def test_an_index_that_is_no_row_ends_in_an_error(cuda, bad):
    cuda.configure()
    index = torch.tensor([0, 4, bad, 1])
    message = rf"gather_rows: 'index' must be in \[0, 5\) \(got {bad} at posi"
    with pytest.raises(RuntimeError, match=message):
        cuda.operator('gather_rows')(torch.rand(5, 3), index)
    with pytest.raises(RuntimeError, match=r'must be in \[0, 0\)'):
        cuda.operator('gather_rows')(torch.rand(0, 3), index)
