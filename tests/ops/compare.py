"""Comparison of operators with tests/reference.py, and of their outputs."""

import hashlib
import re
from pathlib import Path

import torch
from torch import Tensor

import torch_gsample.ops  # noqa: F401  (registers the operators)
from tests import reference
from torch_gsample.ops.sample_layers import FRONTIERS

_PLAIN = {int, float, bool, str, type(None)}


def lists(value):
    """Tensors as lists, inside of lists and tuples, too."""
    if isinstance(value, Tensor):
        return value.tolist()
    if isinstance(value, list | tuple):
        if _PLAIN.issuperset(map(type, value)):  # most are long
            return list(value)
        return [lists(item) for item in value]
    return value


#: Options of `sample_columns` that its operator takes as two lists.
OF_COLUMNS = 'start', 'root', 'edge_time', 'column_time'
OF_HOPS = 'relation', 'temporal_strategy', 'time_window'


def numbers(name, options):
    """Options of a Python wrapper as its operator takes them."""
    given = dict(options)
    if isinstance(given.get('frontier'), str):
        given['frontier'] = FRONTIERS.index(given['frontier'])
    if name != 'sample_columns':
        return given
    columns = [given.pop(name, None) for name in OF_COLUMNS]
    hop = [given.pop(name, None) for name in OF_HOPS]
    if any(value is not None for value in columns):
        columns = columns[: 2 if columns[2] is None else 4]
        none = torch.empty(0, dtype=torch.int64)
        given['columns'] = [none if c is None else c for c in columns]
    if any(value is not None for value in hop):
        relation, strategy, window = hop
        given['options'] = [0, relation or 0, int(strategy == 'last')]
        given['options'] += [] if window is None else [window]
    return given


def assert_equals_reference(name, *args, operator=None, **kwargs):
    """Calls an operator and its reference, and returns what both return.

    `operator` takes the place of `torch.ops.gsample.<name>`, if given: a
    Python wrapper, whose options have names.
    """
    given = numbers(name, kwargs)
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
    found = hashlib.sha256()
    _add_to(found, out)
    return found.hexdigest()


def _add_to(found, value):
    """Adds a nest to a hash; dtypes of one kind do not differ."""
    if isinstance(value, Tensor):
        kind = torch.float64 if value.is_floating_point() else torch.int64
        found.update(repr(value.shape).encode())
        found.update(value.detach().to(kind).contiguous().numpy())
    elif isinstance(value, list | tuple):
        found.update(f'[{len(value)}'.encode())
        for item in value:
            _add_to(found, item)
    else:
        found.update(repr(value).encode())


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
