"""Start-up time of the command and of ``import torch_gsample``.

    python benchmark/start_time.py --rounds 15 --markdown table.md

Each start is a separate process. Candidates take turns, and the times are
processor time (user and system), which other load disturbs least.
"""

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

from harness import Report, machine

COMMAND = 'import sys; from torch_gsample.cli import main; sys.exit(main())'
#: Candidates: a program, its arguments, and the candidate to compare it with.
STARTS = {
    'python': ('', [], None),
    'gsample --help': (COMMAND, ['--help'], 'python'),
    'gsample --version': (COMMAND, ['--version'], 'python'),
    'gsample bench --help': (COMMAND, ['bench', '--help'], 'python'),
    'import torch': ('import torch', [], 'python'),
    'import torch_geometric': ('import torch_geometric', [], 'import torch'),
    'and torch_gsample': (
        'import torch_geometric, torch_gsample',
        [],
        'import torch_geometric',
    ),
    "PyG's NeighborLoader": (
        'from torch_geometric.loader import NeighborLoader',
        [],
        'import torch_geometric',
    ),
    'our NeighborLoader': (
        'from torch_gsample.loader import NeighborLoader',
        [],
        "PyG's NeighborLoader",
    ),
}


def processor_seconds(program: str, arguments: list[str]) -> float:
    """Returns the processor time of a new process that runs a program."""
    process = subprocess.Popen(
        [sys.executable, '-c', program, *arguments], stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f'{program!r} ended with {process.returncode}')
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--rounds', type=int, default=15)
    parser.add_argument('--markdown', type=Path)
    args = parser.parse_args()
    seconds = {name: [] for name in STARTS}
    for _ in range(args.rounds):
        for name, (program, arguments, _) in STARTS.items():
            seconds[name].append(processor_seconds(program, arguments))
    columns = ['start', 'median s', 'shortest s', 'compared with', 'adds s']
    load = os.getloadavg()[0]
    report = Report(f'Starts: {machine()}, load {load:.1f}', columns)
    for name, (_, _, other) in STARTS.items():
        median = statistics.median(seconds[name])
        cells = [name, f'{median:.3f}', f'{min(seconds[name]):.3f}']
        added = '-'
        if other is not None:
            pairs = zip(seconds[name], seconds[other], strict=True)
            added = f'{statistics.median(a - b for a, b in pairs):.3f}'
        report.add(*cells, other or '-', added)
    report.show()
    if args.markdown:
        args.markdown.write_text(report.markdown())


if __name__ == '__main__':
    main()
