"""Gradient formulas of operators, and errors for missing derivatives.

All of the package's formulas are registered here. torch.library supports
reverse mode only: without the check, forward-mode gradients would silently be
zero.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_gsample.torch_private import (
    is_reached_by_transform,
    is_transformed,
    tree_leaves,
)

#: The operators with a formula.
formulas: set[str] = set()


def refuse_transforms(name: str, values: Any) -> None:
    """Raises an error if forward mode or ``torch.func`` reaches a value.

    Args:
        name (str): The operation, which only has reverse-mode gradients.
        values (Any): Its arguments, with any nesting.

    Raises:
        NotImplementedError: If a tensor has a tangent, is batched, or requires
            gradients of a transform.
    """
    for x in tree_leaves(values):
        if isinstance(x, Tensor) and is_reached_by_transform(x):
            raise NotImplementedError(
                f'{name}: forward-mode gradients and transforms of torch.func '
                f'(jvp, vjp, jacrev, jacfwd, hessian, vmap) are not '
                f'supported; use torch.autograd.grad'
            )


class _Formulas(torch.library.Library):
    """Adds a check to formulas of torch.library."""

    def impl(self, op_name: Any, fn: Any, *args: Any, **kwargs: Any) -> Any:
        def checked(keyset: Any, *inputs: Any, **options: Any) -> Any:
            if is_transformed():
                refuse_transforms(op_name, inputs)
            return fn(keyset, *inputs, **options)

        return super().impl(op_name, checked, *args, **kwargs)


_library = _Formulas('gsample', 'FRAGMENT')


def register_gradient(
    operator: str, backward: Callable[..., Any], save: Callable[..., None]
) -> None:
    """Registers the gradient formula of an operator.

    Args:
        operator (str): Its name in ``torch.ops.gsample``.
        backward (Callable): As in :func:`torch.library.register_autograd`.
        save (Callable): Its ``setup_context``.
    """
    torch.library.register_autograd(
        f'gsample::{operator}', backward, setup_context=save, lib=_library
    )
    formulas.add(operator)
