import pytest
import torch

from tests.ops.compare import assert_equals_reference
from torch_gsample import ops
from torch_gsample.ops.features import index_rows

DTYPES = [torch.bool, torch.uint8, torch.half, torch.float32, torch.complex64]


def gather_checked(values, index):
    out = assert_equals_reference(
        'gather_rows', values, index, operator=ops.gather_rows
    )
    assert out.dtype == values.dtype
    assert out.shape == (len(index), *values.shape[1:])
    assert out.is_contiguous()
    return out


@pytest.mark.parametrize('dtype', DTYPES)
@pytest.mark.parametrize('shape', [(5,), (5, 1), (5, 3), (5, 2, 2), (5, 0)])
@pytest.mark.parametrize('index', [[], [4], [0, 0], [3, 1, 4, 1, 0, 2, 2]])
def test_rows_equal_the_reference(shape, dtype, index):
    values = torch.arange(20)[: torch.Size(shape).numel()]
    values = values.view(shape).to(dtype)
    gather_checked(values, torch.tensor(index, dtype=torch.int64))
    gather_checked(values, torch.tensor(index, dtype=torch.int32))


def test_strided_rows_equal_the_reference():
    values = torch.arange(24).view(4, 6)
    gather_checked(values.t(), torch.tensor([5, 0, 5]))
    gather_checked(values[:, ::2], torch.tensor([3, 0]))


NARROW = [torch.bfloat16, torch.float16]


@pytest.mark.parametrize('dtype', NARROW)
def test_every_number_widens_exactly(dtype):
    """All 65,536 of them, among them subnormal ones and infinities."""
    bits = torch.arange(2**16).to(torch.int32).to(torch.int16)
    values, index = bits.view(dtype), torch.arange(2**16).flip(0)
    out = ops.gather_rows(values, index, widen=True)
    want = values.float()[index]
    assert out.dtype == torch.float32
    assert torch.equal(out.isnan(), want.isnan())
    known = ~want.isnan()
    same = out.view(torch.int32) == want.view(torch.int32)
    assert same[known].all()


@pytest.mark.parametrize('dtype', NARROW)
def test_numbers_widen_alike_in_rows_of_any_length(dtype):
    """Vectors of them, and one by one: NaNs, too, have the same bits."""
    bits = torch.arange(2**16).to(torch.int32).to(torch.int16).view(dtype)
    want = ops.gather_rows(bits, torch.arange(2**16), widen=True)
    for row in (3, 8, 13, 64, 2**16):
        size = 2**16 // row * row
        values = bits[:size].view(-1, row)
        out = ops.gather_rows(values, torch.arange(len(values)), widen=True)
        same = out.view(torch.int32).view(-1) == want.view(torch.int32)[:size]
        assert same.all()
        out.fill_(-1)  # for the next call to find in its memory


@pytest.mark.parametrize('dtype', [*NARROW, torch.float32])
@pytest.mark.parametrize('shape', [(40,), (40, 3), (40, 5, 8), (40, 0)])
def test_widened_rows_equal_the_reference(shape, dtype):
    values = torch.randn(shape).to(dtype)
    index = torch.randint(40, (70,))
    out = assert_equals_reference(
        'gather_rows', values, index, operator=ops.gather_rows, widen=True
    )
    assert out.dtype == torch.float32
    assert torch.equal(out, values.float()[index])


@pytest.mark.parametrize('shape', [(40,), (40, 3), (40, 5, 8), (40, 0)])
def test_scaled_rows_equal_the_reference(shape):
    values = torch.randint(-128, 128, shape, dtype=torch.int8)
    scale = torch.randn(40) * 10.0 ** torch.randint(-30, 30, (40,))
    index = torch.randint(40, (70,))
    out = assert_equals_reference(
        'gather_rows', values, index, scale, operator=ops.gather_rows
    )
    assert out.dtype == torch.float32


