"""What workers cannot draw for a sampler that trains is an error."""

import copy

import pytest
import torch

from tests.loader.batches import end_workers
from tests.loader.test_replay import (
    MODULES,
    loader_of,
    sampler_of,
    scored,
)

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(autouse=True)
def _no_worker_is_left():
    yield
    end_workers()


def test_workers_that_make_whole_batches_are_refused():
    sampler = sampler_of(MODULES['AsGCN'])
    match = "NeighborLoader: 'filter_per_worker' must not be True .*AsGCN"
    with pytest.raises(ValueError, match=match):
        loader_of(sampler, filter_per_worker=True)
    loader = loader_of(sampler, filter_per_worker=True, num_workers=0)
    assert next(iter(loader)).edge_weight.requires_grad


@pytest.mark.parametrize(
    ('w', 'text'),
    [
        (torch.ones(60, requires_grad=True) * 2, r'a computed tensor of .*60'),
        (torch.ones(60, requires_grad=True, device='meta'), 'on meta'),
    ],
)
def test_parameters_that_workers_cannot_have_are_refused(w, text):
    sampler = sampler_of(scored, w=w)
    match = f"NeighborLoader: with 'num_workers', parameters of .*{text}"
    with pytest.raises(ValueError, match=match):
        loader_of(sampler)
    loader_of(sampler, num_workers=0)


HIDDEN = {'scale': 1.0}


def torchs(A, seeds, fanouts, x, w):
    return [A[:, seeds].individual_sample(3).mul(w * torch.rand(1), dim=1)]


def hidden(A, seeds, fanouts, x, w):
    S = A[:, seeds].individual_sample(3)
    return [S.mul(w * HIDDEN['scale'], dim=1)]


def test_a_program_that_depends_on_something_else_is_an_error(monkeypatch):
    w = torch.ones(60, requires_grad=True)
    match = r'NeighborLoader: .* must draw batch \(0, 0\) again .*another sam'
    for program in (torchs, hidden):
        monkeypatch.setitem(HIDDEN, 'scale', 1.0)
        batch = next(iter(loader_of(sampler_of(program, w=w))))
        monkeypatch.setitem(HIDDEN, 'scale', 2.0)
        with pytest.raises(RuntimeError, match=match):
            batch.edge_weight.sum().backward()
        end_workers()


def test_parameters_that_are_replaced_are_an_error():
    module = copy.deepcopy(MODULES['AsGCN'])
    loader = loader_of(sampler_of(module), prefetch_factor=1, num_workers=1)
    iterator = iter(loader)
    batch = next(iterator)
    module.weight = torch.nn.Parameter(torch.ones(4))
    with pytest.raises(RuntimeError, match='parameters have been replaced'):
        batch.edge_weight.sum().backward()
    # What comes later is drawn by the new one.
    next(iterator)
    next(iterator).edge_weight.sum().backward()
    assert module.weight.grad is not None
    module.weight = torch.nn.Parameter(torch.ones(5))
    with pytest.raises(RuntimeError, match=r'got sizes \[16\] for \[20\]'):
        list(iterator)
