"""Threads share what is made once of programs and graphs."""

import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakValueDictionary

import pytest
import torch

from torch_gsample import vertex
from torch_gsample.vertex import program
from torch_gsample.vertex.kernels import fused_unit, graph_cache
from torch_gsample.vertex.kernels.graph_cache import bounds_of, flipped


def _summed():
    @vertex.vertex_program
    def summed(v):
        return sum([e.src.x for e in v.inedges])

    return summed


class _Slow(WeakValueDictionary):
    """As in the standard library, with time between its two steps."""

    def setdefault(self, key, default=None):
        found = self.get(key)
        time.sleep(0.01)
        if found is None:
            self[key] = found = default
        return found


def test_an_operator_that_a_thread_holds_keeps_its_number(monkeypatch):
    monkeypatch.setattr(fused_unit, 'fused_units', _Slow())
    unit = _summed().plan(x=torch.ones(2, 3))._fused[0].unit
    fused_unit.fused_units.clear()
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: fused_unit.fused(unit), range(4)))
    first = made[0]
    del made
    gc.collect()
    assert fused_unit.fused_units[first.number] is first


def test_threads_that_trace_a_program_at_once_get_one_plan(monkeypatch):
    both, own = threading.Barrier(2), program.make_plan
    pauses = [0.2, 0.0]

    def made(*args):
        both.wait()
        time.sleep(pauses.pop())
        return own(*args)

    monkeypatch.setattr(program, 'make_plan', made)
    summed, x = _summed(), torch.ones(2, 3)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: summed.plan(x=x), range(2))
    assert first is second


class _Emptied(dict):
    """A cache that another thread empties after each change."""

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        self.clear()


@pytest.mark.parametrize('read', [flipped, bounds_of])
def test_a_graph_is_read_while_another_thread_forgets(read, monkeypatch):
    monkeypatch.setattr(graph_cache, 'known_of', lambda tensors: _Emptied())
    assert read(torch.tensor([[0, 1], [1, 2]])) is not None
