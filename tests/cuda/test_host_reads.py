"""Pinned memory is released only after the kernels that read it.

The emulator runs kernels at once; these tests choose which of the events that
operators recorded have passed.
"""

import gc
import weakref
from functools import partial

import pytest
import torch

from tests.cuda.test_uva import CALLS, graph_parts, on_host
from torch_gsample import placement

PADDED = 'sample_neighbors, padded'
#: Nothing is launched after they waited for their report.
WAIT = (
    'random_walk',
    'node2vec_walk',
    'metapath_walk',
    'forest_fire',
    'negative_sample',
    'sample_neighbors',
)


@pytest.fixture
def pinned(emulated, driver):
    """Makes graphs in pinned memory, one after another."""
    emulated.configure()
    yield partial(pinned_parts, emulated)
    emulated.finish(-1)
    another_call(emulated)
    assert not driver.registered  # nothing was kept for ever


def pinned_parts(emulated, weighted=True):
    indptr, indices, seeds, weight = on_host(emulated, graph_parts(weighted))
    indptr, indices = placement.pin(indptr), placement.pin(indices)
    return (
        indptr,
        indices,
        seeds,
        weight if weight is None else placement.pin(weight),
    )


def call(emulated, name, parts):
    args, options = CALLS[name](*parts)
    return emulated.operator(name.partition(',')[0])(*args, **options)


def another_call(emulated):
    emulated.operator('gather_rows')(torch.ones(2, 1), torch.tensor([1]))


@pytest.mark.parametrize('weighted', [False, True])
def test_a_padded_sample_keeps_its_graph(emulated, driver, pinned, weighted):
    with emulated.running():
        parts = pinned(weighted)
        call(emulated, PADDED, parts)
        held = set(driver.registered)
        assert len(held) == 2 + weighted
        del parts
        another_call(emulated)
        assert set(driver.registered) == held
        emulated.finish()  # the event has passed
        another_call(emulated)
        assert not driver.registered


def test_each_graph_is_released_after_its_own_kernel(emulated, driver, pinned):
    with emulated.running():
        first, second = pinned(False), pinned(False)
        for parts in (first, second):
            call(emulated, PADDED, parts)
        later = {t.data_ptr() for t in second[:2]}
        del parts, first, second
        another_call(emulated)
        assert len(driver.registered) == 4
        emulated.finish(1)  # the last still runs
        another_call(emulated)
        assert set(driver.registered) == later


def test_graphs_that_live_are_not_released(emulated, driver, pinned):
    parts = pinned()
    call(emulated, PADDED, parts)
    another_call(emulated)
    assert {t.data_ptr() for t in parts[:2]} <= set(driver.registered)


@pytest.mark.parametrize('name', CALLS)
def test_a_graph_is_kept_if_a_kernel_may_run(emulated, driver, pinned, name):
    with emulated.running():
        parts = pinned(False)
        call(emulated, name, parts)
        del parts
        gc.collect()
        assert bool(driver.registered) == (name not in WAIT)
        emulated.finish()
        another_call(emulated)
        assert not driver.registered


def test_a_failed_call_keeps_its_graph(emulated, driver, pinned):
    with emulated.running():
        parts = pinned(False)
        held = set(driver.registered)
        try:
            for allocations in range(20):
                emulated.allow_allocations(allocations)
                with pytest.raises(RuntimeError, match='out of memory') as no:
                    call(emulated, PADDED, parts)
                if "'counts'" in str(no.value):
                    break  # after the launch
        finally:
            emulated.allow_allocations(-1)
        del parts, no
        gc.collect()
        assert set(driver.registered) == held
        another_call(emulated)
        assert set(driver.registered) == held
        emulated.finish()
        another_call(emulated)
        assert not driver.registered


def test_tensors_of_the_gpu_are_not_kept(emulated, pinned):
    with emulated.running():
        parts = graph_parts(False)
        call(emulated, PADDED, parts)
        indices = weakref.ref(parts[1])
        del parts
        assert indices() is None


def test_a_cuda_graph_keeps_nothing(emulated, driver, pinned):
    with emulated.running(capturing=True):
        parts = pinned(False)
        call(emulated, PADDED, parts)
        del parts
        assert not driver.registered


def test_nothing_is_released_while_a_cuda_graph_is_captured(
    emulated, driver, pinned
):
    with emulated.running():
        parts = pinned(False)
        call(emulated, PADDED, parts)
        del parts
    emulated.finish(capturing=True)  # the kernel ended before
    another_call(emulated)
    assert len(driver.registered) == 2
    emulated.finish(-1)
    another_call(emulated)
    assert not driver.registered
