"""The properties of a layer that its messages may depend on, read each call.

For few vertices these are a large part of a call: names that every module has,
and that hold hooks and the like, are left out at once.
"""

from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

from torch_gsample.torch_private import tree_leaves

_PLAIN = frozenset({int, float, bool, str})
_LISTS = frozenset({list, tuple})
_NESTED = frozenset({list, tuple, dict})


#: Attributes of every module that are no state, such as its hooks.
_IDLE = frozenset(
    name
    for name, value in vars(nn.Module()).items()
    if isinstance(value, (dict, set)) and name != '_parameters'
)


def state_of(modules: Iterable[nn.Module]) -> tuple:
    """Returns the non-tensor state of modules, and shapes of parameters.

    Args:
        modules (Iterable[torch.nn.Module]): A layer, and the modules in it,
            which may be replaced by others.
    """
    layer, *inner = modules
    out: list[Any] = [type(module) for module in inner]
    for module in (layer, *inner):
        for name, value in vars(module).items():
            if name in _IDLE:
                continue
            kind = type(value)
            if kind in _PLAIN:
                out.append((name, kind, value))
            elif kind in _LISTS and all(type(x) in _PLAIN for x in value):
                out.append((name, kind, tuple(value)))
            elif name == '_parameters':
                out += [
                    (k, None if p is None else (p.shape, p.dtype))
                    for k, p in value.items()
                ]
            elif callable(value) and not isinstance(value, type):
                out.append((name, value))
    return tuple(out)


def tensors_in(values: Iterable[Any]) -> list[Tensor]:
    """Returns the tensors in arguments, which may be nested."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif type(value) in _NESTED:
            leaves = tree_leaves(value)
            found += [x for x in leaves if isinstance(x, Tensor)]
    return found
