"""Loops whose number of steps depends on values."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling as is_compiling


def repeat_while(
    goes_on: Callable[..., Tensor],
    step: Callable[..., tuple[Tensor, ...]],
    state: tuple[Tensor, ...],
) -> Any:
    """Returns the state after the steps that are taken while a mask holds.

    A compiled program tests the values of its own run, as eager code does.

    Args:
        goes_on (Callable): Takes the state, returns a bool without dimensions.
        step (Callable): Takes the state, returns the next one, of the same
            shapes.
        state (Tuple[torch.Tensor, ...]): The first one.
    """
    if is_compiling():
        return torch.while_loop(goes_on, step, state)
    while bool(goes_on(*state)):
        state = step(*state)
    return state
