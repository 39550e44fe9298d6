"""A pytest plugin that runs PyG's own tests of layers on fused ones.

``python -m pytest -p tests.fusion.pyg_suite PYG/test/nn``, where ``PYG`` is a
checkout of the installed release: each layer or model that a test calls or
traces is fused before. ``docs/fused_layers.md`` lists what fails.
"""

import functools
from collections import Counter

import pytest
import torch
from torch_geometric.nn.conv import MessagePassing

from torch_gsample import fuse, unfuse
from torch_gsample.fusion.model import why_not
from torch_gsample.fusion.modules import FusedLayer
from torch_gsample.vertex.capture.propagate import capture_of

#: How many calls were of fused layers, by the class of the layer.
_fused = Counter()
#: Whether a module is being called: its layers are fused with it, or not.
_depth = 0


def _fuse(module):
    """Fuses a model or a layer, unless it is fused or cannot be."""
    modules = list(module.modules())
    layers = [m for m in modules if isinstance(m, MessagePassing)]
    if all(isinstance(m, FusedLayer) for m in layers):
        return
    if not any(map(why_not, modules)):
        fuse(module, min_nodes=0, verbose=False)


def _is_fused(layer):
    """Whether it is ours, or its messages were captured."""
    is_ours = layer.base.__module__.startswith('torch_gsample')
    return is_ours or capture_of(layer).is_fused


def _called(call):
    @functools.wraps(call)
    def run(self, *args, **kwargs):
        global _depth
        if _depth == 0:
            _fuse(self)
        _depth += 1
        try:
            return call(self, *args, **kwargs)
        finally:
            _depth -= 1
            if isinstance(self, FusedLayer):
                _fused[type(self).__name__] += _is_fused(self)

    return run


def _scripted(script):
    """Fused modules are not scripted: their class is changed in place."""

    @functools.wraps(script)
    def run(obj, *args, **kwargs):
        if isinstance(obj, torch.nn.Module):
            unfuse(obj)
        return script(obj, *args, **kwargs)

    return run


def _traced(trace):
    @functools.wraps(trace)
    def run(obj, *args, **kwargs):
        _fuse(obj)
        return trace(obj, *args, **kwargs)

    return run


def pytest_configure():
    torch.nn.Module.__call__ = _called(torch.nn.Module.__call__)
    torch.jit.script = _scripted(torch.jit.script)
    torch.jit.trace = _traced(torch.jit.trace)


@pytest.fixture(autouse=True)
def same_numbers():
    """The same random features in every run."""
    torch.manual_seed(12)


def pytest_terminal_summary(terminalreporter):
    counts = ', '.join(f'{k} {v}' for k, v in sorted(_fused.items()))
    terminalreporter.write_line(f'fused calls: {counts}')
