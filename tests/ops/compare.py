"""Comparison of operators with tests/reference.py, and of their outputs."""

import hashlib
import re
from pathlib import Path

import torch
from torch import Tensor

import torch_gsample.ops  # noqa: F401  (registers the operators)
from tests import reference
from torch_gsample.ops._check import STRATEGIES
from torch_gsample.ops.sample_hops import FRONTIERS


def lists(value):
    """Tensors as lists, inside of lists and tuples, too."""
    if isinstance(value, Tensor):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [lists(item) for item in value]
    return value


def numbers(options):
    """Options of a Python wrapper as its operator takes them."""
    choices = {'frontier': FRONTIERS, 'temporal_strategy': STRATEGIES}
    return {
        key: choices[key].index(value) if isinstance(value, str) else value
        for key, value in options.items()
    }


def assert_equals_reference(name, *args, operator=None, **kwargs):
    """Calls an operator and its reference, and returns what both return.

    `operator` takes the place of `torch.ops.gsample.<name>`, if given: a
    Python wrapper, whose options have names.
    """
    given = numbers(kwargs)
    if operator is None:
        out = getattr(torch.ops.gsample, name)(*args, **given)
    else:
        out = operator(*args, **kwargs)
    want = getattr(reference, name)(
        *map(lists, args), **{key: lists(given[key]) for key in given}
    )
    assert lists(out) == lists(want)
    return out


def digest(out):
    """A hash of all numbers and shapes of a nest of tensors."""
    text = repr(lists(out)).encode()
    return hashlib.sha256(text).hexdigest()


def assert_equal_tensors(out, other):
    """Asserts that two nests of tensors agree in dtype, too."""
    assert len(out) == len(other)
    for a, b in zip(out, other, strict=True):
        if isinstance(a, Tensor):
            assert a.dtype == b.dtype
            assert torch.equal(a, b)
        else:
            assert_equal_tensors(a, b)


def operator_names():
    """The operators whose schemas csrc/bind/library.cpp lists."""
    path = Path(__file__).resolve().parents[2] / 'csrc/bind/library.cpp'
    text = re.sub(r'"\s*"', '', path.read_text())
    return re.findall(r'm\.def\(\s*"(\w+)\(', text)
