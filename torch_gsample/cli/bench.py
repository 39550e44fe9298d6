"""``gsample bench``."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from torch_gsample.bench.machine import machine, versions
from torch_gsample.bench.picture import draw
from torch_gsample.bench.tasks import OURS, TASKS, Row, run_tasks
from torch_gsample.bench.verdict import verdict
from torch_gsample.cli import output

_QUICK_SECONDS = 2.0
_COLUMNS = ('task', 'threads', 'ours', 'peer', 'time', 'ours is')


def bench(args: argparse.Namespace) -> None:
    """Measures this machine, and prints, writes and draws the ratios.

    Args:
        args (argparse.Namespace): The threads, seconds and output.

    Raises:
        KeyboardInterrupt: After Ctrl-C, once the rows measured so far are
            printed and written.
    """
    if args.seconds <= 0:
        raise ValueError(
            f'bench: --seconds must be positive (got {args.seconds})'
        )
    folder = None if args.output is None else Path(args.output)
    if folder is not None:  # fail before minutes go by
        folder.mkdir(parents=True, exist_ok=True)
        output.check_folder(folder)
    threads = args.threads or sorted({1, torch.get_num_threads()})
    seconds = min(args.seconds, _QUICK_SECONDS) if args.quick else args.seconds
    rows: list[Row] = []
    stopped = None
    try:
        for row in tqdm(
            run_tasks(threads, seconds, args.quick),
            'measuring',
            len(TASKS) * len(threads),
            disable=None,  # without a terminal
            leave=False,
        ):
            rows.append(row)
    except KeyboardInterrupt as error:
        stopped = error  # the rows so far are shown
    title = machine()
    if args.json:
        output.print_json(_facts(title, rows))
    else:
        output.heading(title)
        output.table(
            _COLUMNS, _cells(rows), ('threads', 'ours', *_COLUMNS[4:])
        )
        print(''.join(f'\n{sentence}' for sentence in verdict(rows)))
        if rows and not any(_peers(row) for row in rows):
            print('No peer is installed; see `gsample bench --help`.')
    if folder is not None:
        _write(folder, title, rows)
    if stopped is not None:
        raise stopped


def _peers(row: Row) -> list[str]:
    return [name for name in row.ratios if name != 'uncompiled']


def _facts(title: str, rows: list[Row]) -> dict[str, Any]:
    return {
        'machine': title,
        'versions': versions(),
        'rows': [
            {
                'task': row.task,
                'threads': row.threads,
                'median_seconds': {
                    name: timing.median for name, timing in row.timings.items()
                },
                'rounds': len(row.timings[OURS].seconds),
                'ratios': row.ratios,
            }
            for row in rows
        ],
        'verdict': verdict(rows),
    }


def _cells(rows: list[Row]) -> list[list[str]]:
    """Returns a line for each peer of each row."""
    lines = []
    for row in rows:
        first = [row.task, str(row.threads), _time(row, OURS)]
        for name, ratio in row.ratios.items():
            rest = [name, _time(row, name), f'{ratio:.1f}x as fast']
            lines.append(first + rest)
            first = ['', '', '']
        if not row.ratios:
            lines.append([*first, '-', '-', '-'])
    return lines


def _time(row: Row, name: str) -> str:
    return f'{row.timings[name].median * 1e3:.2f} ms'


def _write(folder: Path, title: str, rows: list[Row]) -> None:
    facts = json.dumps(_facts(title, rows), indent=2)
    (folder / 'bench.json').write_text(facts + '\n')
    text = output.text_table(_COLUMNS, _cells(rows), _COLUMNS[4:])
    parts = [title, text, '\n'.join(verdict(rows))]
    (folder / 'bench.txt').write_text('\n\n'.join(parts).rstrip() + '\n')
    written = ['bench.json', 'bench.txt']
    try:
        draw(folder / 'bench.png', title, rows)
        written.append('bench.png')
    except ImportError:
        print(
            "gsample: bench.png needs matplotlib: `pip install 'torch_gsample"
            "[viz]'`",
            file=sys.stderr,
        )
    print(f'written to {folder}: {", ".join(written)}', file=sys.stderr)
