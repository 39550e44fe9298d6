"""PyG's trimming of batches, which blocks replace."""

import importlib
from collections.abc import Callable
from typing import Any

from torch_gsample.fusion.calls import current


class _Trim:
    """A trimming function of PyG, disabled in calls of fused models."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    def __call__(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        if current.call is not None:
            return value
        return self.function(value, *args, **kwargs)


def leave_trimming_to_blocks() -> None:
    """Makes PyG's ``trim_to_layer`` return its input in fused calls.

    Blocks are smaller, and exact. Other threads and other calls still trim.
    """
    module = importlib.import_module('torch_geometric.utils._trim_to_layer')
    for name in ('trim_feat', 'trim_adj'):
        function = getattr(module, name)
        if not isinstance(function, _Trim):
            setattr(module, name, _Trim(function))
