"""Reads seeds of a user: node ids or a mask of all nodes."""

import warnings
from typing import Any

import torch
from torch import Tensor

from torch_gsample.ops import _check


def read_nodes(
    op: str, name: str, value: Any, num_nodes: int | None
) -> Tensor:
    """Returns seeds as a tensor after checks: ids or a mask.

    Args:
        op (str): The owner of the argument, for errors.
        name (str): The argument.
        value (torch.Tensor or List[int]): int32 or int64 ids, or a mask; any
            other input of :func:`torch.tensor` is converted.
        num_nodes (int, optional): Number of nodes, if it is known.

    Raises:
        IndexError: If an id is outside ``[0, num_nodes)``.
        TypeError: If they are neither integers nor a mask.
        ValueError: If they are not a vector, or the mask has another length.

    Example:
        >>> read_nodes('Loader', 'input_nodes', range(1, 3), 3)
        tensor([1, 2])
    """
    if not isinstance(value, Tensor):
        value = _as_tensor(op, name, value)
    if value.dtype == torch.bool:
        size = value.numel() if num_nodes is None else num_nodes
        if value.shape != (size,):
            raise ValueError(
                f"{op}: a mask '{name}' must have {size} elements (got shape "
                f'{list(value.shape)})'
            )
        return value
    ids = _check.integer_vector(op, name, value.cpu())
    if num_nodes is not None:
        _check.in_range(op, name, ids, num_nodes)
        if ids.numel() == num_nodes > 2 and ids.max() == 1:
            warnings.warn(
                f"{op}: '{name}' has 0 or 1 for each of {num_nodes} nodes: "
                "if it is a mask, pass 'mask.bool()'",
                stacklevel=2,
            )
    return value


def _as_tensor(op: str, name: str, value: Any) -> Tensor:
    try:
        out = torch.tensor(value)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(
            f"{op}: '{name}' must be a tensor or a list of node ids (got "
            f'{value!r})'
        ) from None
    if out.numel() == 0 and out.dim() == 1:
        return out.long()
    whole = not (out.is_floating_point() or out.is_complex())
    return out.long() if whole and out.dtype != torch.bool else out
