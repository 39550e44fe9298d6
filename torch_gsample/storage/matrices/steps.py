"""Deferred arithmetic with all values of a graph on disk.

``(A / d)[:, s]`` is ``A[:, s] / d[s]``: element-wise operations are recorded,
and applied to the edges that are read.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from torch_gsample.sparse_sample import SparseSample


@dataclass(frozen=True)
class Step:
    """An operation on the value of each edge.

    Args:
        name (str): A method of :class:`~torch_gsample.SparseSample`.
        operand (float or torch.Tensor, optional): A number, or a vector of an
            item for each column (``dim=0``) or row (``dim=1``).
        dim (int, optional): The dimension of the vector.
    """

    name: str
    operand: Any = None
    dim: int | None = None


@dataclass(frozen=True)
class Steps:
    """The values of a graph on disk.

    Args:
        is_weighted (bool): Whether the initial values are the stored weights
            instead of ones.
        steps (Tuple[Step, ...], optional): Operations on each value.
    """

    is_weighted: bool
    steps: tuple[Step, ...] = ()

    def then(self, step: Step) -> 'Steps':
        """Returns the steps with another one."""
        return Steps(self.is_weighted, (*self.steps, step))

    def turned(self) -> 'Steps':
        """Returns the steps of the transpose."""
        return self._mapped(lambda s: Step(s.name, s.operand, 1 - s.dim))

    def of_rows(self, rows: Tensor) -> 'Steps':
        """Returns the steps of some rows."""
        return self._mapped(
            lambda s: s if s.dim == 0 else Step(s.name, s.operand[rows], s.dim)
        )

    def _mapped(self, function: Callable[[Any], Step]) -> 'Steps':
        steps = [s if s.dim is None else function(s) for s in self.steps]
        return Steps(self.is_weighted, tuple(steps))

    def name(self) -> str:
        """Returns a unique name of these steps."""
        digest = hashlib.sha256(f'{self.is_weighted}'.encode())
        for step in self.steps:
            digest.update(f'/{step.name}/{step.dim}/'.encode())
            if isinstance(step.operand, Tensor):
                operand = step.operand.detach().contiguous()
                digest.update(f'{operand.dtype}'.encode())
                digest.update(operand.view(torch.uint8).numpy().data)
            else:
                digest.update(repr(step.operand).encode())
        return digest.hexdigest()[:24]


def of_columns(
    matrix: SparseSample, steps: Steps, cols: Callable[[], Tensor] | None
) -> SparseSample:
    """Applies steps to the values of some columns.

    Args:
        matrix (SparseSample): The columns, with the stored values.
        steps (Steps): The steps.
        cols (Callable, optional): Returns the ids of its columns in the graph,
            int64; all if not given.
    """
    for step in steps.steps:
        operand = step.operand
        if step.dim == 0 and cols is not None:
            operand = operand.index_select(0, cols())
        function = getattr(matrix, step.name)
        if step.dim is not None:
            matrix = function(operand, dim=step.dim)
        else:
            matrix = function() if operand is None else function(operand)
    return matrix
