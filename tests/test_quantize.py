"""Rows in int8 with scales are as near as their definition says."""

import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torch_gsample import quantize_rows
from torch_gsample.ops import gather_rows

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


def rounded(x):
    """A number in float32."""
    return torch.tensor(x, dtype=torch.float32)


@given(st.lists(st.lists(FLOATS, min_size=3, max_size=3), max_size=5))
def test_rows_follow_the_definition(rows):
    x = torch.tensor(rows, dtype=torch.float32).view(-1, 3)
    values, scale = quantize_rows(x)
    assert values.dtype == torch.int8
    assert scale.dtype == torch.float32
    for row, q, s in zip(x, values, scale, strict=True):
        most = torch.finfo(torch.float32).max
        assert s == row.abs().max() / 127 or 127 * (s * 1.0000002) > most
        if s == 0:
            assert not q.any()
            continue
        for number, step in zip(row, q, strict=True):  # half to even
            want = max(-127, min(127, round(float(number / s))))
            assert int(step) == want


@given(st.lists(FLOATS, min_size=1, max_size=20))
def test_no_number_is_further_than_half_a_step(row):
    x = torch.tensor([row], dtype=torch.float32)
    values, scale = quantize_rows(x)
    out = gather_rows(values, torch.tensor([0]), scale)
    # A subnormal scale is rounded to a multiple of 2^-149 itself.
    bound = scale.double() * (0.5 + 127 * 2**-23) + 127 * 2.0**-149
    assert ((out.double() - x.double()).abs() <= bound).all()


def test_the_largest_numbers_stay_finite():
    most = torch.finfo(torch.float32).max
    x = torch.tensor([[most, -most, most / 2], [1.0, 2.0, -127.0]])
    values, scale = quantize_rows(x)
    assert values[0].tolist() == [127, -127, 64]
    out = gather_rows(values, torch.tensor([0, 1]), scale)
    assert out.isfinite().all()
    assert torch.equal(out[1], x[1])
    assert ((out[0].double() / x[0].double() - 1).abs() < 0.01).all()


def test_ties_are_rounded_to_even():
    x = torch.tensor([[0.5, 1.5, 2.5, -0.5, -1.5, 127]])
    assert quantize_rows(x)[0].tolist() == [[0, 2, 2, 0, -2, 127]]


def test_rows_without_numbers_or_scale_are_zero():
    values, scale = quantize_rows(torch.zeros(2, 3))
    assert not values.any()
    assert not scale.any()
    values, scale = quantize_rows(torch.full((1, 2), 1e-45))
    assert values.tolist() == [[0, 0]]
    assert scale.tolist() == [0]
    for shape in [(0, 3), (3, 0), (0,)]:
        values, scale = quantize_rows(torch.zeros(shape))
        assert values.shape == shape
        assert scale.tolist() == [0] * shape[0]


@pytest.mark.parametrize('shape', [(70_000, 2), (66_000,), (9, 2, 2)])
def test_long_matrices_are_quantized_in_parts(shape):
    x = torch.randn(shape).double()
    values, scale = quantize_rows(x)
    ones = [1] * (len(shape) - 1)
    error = values * scale.view(-1, *ones) - x
    assert (error.abs() <= scale.view(-1, *ones) * 0.501).all()


@pytest.mark.parametrize(
    ('error', 'input', 'message'),
    [
        (TypeError, torch.arange(3), 'floating-point tensor (got torch.int64'),
        (TypeError, [1.0], "tensor (got <class 'list'>)"),
        (ValueError, torch.tensor(1.0), 'one dimension (got shape [])'),
        (ValueError, rounded([[1.0], [torch.nan]]), 'float32 (row 1 is not)'),
        (ValueError, rounded([[torch.inf], [1.0]]), 'float32 (row 0 is not)'),
        (ValueError, torch.tensor([[1e300]]).double(), '(row 0 is not)'),
    ],
)
def test_bad_input_is_refused(error, input, message):
    with pytest.raises(error, match='quantize_rows: .*' + re.escape(message)):
        quantize_rows(input)
