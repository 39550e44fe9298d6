"""Errors name each call that cannot be exported, with its line."""

import numpy as np
import pytest
import torch

import torch_gsample as gsample
from tests.compiler.programs import graph

A = graph()


@torch.library.custom_op('tests::doubled', mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@doubled.register_fake
def _(x):
    return torch.empty_like(x)


def calls_own(A):
    x = A.values() + 1
    return doubled(x)


def loops(A):
    return torch.while_loop(
        lambda x: x.sum() < 9, lambda x: (x * 2,), (A.values() + 1,)
    )[0]


def sorts(A):
    x = A.values().numpy()
    return torch.from_numpy(np.sort(x))


@pytest.mark.parametrize(
    ('function', 'called', 'line'),
    [
        (calls_own, 'tests.doubled.default', 2),
        (loops, 'while_loop', 1),
        (sorts, 'wrapped_sort', 2),
    ],
)
def test_export_rejects_non_operators_with_their_line(
    function, called, line, tmp_path
):
    line += function.__code__.co_firstlineno
    text = (
        f"export: '{function.__name__}': a file may call operators .*"
        rf"\(got '{called}'\) at test_export_opaque.py:{line}$"
    )
    with pytest.raises(ValueError, match=text):
        gsample.export(function, A, path=tmp_path / 'p')
