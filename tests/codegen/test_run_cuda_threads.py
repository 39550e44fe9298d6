"""Threads and errors do not leave a unit without its CUDA kernel."""

import pytest
import torch

from torch_gsample.codegen import run_cuda


class _Unit:
    """Stands for a unit."""


class _Kernel:
    source = ''


def test_a_compilation_that_is_interrupted_is_repeated(monkeypatch):
    unit, device, loads = _Unit(), torch.device('cuda', 0), []

    def loaded(source, device):
        loads.append(device)
        if len(loads) == 1:
            raise KeyboardInterrupt
        return 7

    monkeypatch.setattr(run_cuda, 'cuda_kernel', lambda unit: _Kernel())
    monkeypatch.setattr(run_cuda, '_loaded', loaded)
    with pytest.raises(KeyboardInterrupt):
        run_cuda._function(unit, device)
    found = run_cuda._function(unit, device)
    assert found is not None
    assert found[1] == 7
