"""Captures the messages of PyG's layers as vertex programs.

A call of ``propagate`` comes in; the same call as a fused kernel, with what
torch computes before and after it, comes out.
"""

from torch_gsample.vertex.capture.propagate import (
    Capture,
    capture_of,
    is_left_to_pyg,
    left_to_pyg,
)

__all__ = ['Capture', 'capture_of', 'is_left_to_pyg', 'left_to_pyg']
