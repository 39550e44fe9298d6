"""What all tests of examples share."""

import copy

import pytest

from torch_gsample.datasets import DebianPackages


@pytest.fixture(scope='module', autouse=True)
def _debian_is_built_once():
    """In this process; an example in a process of its own builds it again."""
    built, build = {}, DebianPackages._build

    def build_once(self, arrays):
        if self.homogeneous not in built:
            built[self.homogeneous] = build(self, arrays)
        return copy.copy(built[self.homogeneous])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DebianPackages, '_build', build_once)
        yield
