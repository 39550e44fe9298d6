"""Removes all traces of each compiler test."""

import pytest
import torch

from torch_gsample.compiler import compiled


@pytest.fixture(autouse=True)
def _forget_compilations():
    yield
    torch._dynamo.reset()


@pytest.fixture
def compilations(monkeypatch):
    """Counts them."""
    count, real = [], compiled.backend

    def backend(gm, example_inputs, **kwargs):
        count.append(gm)
        return real(gm, example_inputs, **kwargs)

    monkeypatch.setattr(compiled, 'backend', backend)
    return count
