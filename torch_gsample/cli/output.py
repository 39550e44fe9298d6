"""Output of commands: JSON, plain text, or colours by rich."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

#: Colours of states.
_STYLES = {
    'ok': 'green',
    'missing': 'yellow',
    'too old': 'red',
    'broken': 'red',
}


def has_colours() -> bool:
    """Whether standard output is a terminal with colours.

    False with ``NO_COLOR`` set, on a dumb terminal, or without rich.
    """
    if not sys.stdout.isatty() or os.environ.get('TERM') == 'dumb':
        return False
    if os.environ.get('NO_COLOR'):
        return False
    try:
        import rich  # noqa: F401
    except ImportError:
        return False
    return True


def print_json(value: Any) -> None:
    """Prints a value as JSON."""
    print(json.dumps(value, indent=2))


def heading(text: str) -> None:
    """Prints a heading."""
    if has_colours():
        from rich.console import Console

        Console().print(text, style='bold cyan', highlight=False, markup=False)
    else:
        print(text)


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    right: Sequence[str] = (),
) -> None:
    """Prints a table.

    Args:
        columns (Sequence[str]): The names of the columns.
        rows (Sequence[Sequence[Any]]): The cells.
        right (Sequence[str], optional): Right-aligned columns, such as
            numbers.
    """
    if has_colours():
        _rich_table(columns, rows, right)
    else:
        print(text_table(columns, rows, right))


def text_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    right: Sequence[str] = (),
) -> str:
    """Returns a table as text, with two spaces between columns.

    Example:
        >>> print(text_table(['hop', 'edges'], [[1, 20], [2, 5]], ['edges']))
        hop  edges
        1       20
        2        5
    """
    lines = [list(map(str, row)) for row in (columns, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    sides: list[Callable[..., str]] = [
        str.rjust if name in right else str.ljust for name in columns
    ]
    return '\n'.join(
        '  '.join(
            side(cell, width)
            for side, cell, width in zip(sides, line, widths, strict=True)
        ).rstrip()
        for line in lines
    )


def _rich_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    right: Sequence[str],
) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    out = Table(box=box.SIMPLE_HEAD, header_style='bold', pad_edge=False)
    for name in columns:
        side: Any = 'right' if name in right else 'left'
        out.add_column(name, justify=side, overflow='fold')
    for row in rows:
        cells = map(str, row)
        out.add_row(*[Text(cell, _STYLES.get(cell, '')) for cell in cells])
    Console().print(out)


def check_output(path: str | None, suffixes: Sequence[str] = ()) -> None:
    """Checks that a file can be written, before the work begins.

    Args:
        path (str, optional): The file.
        suffixes (Sequence[str], optional): Valid suffixes.

    Raises:
        OSError: If its folder is missing or not writable.
        ValueError: If it has another suffix.
    """
    if path is None:
        return
    if suffixes and Path(path).suffix not in suffixes:
        raise ValueError(
            f'{path}: must end with {" or ".join(suffixes)} (got '
            f'{Path(path).suffix!r})'
        )
    check_folder(Path(path).resolve().parent)
    if Path(path).is_dir():
        raise IsADirectoryError(f'{path}: is a folder')


def check_folder(folder: Path) -> None:
    """Checks that files can be written to a folder.

    Raises:
        OSError: If it is missing, not a folder, or not writable.
    """
    if not folder.exists():
        raise FileNotFoundError(f'{folder}: the folder does not exist')
    if not folder.is_dir():
        raise NotADirectoryError(f'{folder}: is not a folder')
    try:
        import tempfile

        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise type(error)(
            f'{folder}: is not writable ({error.strerror})'
        ) from error
