"""Generated kernels as functions of tensors, with gradients."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.codegen.build import BuildError, build, warn_once
from torch_gsample.codegen.cpp import cpp_source
from torch_gsample.codegen.cuda_kernel import run_edge_program
from torch_gsample.codegen.program import Program, evaluate, gradient_of
from torch_gsample.ops._gradient import is_transformed, refuse_transforms
from torch_gsample.ops.edge_map import EDGE_DTYPES


class EdgeKernel:
    """A program of edges that is a function of its operands.

    Where there is no compiler, operators of torch run in its place.

    Args:
        program (Program): The program.
    """

    #: Passes may merge, move and drop its calls.
    is_pure = True
    __module__ = 'torch_gsample.codegen'

    def __init__(self, program: Program):
        self.program = program
        self.__name__ = program.text
        self._function: Callable[..., Tensor] | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EdgeKernel) and self.program == other.program

    def __hash__(self) -> int:
        return hash(self.program)

    @property
    def source(self) -> str:
        """Its C++ text."""
        return cpp_source(self.program)

    def __call__(self, *operands: Tensor, num_rows: int = 0) -> Tensor:
        """Returns the value of each edge, column or row.

        Args:
            *operands (torch.Tensor): As :attr:`program` lists them.
            num_rows (int, optional): Rows of the result, if it reduces rows.
        """
        if is_transformed():
            refuse_transforms(self.__name__, operands)
        if torch.is_grad_enabled() and any(x.requires_grad for x in operands):
            return _EdgeFunction.apply(self, num_rows, *operands)
        return self.run(*operands, num_rows=num_rows)

    def run(self, *operands: Tensor, num_rows: int = 0) -> Tensor:
        """Is the function without gradients."""
        if operands[0].is_cuda:
            out = run_edge_program(self.program, operands, num_rows)
            if out is None:
                return evaluate(self.program, operands, num_rows)
            return out
        if self._function is None:
            self.prepare()
        assert self._function is not None
        return self._function(operands, num_rows)

    def prepare(self, gradients: tuple[int, ...] = ()) -> None:
        """Compiles it, and what gives the gradients of some operands."""
        number = _loaded(self.program)
        if number is None:
            self._function = lambda x, size: evaluate(self.program, x, size)
        else:
            self._function = lambda x, size: torch.ops.gsample.edge_map(
                number, x, size
            )
        for operand in gradients:
            self.gradient(operand)[0].prepare()

    @property
    def number(self) -> int | None:
        """Its number for :func:`torch_gsample.ops.edge_map`."""
        return _loaded(self.program)

    def gradient(self, operand: int) -> tuple['EdgeKernel', list[int]]:
        """Returns the kernel of a gradient, and which operands it takes."""
        return _gradient(self.program, operand)


@lru_cache(maxsize=1024)
def _gradient(program: Program, operand: int) -> tuple[EdgeKernel, list[int]]:
    derived, kept = gradient_of(program, operand)
    return EdgeKernel(derived), kept


@lru_cache(maxsize=1024)
def _loaded(program: Program) -> int | None:
    """Compiles and loads a program once; nothing if it cannot be."""
    try:
        with build(cpp_source(program)) as file:
            return ops.load_edge_kernel(file.fileno(), layout_of(program))
    except BuildError as error:
        warn_once(error)
    except RuntimeError as error:
        warn_once(BuildError(f'a kernel does not load: {error}'))
    return None


def layout_of(program: Program) -> list[int]:
    """Spells what a kernel reads and returns for the operator."""
    width = program.features
    layout = [
        EDGE_DTYPES.index(program.root.dtype),
        width if program.wide else 1,
        int(program.reduce is not None),
        -1 if program.by is None else program.by,
    ]
    for operand in program.operands:
        layout += [operand.role, EDGE_DTYPES.index(operand.dtype)]
        layout += [width if operand.wide else 1]
    return [int(item) for item in layout]


class _EdgeFunction(torch.autograd.Function):
    """A kernel under autograd. Its backward can be differentiated again."""

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
