"""Time and memory of PyG's convolutions, fused and eager.

Each layer runs forward and backward with the same weights, fused and as PyG's
eager layer, in turns: on the whole graph of packages, and on the largest exact
block of a batch ([15, 10, 5] around 1,024 seeds).

    python benchmark/convolutions.py --rows rows.jsonl --markdown table.md
    python benchmark/convolutions.py --graphs tiny --channels 16 --rounds 300
    python benchmark/convolutions.py --graphs small --channels 64 --fresh

`--rows` saves each row once it is measured; a later run continues after the
saved rows.
"""

import argparse
import ctypes
import gc
import json
import os
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from convolution_layers import GRAPHS, LAYERS, Inputs, steps_of
from harness import Report, compare, machine

KINDS = ('fused', 'PyG')


def _status(name: str) -> float:
    lines = Path('/proc/self/status').read_text().splitlines()
    return next(int(x.split()[1]) for x in lines if x.startswith(name)) / 1024


def peak(step: Callable[[int], object]) -> float:
    """Returns the peak MB of a call beyond the memory before it."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path('/proc/self/clear_refs').write_text('5')  # resets VmHWM
    before = _status('VmRSS')
    step(0)
    return _status('VmHWM') - before


def measured(
    name: str, channels: int, graph: Any, args: Any
) -> dict[str, Any]:
    """Returns times and peaks of a layer."""
    inputs = Inputs(*graph, channels, args.fresh)
    steps = steps_of(LAYERS[name], channels, inputs, args.min_nodes)
    row: dict[str, Any] = {}
    for kind, step in steps.items():
        step(0)
        row[f'{kind} MB'] = round(peak(step), 1)
    times = compare(steps, args.rounds, max_seconds=args.seconds)
    for kind, timing in times.items():
        row[f'{kind} ms'] = round(1e3 * timing.median, 4)
    row['load'] = round(os.getloadavg()[0], 1)
    return row


def table(rows: list[dict[str, Any]]) -> Report:
    """Returns all rows, and the medians of their ratios."""
    columns = ['graph', 'layer', 'channels', 'fused ms', 'PyG ms', 'faster']
    columns += ['fused MB', 'PyG MB', 'less', 'load']
    title = f'Convolutions, forward with backward: {machine()}'
    report = Report(title, columns)
    groups: dict[tuple, list[tuple[float, float]]] = {}
    for row in rows:
        key = row['graph'], row['channels']
        if 'failed' in row:
            report.add(row['graph'], row['layer'], row['channels'], *'-------')
            continue
        faster = row['PyG ms'] / row['fused ms']
        less = row['PyG MB'] / max(row['fused MB'], 0.1)
        groups.setdefault(key, []).append((faster, less))
        report.add(
            *(row['graph'], row['layer'], row['channels']),
            *(f'{row["fused ms"]:.3g}', f'{row["PyG ms"]:.3g}'),
            *(f'{faster:.1f}x', f'{row["fused MB"]:.0f}'),
            *(f'{row["PyG MB"]:.0f}', f'{less:.1f}x', row['load']),
        )
    for (graph, channels), ratios in groups.items():
        times, memory = (median(found) for found in zip(*ratios, strict=True))
        report.add(
            *(graph, f'median of {len(ratios)}', channels, '', ''),
            *(f'{times:.1f}x', '', '', f'{memory:.1f}x', ''),
        )
    return report


def main(arguments: list[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--layers', nargs='*', default=list(LAYERS))
    parser.add_argument('--channels', nargs='*', type=int, default=[64, 256])
    parser.add_argument(
        '--graphs', nargs='*', default=['block', 'packages'], choices=GRAPHS
    )
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=8.0)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--min-nodes', type=int, default=0)
    parser.add_argument(
        '--fresh', action='store_true', help='new edges in each step'
    )
    parser.add_argument('--rows', type=Path, help='rows as JSON, to go on')
    parser.add_argument('--markdown', type=Path, help='write the table there')
    args = parser.parse_args(arguments)
    torch.set_num_threads(args.threads)
    rows: list[dict[str, Any]] = []
    if args.rows and args.rows.exists():
        lines = args.rows.read_text().splitlines()
        rows = [json.loads(line) for line in lines]
    known = {(row['graph'], row['layer'], row['channels']) for row in rows}
    for graph in args.graphs:
        made = GRAPHS[graph]()
        for channels in args.channels:
            for name in args.layers:
                width = min(channels, LAYERS[name].most)
                if (graph, name, width) in known:
                    continue
                known.add((graph, name, width))
                row = {'graph': graph, 'layer': name, 'channels': width}
                try:
                    row |= measured(name, width, made, args)
                except Exception as error:
                    row['failed'] = f'{error!r:.200}'
                print(row, flush=True)
                rows.append(row)
                if args.rows:
                    with args.rows.open('a') as file:
                        file.write(json.dumps(row) + '\n')
    found = table(rows)
    if args.markdown:
        args.markdown.write_text(found.markdown())
    found.show()


if __name__ == '__main__':
    main()
