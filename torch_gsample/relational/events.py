"""Checks of event logs."""

import torch
from torch import Tensor


def checked_events(
    name: str, src: Tensor, dst: Tensor, time: Tensor, num_nodes: int
) -> None:
    """Checks a log of events.

    Args:
        name (str): The caller, for errors.
        src (torch.Tensor): Integers ``[num_events]``.
        dst (torch.Tensor): Likewise.
        time (torch.Tensor): Likewise.
        num_nodes (int): Number of nodes.

    Raises:
        IndexError: If a node does not exist.
        TypeError: If they are not integers.
        ValueError: If their lengths differ.
    """
    for what, value in (('src', src), ('dst', dst), ('time', time)):
        if value.is_floating_point() or value.dtype == torch.bool:
            raise TypeError(
                f"{name}: '{what}' must hold integers (got {value.dtype})"
            )
        if value.dim() != 1 or value.shape != src.shape:
            raise ValueError(
                f"{name}: '{what}' must have the shape [{len(src)}] of 'src' "
                f'(got {list(value.shape)})'
            )
        if what == 'time' or len(value) == 0:
            continue
        low, high = map(int, value.aminmax())
        if low < 0 or high >= num_nodes:
            raise IndexError(
                f"{name}: '{what}' must be in [0, {num_nodes}) (got {low} to "
                f'{high})'
            )
