"""What the benchmarks share: fair pairs, medians, and the memory bound.

Candidates take turns, so that a noisy machine disturbs them alike, and only
ratios within one run are worth reporting.
"""

import ctypes
import importlib.util
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

import torch_gsample


@dataclass
class Timing:
    """Seconds of each round of one candidate."""

    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def best(self) -> float:
        return min(self.seconds)


def compare(
    candidates: dict[str, Callable[[int], object]],
    rounds: int,
    min_seconds: float = 0.0,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """Times candidates in turns.

    Args:
        candidates (Dict[str, Callable]): Functions of the number of a round.
        rounds (int): How often each is timed, after two untimed rounds.
        min_seconds (float, optional): A round repeats a candidate until it
            took that long.
        clock (Callable, optional): The time; ``time.process_time`` does not
            see what else the machine does.
    """
    timings = {name: Timing() for name in candidates}
    repeats = dict.fromkeys(candidates, 1)
    for i in range(-2, rounds):
        for name, call in candidates.items():
            start = clock()
            for _ in range(repeats[name]):
                call(max(i, 0))
            seconds = (clock() - start) / repeats[name]
            if i < 0:
                repeats[name] = max(1, round(min_seconds / seconds))
            else:
                timings[name].seconds.append(seconds)
    return timings


def random_read_seconds(num_items: int, dtype: torch.dtype) -> float:
    """Measures a random read over an array, with many reads in flight.

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
    arguments = [
        ctypes.c_void_p(data.data_ptr()),
        ctypes.c_void_p(place.data_ptr()),
        ctypes.c_int64(place.numel()),
    ]
    timing = compare({'read': lambda _: read(*arguments)}, rounds=5)
    return timing['read'].best / place.numel()


def copy_seconds_per_byte() -> float:
    """Measures a copy of memory: seconds for each byte read or written."""
    source = torch.ones(1 << 25)
    target = torch.empty_like(source)
    timing = compare({'copy': lambda _: target.copy_(source)}, rounds=5)
    return timing['copy'].best / (2 * source.numel() * source.element_size())


def pyg_lib_operators() -> object | None:
    """Returns pyg-lib's operators if it is installed."""
    if importlib.util.find_spec('pyg_lib') is None:
        return None
    import pyg_lib  # noqa: F401

    return torch.ops.pyg


def dgl_module() -> object | None:
    """Returns DGL if it is installed."""
    try:
        import dgl
    except ImportError:
        return None
    return dgl


def seed_batches(num_nodes: int, batch_size: int, count: int) -> list[Tensor]:
    """Returns batches of different seeds, the same in every run."""
    generator = torch.Generator().manual_seed(12)
    return [
        torch.randperm(num_nodes, generator=generator)[:batch_size]
        for _ in range(count)
    ]


def machine() -> str:
    """Describes where and with what a benchmark ran."""
    name = platform.processor() or platform.machine()
    info = Path('/proc/cpuinfo')
    if info.exists():
        names = [
            line.split(':')[1].strip()
            for line in info.read_text().splitlines()
            if line.startswith('model name')
        ]
        name = f'{names[0]}, {len(names)} cores'
    return (
        f'{date.today()}, {name}, torch {torch.__version__}, torch_gsample '
        f'{torch_gsample.__version__}'
    )


class Report:
    """A table that is printed, and written as Markdown on request."""

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
        table = Table(title=self.title)
        for column in self.columns:
            table.add_column(column)
        for row in self.rows:
            table.add_row(*row)
        Console().print(table)

    def markdown(self) -> str:
        """Returns the table as Markdown."""
        lines = [f'### {self.title}', '']
        lines.append('| ' + ' | '.join(self.columns) + ' |')
        lines.append('|' + '---|' * len(self.columns))
        lines += ['| ' + ' | '.join(row) + ' |' for row in self.rows]
        return '\n'.join(lines) + '\n'
