"""Programs that hypothesis writes: extract, compute, select, finalize.

A program is a list of statements, each an operator of the grammar and the
numbers of its operands, newest first. Numbers that fit no operand are taken
modulo how many there are, and statements without any operand are left out: so
each list is a program, and a shorter list is a simpler one. It prints as the
source that runs.

    def program(A, s):
        M1 = A[:, s]
        M2 = A[:, s] ** 2
        M3 = M1.individual_sample(2, M2)
        return [M3]
"""

import textwrap
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from hypothesis import strategies as st

from tests.algorithms.graphs import skewed_graph
from tests.compiler.grammar import (
    OPERATORS,
    Matrix,
    Nodes,
    Writer,
    columns,
    pick,
)
from torch_gsample import SparseSample

#: What programs know, which outlives them: Dynamo adds names to it.
_MODULES = {'torch': torch, 'F': F}
FINALS = '{}', '{}.to_edge_index()', '{}.values()', '{}'


@dataclass(frozen=True)
class Program:
    """A program, and its changes to its graphs."""

    lines: tuple[str, ...]
    outputs: tuple[str, ...]

    def __repr__(self) -> str:
        body = [*self.lines, f'return [{", ".join(self.outputs)}]']
        lines = ['def program(A, s):', *(f'    {line}' for line in body)]
        return '\n'.join(['', *lines, ''])

    def function(self) -> tuple[Callable, SparseSample]:
        """A new function, and the graph to call it with.

        Graphs are new, too: eager code caches layouts with them.
        """
        given = graphs()
        source = textwrap.indent(repr(self), '    ')
        source = f'def make({", ".join(given)}):{source}    return program'
        space = {}
        exec(compile(source, '<program>', 'exec'), _MODULES, space)
        return space['make'](**given), given['A']


def write(steps: list[tuple[int, int, int, int]]) -> Program:
    """The program of some steps: an operator, and its numbers each."""
    w = Writer(known=[Nodes('s')])
    w.known.append(Matrix('A', 'A', 'all', 'all'))
    columns(w, 0, 0, 0)
    for number, *operands in steps:
        pick(OPERATORS, number)(w, *operands)
    text = ' '.join(line.partition(' = ')[2] for line in w.lines)
    outputs = []
    for i, value in enumerate(w.known[2:]):
        if value.name in _names(text):
            continue
        if i % 4 == 3 and i + 3 < len(w.known):
            continue  # nobody uses it
        form = pick(FINALS, i) if isinstance(value, Matrix) else '{}'
        outputs.append(form.format(value.name))
    return Program(tuple(w.lines), tuple(outputs))


def _names(text: str) -> set[str]:
    return set(''.join(c if c.isalnum() else ' ' for c in text).split())


def graphs() -> dict[str, SparseSample | torch.Tensor]:
    """Graphs of the same edges, and a mask of their columns.

    A and B share tensors. C has its own, and D stores rows.
    """
    A = skewed_graph()
    value = torch.linspace(0.1, 1.0, A.num_edges, dtype=A.dtype)
    row, col = A.coo()
    order = torch.arange(A.num_edges).flip(0)
    return {
        'A': A.with_value(A.values().clone().requires_grad_()),
        'B': A.with_value(value),
        'C': SparseSample.from_csc(
            A.csc.indptr.clone(), A.csc.indices.clone(), value**2
        ),
        'D': SparseSample.from_coo(
            col[order], row[order], value[order], A.shape
        ).T,
        'held': torch.arange(40) % 3 == 1,
    }


_NUMBER = st.integers(0, 59)

#: Programs of two to six steps after the first extract.
PROGRAMS = st.lists(
    st.tuples(st.integers(0, len(OPERATORS) - 1), _NUMBER, _NUMBER, _NUMBER),
    min_size=2,
    max_size=6,
).map(write)
