"""Gradient formulas of operators, which refuse derivatives they do not have.

All of the package's formulas are registered here. Those of torch.library serve
reverse mode alone: forward-mode gradients would be zero without a word.
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

#: The operators that have a formula.
formulas: set[str] = set()


def refuse_transforms(name: str, values: Any) -> None:
    """Raises if forward mode or ``torch.func`` reaches a value.

    Args:
        name (str): What has gradients in reverse mode only.
        values (Any): Its arguments, nested in any way.

    Raises:
        NotImplementedError: If one has a tangent, is batched, or requires
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
    """Registers formulas of torch.library behind a check."""

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
        backward (Callable): As of :func:`torch.library.register_autograd`.
        save (Callable): Its ``setup_context``.
    """
    torch.library.register_autograd(
        f'gsample::{operator}', backward, setup_context=save, lib=_library
    )
    formulas.add(operator)
