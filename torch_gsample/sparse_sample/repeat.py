"""Loops whose number of steps depends on values."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling as is_compiling

_is_unrolled = False


@contextlib.contextmanager
def unrolled() -> Iterator[None]:
    """Captures take all steps of a loop, of which the last change nothing.

    Threads must not capture at the same time.
    """
    global _is_unrolled
    before, _is_unrolled = _is_unrolled, True
    try:
        yield
    finally:
        _is_unrolled = before


def repeat_while(
    goes_on: Callable[..., Tensor],
    step: Callable[..., tuple[Tensor, ...]],
    state: tuple[Tensor, ...],
    most: int,
) -> Any:
    """Returns the state after the steps that are taken while a mask holds.

    A compiled program tests the values of its own run, as eager code does.

    Args:
        goes_on (Callable): Takes the state, returns a bool without dimensions.
        step (Callable): Takes the state, returns the next one, of the same
            shapes, and no tensor that it takes.
        state (Tuple[torch.Tensor, ...]): The first one.
        most (int): It does not go on after this many steps.
    """
    if not is_compiling():
        while bool(goes_on(*state)):
            state = step(*state)
        return state
    if not _is_unrolled:
        return torch.while_loop(goes_on, step, state)
    for _ in range(most):
        holds = goes_on(*state)
        both = zip(step(*state), state, strict=True)
        state = tuple([torch.where(holds, new, old) for new, old in both])
    return state
