"""A generated kernel, before it is text: an expression and its operands."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import torch
from torch import Tensor

from torch_gsample.codegen.expression import (
    Expression,
    apply,
    operand,
    substitute,
)
from torch_gsample.codegen.operations import OPERATIONS, gradients


class Role(IntEnum):
    """How a kernel reads a tensor. The numbers are those of the operator."""

    EDGE = 0  # a value of each edge
    GATHER = 1  # a value of a row, by an index of each edge
    COLUMN = 2  # a value of each column
    SCALAR = 3  # one value
    INDEX = 4  # the row of each edge
    POINTERS = 5  # where each column starts


@dataclass(frozen=True)
class Operand:
    """A tensor that a kernel reads.

    Args:
        role (Role): How.
        dtype (torch.dtype): Its dtype.
        index (int, optional): The operand with the index of a gather.
        wraps (bool): Whether negative numbers of an index count from the end.
        wide (bool): Whether it has features.
    """

    role: Role
    dtype: torch.dtype
    index: int | None = None
    wraps: bool = False
    wide: bool = False


@dataclass(frozen=True)
class Program:
    """An expression at each edge, and what is done with its value.

    Args:
        root (Expression): The expression.
        operands (Tuple[Operand, ...]): The tensors, in order.
        reduce (str, optional): ``'sum'``, ``'amax'``, ``'amin'`` or
            ``'prod'`` of the edges of a column or row; the value of each edge
            if not given.
        by (int, optional): The operand with the row of each edge, if rows are
            reduced; else columns are.
        fill (float): The value of a column without edges.
        features (int): How many there are; 0 for none.
        wide (bool): Whether the result has features.
    """

    root: Expression
    operands: tuple[Operand, ...]
    reduce: str | None = None
    by: int | None = None
    fill: float = 0.0
    features: int = 0
    wide: bool = False

    @property
    def pointers(self) -> int | None:
        """The operand that says where columns start, if there is one."""
        roles = [operand.role for operand in self.operands]
        found = Role.POINTERS in roles
        return roles.index(Role.POINTERS) if found else None

    @property
    def text(self) -> str:
        """Its expression, by which operators are named."""
        names = []
        for i, item in enumerate(self.operands):
            place = {
                Role.GATHER: f'[x{item.index}]',
                Role.COLUMN: '[col]',
            }
            names.append(f'x{i}{place.get(item.role, "")}')
        value = self.root.text(names).removeprefix('(')
        if value != self.root.text(names):
            value = value.removesuffix(')')
        if self.reduce is None:
            return f'edge_map[{value}]'
        by = 'col' if self.by is None else f'x{self.by}'
        return f'edge_map_reduce[{self.reduce}({value}) by {by}]'


def evaluate(program: Program, tensors: Sequence[Tensor], size: int) -> Tensor:
    """Runs a program with the operators of PyTorch.

    Args:
        program (Program): The program.
        tensors (Sequence[torch.Tensor]): Its operands.
        size (int): Number of rows, if rows are reduced.
    """
    column = None
    if program.pointers is not None:
        indptr = tensors[program.pointers]
        size = indptr.numel() - 1 if program.by is None else size
        column = torch.arange(indptr.numel() - 1, device=indptr.device)
        column = column.repeat_interleave(indptr.diff())
    values: dict[Expression, Any] = {}
    for node in program.root.nodes():
        args = [values[arg] for arg in node.args]
        if node.op == 'constant':
            assert node.value is not None
            values[node] = torch.full(
                (), node.value, dtype=node.dtype, device=tensors[0].device
            )
        elif node.op == 'operand':
            values[node] = _read(
                program, tensors, int(node.value or 0), column
            )
        elif node.op == 'cast':
            values[node] = args[0].to(node.dtype)
        else:
            if node.wide:
                args = [
                    x if arg.wide or x.dim() == 0 else x.unsqueeze(-1)
                    for x, arg in zip(args, node.args, strict=True)
                ]
            if node.op == 'pow' and node.args[1].op == 'constant':
                args[1] = node.args[1].value
            values[node] = OPERATIONS[node.op].function(*args)
    value = values[program.root]
    if value.dim() == 0:
        value = value.expand(_num_edges(program, tensors))
    if program.wide and not program.root.wide:
        value = value.unsqueeze(-1).expand(-1, program.features)
    index = column if program.by is None else tensors[program.by]
    return _reduced(program, value, index, size)


def _num_edges(program: Program, tensors: Sequence[Tensor]) -> int:
    for item, tensor in zip(program.operands, tensors, strict=True):
        if item.role in (Role.EDGE, Role.INDEX):
            return tensor.shape[0]
    assert program.pointers is not None
    return int(tensors[program.pointers][-1])


def _read(
    program: Program,
    tensors: Sequence[Tensor],
    number: int,
    column: Tensor | None,
) -> Tensor:
    item, tensor = program.operands[number], tensors[number]
    if item.role == Role.GATHER:
        assert item.index is not None
        index = tensors[item.index]
        if program.operands[item.index].wraps:
            return tensor[index]
        return tensor.index_select(0, index)
    if item.role == Role.COLUMN:
        assert column is not None
        return tensor.index_select(0, column)
    return tensor


def _reduced(
    program: Program, value: Tensor, index: Tensor | None, size: int
) -> Tensor:
    if program.reduce is None:
        return value.contiguous()
    assert index is not None
    out = value.new_full((size, *value.shape[1:]), program.fill)
    if program.reduce == 'sum':
        return out.index_add(0, index, value)
    index = index.long().view(-1, *[1] * (value.dim() - 1)).expand_as(value)
    return out.scatter_reduce(
        0, index, value, program.reduce, include_self=False
    )


def gradient_of(program: Program, number: int) -> tuple[Program, list[int]]:
    """Returns the program of the gradient of an operand.

    That of a scalar is the gradient at each edge.

    Args:
        program (Program): The program.
        number (int): Of the operand.

    Returns:
        Tuple[Program, List[int]]: The program, and which operands it has: the
        one after the last is the gradient of the result.

    Raises:
        NotImplementedError: If there is no derivative.
    """
    if program.reduce not in (None, 'sum'):
        raise NotImplementedError(f'{program.reduce} by edges')
    role, index = Role.EDGE, None
    if program.reduce == 'sum':
        role = Role.COLUMN if program.by is None else Role.GATHER
        index = program.by
    given = Operand(role, program.root.dtype, index, wide=program.wide)
    wanted = program.operands[number]
    grad = operand(len(program.operands), given.dtype, given.wide)
    if given.wide and not program.root.wide:
        grad = apply('sum_features', grad)
    root = gradients(program.root, grad).get(number)
    if root is None:
        raise NotImplementedError('no gradient reaches an operand')
    if root.wide and not wanted.wide:
        root = apply('sum_features', root)
    by = wanted.index if wanted.role == Role.GATHER else None
    reduced = wanted.role in (Role.GATHER, Role.COLUMN)
    return pruned(
        Program(
            root,
            (*program.operands, given),
            'sum' if reduced else None,
            by,
            features=program.features,
            wide=wanted.wide,
        )
    )


def pruned(program: Program) -> tuple[Program, list[int]]:
    """Returns a program without operands that it does not read.

    Returns:
        Tuple[Program, List[int]]: The program, and which operands stayed.
    """
    kept = _used(program)
    place = {number: i for i, number in enumerate(kept)}

    def moved(node: Expression) -> Expression:
        return operand(place[int(node.value or 0)], node.dtype, node.wide)

    operands = tuple(
        replace(item, index=None if item.index is None else place[item.index])
        for item in (program.operands[number] for number in kept)
    )
    by = None if program.by is None else place[program.by]
    root = substitute(program.root, moved)
    return replace(program, root=root, operands=operands, by=by), kept


def _used(program: Program) -> list[int]:
    wanted = {
        int(node.value or 0)
        for node in program.root.nodes()
        if node.op == 'operand'
    }
    operands = program.operands
    wanted |= {operands[i].index for i in wanted} - {None}  # type: ignore
    if program.by is not None:
        wanted.add(program.by)
    columns = any(operands[i].role == Role.COLUMN for i in wanted)
    if columns or (program.reduce is not None and program.by is None):
        assert program.pointers is not None
        wanted.add(program.pointers)
    return sorted(wanted)
