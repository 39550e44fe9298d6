import pytest

import tests.vertex.first_layers  # noqa: F401  (before any other)
from torch_gsample.vertex.kernels.fused_unit import Fused


@pytest.fixture
def uncompiled(monkeypatch):
    """Units that are not compiled yet are computed by torch.

    What they compute is decided before they are compiled: few tests of
    derivatives need a kernel of each unit.
    """
    monkeypatch.setattr(
        Fused, '_loaded', lambda self, *key: self._kernels.get(key)
    )
