"""Errors that name the user's operation."""

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor

from torch_gsample.ops._check import is_known

#: A dimension, or both.
Dim: TypeAlias = int | None


def call_as(
    name: str,
    function: Callable[..., Any],
    /,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Calls a function, and renames the operation in its errors.

    Args:
        name (str): The user's operation.
        function (callable): The function, with errors ``'its_name: ...'``.
        *args: Arguments of ``function``.
        **kwargs: Arguments of ``function``.
    """
    try:
        return function(*args, **kwargs)
    except (IndexError, TypeError, ValueError) as error:
        message = str(error).partition(': ')[2]
        raise type(error)(f'{name}: {message}') from None


def check_device(name: str, device: torch.device, *operands: Tensor) -> None:
    """Checks that operands are on the device of the matrix.

    Args:
        name (str): The operation, for errors.
        device (torch.device): The device of the matrix.
        *operands (torch.Tensor): The operands.

    Raises:
        ValueError: If an operand is on another device.
    """
    for operand in operands:
        if operand.device != device:
            raise ValueError(
                f'{name}: the matrix is on {device} and the operand on '
                f'{operand.device}: move one of them'
            )


def check_dim(name: str, dim: int) -> int:
    """Returns a dimension as 0 or 1.

    Args:
        name (str): The operation, for errors.
        dim (int): The reduced dimension.

    Raises:
        IndexError: If a matrix has no such dimension.
    """
    if dim not in (0, 1, -1, -2):
        raise IndexError(
            f"{name}: 'dim' must be 0 (over rows) or 1 (over columns) (got "
            f'{dim})'
        )
    return dim % 2


def reduced_dim(name: str, dim: Dim, axis: Dim) -> Dim:
    """Returns the reduced dimension: 0, 1 or :obj:`None` for both.

    Args:
        name (str): The operation, for errors.
        dim (int, optional): The dimension.
        axis (int, optional): NumPy's name of ``dim``.

    Raises:
        IndexError: If a matrix has no such dimension.
        TypeError: If both are passed.
    """
    if dim is not None and axis is not None:
        raise TypeError(f"{name}: give 'dim' or its alias 'axis', not both")
    dim = axis if dim is None else dim
    return None if dim is None else check_dim(name, dim)


def check_tensors(name: str, **values: Any) -> None:
    """Checks that arguments are tensors, or not passed.

    Raises:
        TypeError: If one is anything else.
    """
    for key, value in values.items():
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"{name}: '{key}' must be a tensor (got "
                f'{type(value).__name__})'
            )


def check_value(name: str, value: Tensor, num_edges: int) -> None:
    """Checks that each edge has a value or a vector.

    Raises:
        ValueError: If the number of rows is wrong.
    """
    if value.dim() == 0 or is_known(value.shape[0] != num_edges):
        raise ValueError(
            f"{name}: 'value' must have {num_edges} rows, one for each edge "
            f'(got shape {list(value.shape)})'
        )
