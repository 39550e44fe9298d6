"""Values that are kept for the tensors that they come from."""

import gc
import weakref

import pytest
import torch

import torch_gsample
from torch_gsample.compiler.cache import InvariantCache


class Doubled:
    def __init__(self):
        self.calls = 0
        self.cache = InvariantCache(self.double)

    def double(self, *tensors):
        self.calls += 1
        return tuple(tensor * 2 for tensor in tensors)


def test_values_are_computed_once_for_tensors_and_versions():
    doubled, x, y = Doubled(), torch.ones(3), torch.ones(3)
    first = doubled.cache(x)
    assert doubled.cache(x) is first
    doubled.cache(y)  # equal, and another one
    assert doubled.calls == 2
    x += 1
    assert doubled.cache(x)[0].tolist() == [4, 4, 4]
    assert doubled.calls == 3


def write_data(x):
    x.data.mul_(3)


def write_array(x):
    array = x.numpy()
    array *= 3


@pytest.mark.parametrize('write', [write_data, write_array])
@pytest.mark.parametrize(
    'x',
    [
        torch.ones(3),
        torch.ones(5000, dtype=torch.complex128),
        torch.ones(3000, 7)[:, 2],
        torch.ones(7, 3000, dtype=torch.int16).t()[1::2],
        torch.full((9, 9), torch.nan)[:0],
    ],
    ids=['small', 'large', 'column', 'transposed', 'empty'],
)
def test_values_follow_writes_without_a_version(x, write):
    doubled = Doubled()
    for _ in range(3):
        before = x._version
        write(x)
        assert x._version == before
        assert torch.equal(doubled.cache(x)[0], x * 2)
        assert doubled.cache(x) is doubled.cache(x)


def test_values_follow_writes_to_half_of_the_elements():
    x, doubled = torch.zeros(1 << 20), Doubled()
    array = x.numpy()
    for part in (slice(0, None, 2), slice(1, None, 2), slice(1 << 19)):
        doubled.cache(x)
        array[part] += 1
        assert torch.equal(doubled.cache(x)[0], x * 2)


def test_values_of_nan_inputs_are_cached():
    doubled, x = Doubled(), torch.full((3,), torch.nan)
    assert doubled.cache(x) is doubled.cache(x)


def test_forget_drops_values_of_unnoticed_writes():
    doubled, x = Doubled(), torch.zeros(1 << 20)
    doubled.cache(x)
    x.numpy()[12345] = 1
    torch_gsample.forget()
    assert doubled.cache(x)[0].sum() == 2
    doubled.cache.forget()
    doubled.cache(x)
    assert doubled.calls == 3


def test_values_go_with_their_tensors():
    doubled, x = Doubled(), torch.ones(3)
    value = weakref.ref(doubled.cache(x)[0])
    assert value() is not None
    del x
    gc.collect()
    assert value() is None


def test_few_graphs_are_kept():
    doubled, tensors = Doubled(), [torch.ones(2) for _ in range(20)]
    for tensor in tensors:
        doubled.cache(tensor)
    doubled.cache(tensors[-1])
    assert doubled.calls == 20
    doubled.cache(tensors[0])
    assert doubled.calls == 21


def test_values_of_inference_serve_training():
    doubled, x = Doubled(), torch.ones(3)
    with torch.inference_mode():
        [value] = doubled.cache(x)
    assert not value.is_inference()
    with torch.inference_mode():
        inside = torch.ones(3)  # has no version: nothing is kept
        doubled.cache(inside)
        doubled.cache(inside)
    assert doubled.calls == 3


def test_cached_values_of_pinned_tensors_are_pinned(monkeypatch):
    pinned = []

    def pin(tensor):
        pinned.append(tensor)
        return tensor

    monkeypatch.setattr('torch_gsample.placement.pin', pin)
    x = torch.ones(3)
    InvariantCache(lambda x: (x + 1, 7))(x)
    assert not pinned
    monkeypatch.setattr('torch.cuda.is_initialized', lambda: True)
    monkeypatch.setattr('torch.Tensor.is_pinned', lambda _: True)
    kept = InvariantCache(lambda x: (x + 1, 7))(x)
    assert kept[0] is pinned[0]
    assert kept[1] == 7
