"""Generated kernels: their layouts, and edge maps as functions of tensors."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from torch_gsample.codegen.cpp import cpp_source, flags_of
from torch_gsample.codegen.edge_map import (
    gradient_of,
    run_with_torch,
    text_of,
)
from torch_gsample.codegen.loaded import Loaded, load
from torch_gsample.codegen.run_cuda import run_edge_map
from torch_gsample.codegen.unit import (
    DESTINATION,
    EDGE,
    PARAMETER,
    POINTERS,
    Unit,
)
from torch_gsample.ops._gradient import refuse_transforms
from torch_gsample.ops.kernels import DTYPES, ROWS
from torch_gsample.torch_private import is_transformed


def load_unit(unit: Unit) -> Loaded | None:
    """Compiles and loads a unit for the CPU; None if that fails."""
    return load(cpp_source(unit), layout_of(unit), flags_of(unit))


def layout_of(unit: Unit) -> list[int]:
    """Encodes the operands and results of a kernel for the operator."""
    is_edge_map = unit.center == EDGE
    rows = {EDGE: 'edge', PARAMETER: 'one', POINTERS: 'pointers'}
    rows[DESTINATION if is_edge_map else unit.center] = 'center'
    graph = 0 if is_edge_map else 1 + int(unit.index == torch.int64)
    layout = [graph, -1 if unit.by is None else unit.by, len(unit.leaves)]

    def add(name: str, dtype: torch.dtype, axes: tuple[int, ...]) -> None:
        layout.extend([ROWS.index(name), DTYPES.index(dtype)])
        layout.append(unit.width(axes))

    for leaf in unit.leaves:
        name = 'any' if leaf.index is not None else rows.get(leaf.kind)
        add(name or 'neighbor', leaf.memory, leaf.axes)
    for output in unit.outputs:
        name = 'any' if unit.by is not None else rows[output.kind]
        add(name, output.memory, output.axes)
    return layout


class EdgeKernel:
    """An edge map as a function of its operands.

    Without a compiler, torch operators run instead.

    Args:
        unit (Unit): The edge map.
    """

    #: Passes may merge, move and drop its calls.
    is_pure = True
    __module__ = 'torch_gsample.codegen'

    def __init__(self, unit: Unit):
        self.unit = unit
        self.__name__ = text_of(unit)
        self._function: Callable[..., Tensor] | None = None
        self._gradients: dict[int, tuple[EdgeKernel, list[int]]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EdgeKernel) and self.unit == other.unit

    def __hash__(self) -> int:
        return hash(self.unit)

    @property
    def source(self) -> str:
        """Its C++ source."""
        return cpp_source(self.unit)

    def __call__(self, *operands: Tensor, num_rows: int = 0) -> Tensor:
        """Returns the value of each edge, column or row.

        Args:
            *operands (torch.Tensor): In the order of the leaves of
                :attr:`unit`.
            num_rows (int, optional): Rows of the result, if it reduces rows.
        """
        if is_transformed():
            refuse_transforms(self.__name__, operands)
        if torch.is_grad_enabled() and any(x.requires_grad for x in operands):
            return _EdgeFunction.apply(self, num_rows, *operands)
        return self.run(*operands, num_rows=num_rows)

    def run(self, *operands: Tensor, num_rows: int = 0) -> Tensor:
        """Computes the result without gradients."""
        if operands[0].is_cuda:
            out = run_edge_map(self.unit, operands, num_rows)
            if out is None:
                return run_with_torch(self.unit, operands, num_rows)
            return out
        if self._function is None:
            self.prepare()
        assert self._function is not None
        return self._function(operands, num_rows)

    def prepare(self, gradients: tuple[int, ...] = ()) -> None:
        """Compiles the kernel, and those of some gradients."""
        self._function = self.loaded or partial(run_with_torch, self.unit)
        for operand in gradients:
            self.gradient(operand)[0].prepare()

    @cached_property
    def loaded(self) -> Loaded | None:
        """The compiled kernel, if there is a compiler."""
        return load_unit(self.unit)

    def gradient(self, operand: int) -> tuple['EdgeKernel', list[int]]:
        """Returns the kernel of a gradient, and its operands."""
        if operand not in self._gradients:
            derived, kept = gradient_of(self.unit, operand)
            self._gradients[operand] = EdgeKernel(derived), kept
        return self._gradients[operand]


class KernelNumber:
    """A function that returns the id of a loaded edge map.

    Operators that call a kernel take it. It keeps the kernel loaded.

    Args:
        kernel (EdgeKernel): The edge map, which must be compiled.
    """

    is_pure = True
    __module__ = 'torch_gsample.codegen'

    def __init__(self, kernel: EdgeKernel):
        self.kernel = kernel
        self.__name__ = f'number_of[{kernel.__name__}]'

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KernelNumber) and self.kernel == other.kernel

    def __hash__(self) -> int:
        return hash(self.kernel)

    def __call__(self) -> int:
        """Returns it."""
        assert self.kernel.loaded is not None
        return self.kernel.loaded.number


class _EdgeFunction(torch.autograd.Function):
    """A kernel under autograd, with a differentiable backward."""

    @staticmethod
    def forward(
        ctx: Any, kernel: EdgeKernel, num_rows: int, *operands: Tensor
    ) -> Tensor:
        ctx.save_for_backward(*operands)
        ctx.kernel = kernel
        return kernel.run(*operands, num_rows=num_rows)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        operands, [grad] = ctx.saved_tensors, grads
        given: list[Tensor | None] = [None] * len(operands)
        for i, wanted in enumerate(ctx.needs_input_grad[2:]):
            if wanted:
                given[i] = _gradient_at(ctx.kernel, i, operands, grad)
        return None, None, *given


def _gradient_at(
    kernel: EdgeKernel, number: int, operands: tuple[Tensor, ...], grad: Tensor
) -> Tensor:
    operand = operands[number]
    derived, kept = kernel.gradient(number)
    taken = [*operands, grad]
    out = derived(
        *(taken[i] for i in kept),
        num_rows=operand.shape[0] if operand.dim() else 0,
    )
    if operand.dim() == 0:
        return out.sum()
    return out.view(operand.shape)
