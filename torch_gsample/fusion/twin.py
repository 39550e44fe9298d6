"""A twin of a model: the same modules with other parameters."""

import functools
import types
from typing import Any

from torch import Tensor, nn
from torch_geometric.nn.conv import MessagePassing

from torch_gsample.vertex.capture.propagate import share_capture


def twin_of(model: nn.Module, parameters: dict[Tensor, Tensor]) -> Any:
    """Returns a model that computes the same, in evaluation mode.

    It has modules of its own. So other threads do not see its parameters and
    its mode, and what modules remember of a call (a cache, a last output) is
    dropped with it. Buffers and all objects that are not modules are shared.

    Args:
        model (torch.nn.Module): The model.
        parameters (Dict[Tensor, Tensor]): Replacements of parameters.

    Returns:
        torch.nn.Module: The twin.
    """
    twins: dict[nn.Module, Any] = {}
    for module in model.modules():
        twins[module] = object.__new__(type(module))
    for module, twin in twins.items():
        state = {k: _mapped(v, twins) for k, v in vars(module).items()}
        twin.__dict__.update(state)
        twin._parameters = {
            name: value if value is None else parameters.get(value, value)
            for name, value in module._parameters.items()
        }
        twin._buffers = dict(module._buffers)
        twin.training = False
        if isinstance(module, MessagePassing):
            share_capture(module, twin)
    return twins[model]


def _mapped(value: Any, twins: dict[nn.Module, Any]) -> Any:
    """Returns a value with modules replaced by their twins.

    Searches lists, tuples, dictionaries, methods, partial functions and
    closures.
    """
    kind = type(value)
    if isinstance(value, nn.Module):
        return twins.get(value, value)
    if kind in (list, tuple):
        return kind(_mapped(x, twins) for x in value)
    if kind is dict:
        return {key: _mapped(x, twins) for key, x in value.items()}
    if kind is types.MethodType:
        return types.MethodType(value.__func__, _mapped(value.__self__, twins))
    if kind is functools.partial:
        function, args, kwargs = _mapped(
            (value.func, value.args, value.keywords), twins
        )
        return functools.partial(function, *args, **kwargs)
    if kind is types.FunctionType and value.__closure__:
        return _enclosing_twins(value, twins)
    return value


def _enclosing_twins(function: Any, twins: dict[nn.Module, Any]) -> Any:
    cells = []
    for cell in function.__closure__:
        try:
            found = twins.get(cell.cell_contents)
        except (ValueError, TypeError):  # an empty cell, or no hash
            found = None
        cells.append(cell if found is None else types.CellType(found))
    out = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        tuple(cells),
    )
    out.__kwdefaults__ = function.__kwdefaults__
    return out