def test_strided_rows_and_scales_are_read_as_they_are():
    values = torch.randint(-128, 128, (8, 6), dtype=torch.int8)
    scale, index = torch.rand(12), torch.tensor([5, 0, 3])
    out = ops.gather_rows(values.t(), index, scale[::2])
    want = values.t()[index] * scale[::2][index, None]
    assert torch.equal(out, want)


@pytest.mark.parametrize('row', [1, 16, 33, 100, 700])
def test_threads_change_no_widened_number(row):
    values = torch.randint(-128, 128, (300, row), dtype=torch.int8)
    scale = torch.rand(300)
    index = torch.randint(300, (20_000,))
    want = values[index] * scale[index].view(-1, 1)
    for num_threads in (1, 2, 4):
        out = ops.gather_rows(values, index, scale, num_threads=num_threads)
        assert torch.equal(out, want)


def test_a_bad_index_of_wide_rows_is_an_error_and_nothing_else():
    """Rows are prefetched before their index is checked."""
    values = torch.zeros(50, 300)
    for bad in (-1, 50, 2**62, -(2**63)):
        index = torch.zeros(3000, dtype=torch.int64)
        index[1030] = bad
        with pytest.raises(IndexError, match=rf'got {bad} at position 1030'):
            ops.gather_rows(values, index)


def test_threads_and_used_memory_change_no_row():
    generator = torch.Generator().manual_seed(0)
    values = torch.rand(500, 100, generator=generator)
    for size in (50_000, 48_000, 3_000, 50_000):
        index = torch.randint(500, (size,), generator=generator)
        for num_threads in (0, 1, 2, 4):
            out = ops.gather_rows(values, index, num_threads=num_threads)
            assert torch.equal(out, values[index])
            out.fill_(-1)  # for the next call to find in its memory


def test_results_that_live_do_not_share_memory():
    values = torch.eye(64)
    index = torch.arange(64).repeat(40)
    outs = [ops.gather_rows(values, index.roll(i)) for i in range(10)]
    for i, out in enumerate(outs):
        assert torch.equal(out, values[index.roll(i)])


def test_gradients_reach_the_rows():
    values = torch.rand(5, 3, dtype=torch.float64, requires_grad=True)
    index = torch.tensor([4, 0, 4, 2])
    assert torch.autograd.gradcheck(
        lambda x: ops.gather_rows(x, index), values
    )
    ops.gather_rows(values, index).sum().backward()
    assert values.grad[:, 0].tolist() == [1, 0, 1, 0, 2]


@pytest.mark.parametrize('bad', [-1, 5, 2**62, -(2**63)])
def test_the_operator_names_the_first_bad_index(bad):
    index = torch.zeros(300_000, dtype=torch.int64)
    index[[7, 299_999]] = bad
    for num_threads in (1, 4):
        with pytest.raises(RuntimeError, match=rf'got {bad} at position 7\)'):
            torch.ops.gsample.gather_rows(
                torch.zeros(5, 2), index, num_threads=num_threads
            )


@pytest.mark.parametrize('dtype', [torch.int32, torch.int64])
@pytest.mark.parametrize('shape', [(5000,), (50, 100), (3,), (0, 7)])
@pytest.mark.parametrize('low', [0, -9])
def test_signed_indices_are_those_of_torch(dtype, shape, low):
    index = (torch.arange(5000) * 7 % (9 - low) + low).to(dtype)
    index = index[: torch.Size(shape).numel()].view(shape)
    for values in (torch.rand(9), torch.rand(9, 3), torch.rand(3, 9).t()):
        out = index_rows(values, index)
        assert torch.equal(out, values[index])
        needed = values.clone().requires_grad_()
        index_rows(needed, index).sum().backward()
        want = values.clone().requires_grad_()
        want[index].sum().backward()
        assert torch.equal(needed.grad, want.grad)


@pytest.mark.parametrize('bad', [9, -10])
def test_indices_out_of_range_are_an_error_of_torch(bad):
    index = torch.zeros(5000, dtype=torch.int64)
    index[4321] = bad
    with pytest.raises(IndexError, match=f'index {bad} is out of bounds'):
        index_rows(torch.rand(9), index)
