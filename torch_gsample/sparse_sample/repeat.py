"""Loops with a data-dependent number of steps."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling as is_compiling

_is_unrolled = False


@contextlib.contextmanager
def unrolled() -> Iterator[None]:
    """Makes captures unroll loops to their maximum number of steps.

    Steps after the end of a loop change nothing. Threads must not capture at
    the same time.
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
    """Returns the state after steps that are repeated while a condition holds.

    A compiled program tests the values of its own run, as eager code does.

    Args:
        goes_on (Callable): Takes the state, returns a bool scalar.
        step (Callable): Takes the state, returns the next one with the same
            shapes, without any of its input tensors.
        state (Tuple[torch.Tensor, ...]): The initial state.
        most (int): The condition must be false after this many steps.
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
