"""Shared code of the benchmarks: fair comparisons, medians, memory bounds.

Candidates take turns, so that a noisy machine disturbs them alike, and only
ratios within one run are worth reporting.
"""

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from torch_gsample.bench.machine import machine
from torch_gsample.bench.peers import dgl_module, pyg_lib_operators
from torch_gsample.bench.timing import Timing, compare

__all__ = [
    'Report',
    'Timing',
    'compare',
    'copier',
    'dgl_module',
    'machine',
    'pyg_lib_operators',
    'random_read_seconds',
    'random_reader',
    'seed_batches',
]


def random_reader(
    num_items: int, dtype: torch.dtype
) -> tuple[Callable[[int], object], int]:
    """Returns a function that reads an array at random, and its reads.

    Many reads are in flight, and the reads dominate its time.

    Args:
        num_items (int): Length of the array.
        dtype (torch.dtype): int32 or int64.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = f'{folder}/random_reads.so'
        source = Path(__file__).with_name('random_reads.cpp')
        subprocess.check_call(
            ['g++', '-O3', '-shared', '-fPIC', str(source), '-o', path]
        )
        library = ctypes.CDLL(path)
    data = torch.zeros(num_items, dtype=dtype)
    torch.ops.gsample.advise_huge_pages(data)
    data.fill_(1)
    place = torch.randint(num_items, (1 << 22,), dtype=torch.int32)
    width = torch.iinfo(dtype).bits
    read = getattr(library, f'random_reads_{width}')
    count = place.numel()

    def call(_: int) -> object:
        return read(
            ctypes.c_void_p(data.data_ptr()),
            ctypes.c_void_p(place.data_ptr()),
            ctypes.c_int64(count),
        )

    return call, count


def random_read_seconds(num_items: int, dtype: torch.dtype) -> float:
    """Measures a read of an array at a random position."""
    read, count = random_reader(num_items, dtype)
    return compare({'read': read}, rounds=5)['read'].best / count


def copier() -> tuple[Callable[[int], object], int]:
    """Returns a function that copies memory, and the bytes it moves."""
    source = torch.ones(1 << 25)
    target = torch.empty_like(source)
    size = 2 * source.numel() * source.element_size()
    return lambda _: target.copy_(source), size


def seed_batches(num_nodes: int, batch_size: int, count: int) -> list[Tensor]:
    """Returns batches of different seeds, the same in every run."""
    generator = torch.Generator().manual_seed(12)
    return [
        torch.randperm(num_nodes, generator=generator)[:batch_size]
        for _ in range(count)
    ]


class Report:
    """A table that is printed, and written as Markdown with ``--markdown``."""

    def __init__(self, title: str, columns: list[str]):
        self.title = title
        self.columns = columns
        self.rows: list[list[str]] = []

    def add(self, *cells: object) -> None:
        """Adds a row and prints it."""
        row = [
            f'{cell:.2f}' if isinstance(cell, float) else str(cell)
            for cell in cells
        ]
        self.rows.append(row)
        print(' | '.join(row), flush=True)

    def show(self) -> None:
        """Prints the table."""
        # Machines that measure may lack rich.
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table

        table = Table(title=self.title)
        for column in self.columns:
            table.add_column(column)
        for row in self.rows:
            table.add_row(*map(escape, row))
        Console().print(table)

    def markdown(self) -> str:
        """Returns the table as Markdown."""
        lines = [f'### {self.title}', '']
        lines.append('| ' + ' | '.join(self.columns) + ' |')
        lines.append('|' + '---|' * len(self.columns))
        lines += ['| ' + ' | '.join(row) + ' |' for row in self.rows]
        return '\n'.join(lines) + '\n'
