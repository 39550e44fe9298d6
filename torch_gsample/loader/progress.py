"""A progress bar of a loader's epoch, with sampled edges per second.

Batches pass through unchanged.
"""

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from torch_gsample.loader.watch import Watched


def check_progress(name: str) -> None:
    """Checks that rich is installed.

    Raises:
        ImportError: If it is not.
    """
    try:
        import rich  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{name}: 'progress' needs 'rich', which draws the bar: pip "
            'install rich'
        ) from error


def with_progress(
    batches: Watched, total: int | None, clock: Callable[[], float]
) -> Iterator[Any]:
    """Shows a bar while batches are iterated.

    Only if standard error is a terminal.

    Args:
        batches (Watched): The batches of an epoch.
        total (int, optional): Their number.
        clock (Callable): Returns the time in seconds.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(file=sys.stderr)
    if not console.is_terminal:
        yield from batches
        return
    bar = Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn('{task.fields[rate]}'),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    with bar:
        task = bar.add_task('', total=total, rate='')
        start, edges = clock(), 0
        for batch in batches:
            edges += batches.num_edges
            rate = edges / max(clock() - start, 1e-9)
            bar.update(task, advance=1, rate=f'{rate:,.0f} edges/s')
            yield batch


def shown(batches: Watched, loader: Any) -> Iterator[Any]:
    """Shows a bar for the batches of a loader."""
    try:
        total: int | None = len(loader)
    except TypeError:  # an index sampler has no length
        total = None
    return with_progress(batches, total, time.perf_counter)
