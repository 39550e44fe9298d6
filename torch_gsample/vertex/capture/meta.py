"""Results of operators on shapes, computed once for equal arguments."""

from collections.abc import Callable, Mapping
from typing import Any

import torch

from torch_gsample.torch_private import tree_map
from torch_gsample.vertex.capture.nodes import Node

#: The most cached results; then all are dropped.
_MOST = 4096
_cached: dict[Any, torch.Tensor] = {}


def meta(
    func: Callable[..., Any], args: tuple, kwargs: Mapping[str, Any]
) -> Any:
    """Runs an operator on shapes.

    Layers repeat few operators, which torch computes in Python: a tenth of the
    time of a capture.

    Args:
        func (OpOverload): The operator.
        args (Tuple): Its arguments, with nodes in place of tensors.
        kwargs (Dict[str, Any]): Named arguments.
    """
    try:
        # Numbers without a dtype have the default one.
        key = func, _key(args), _key(kwargs), torch.get_default_dtype()
        found = _cached.get(key)
    except TypeError:  # symbols have no hash
        return _run(func, args, kwargs)
    if found is not None:
        return found
    out = _run(func, args, kwargs)
    if type(out) is torch.Tensor:  # not of a mode, which would end first
        if len(_cached) >= _MOST:
            _cached.clear()
        _cached[key] = out
    return out


def _key(value: Any) -> Any:
    """Returns what an argument contributes to shapes and dtypes.

    Raises:
        TypeError: If it is a tensor: the cache would own it.
    """
    if isinstance(value, torch.Tensor):
        raise TypeError('a tensor')
    if isinstance(value, Node):
        return Node, tuple(value.shape), value.dtype
    if isinstance(value, (tuple, list)):
        return type(value), *map(_key, value)
    if isinstance(value, Mapping):
        return dict, *((name, _key(item)) for name, item in value.items())
    return type(value), value  # 1, 1.0 and True are equal


def _run(
    func: Callable[..., Any], args: tuple, kwargs: Mapping[str, Any]
) -> Any:
    def shaped(x: Any) -> Any:
        if isinstance(x, Node):
            return torch.empty(x.shape, dtype=x.dtype, device='meta')
        return x

    args, named = tree_map(shaped, (args, dict(kwargs)))
    if 'device' in named:
        named['device'] = 'meta'
    return func(*args, **named)
