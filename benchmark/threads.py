"""Gain of a second thread, and its cost on a busy machine.

Calls of sampling, gathering and a fused layer on one thread and on several, in
turns of a tenth of a second, next to processes that only keep a processor
busy. A call on several threads should never take much longer than on one: it
must not wait for threads that are not scheduled.

    python benchmark/threads.py --busy 0,1 --seconds 5
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from harness import Report, machine, seed_batches
from neighbor import FANOUTS, load_graph

from torch_gsample import CSC, Graph, ops
from torch_gsample.rng import make_key
from torch_gsample.vertex import nn

TURN = 0.1  # seconds of calls before the other number of threads is measured


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keeps processors busy during a block."""
    others = [
        subprocess.Popen([sys.executable, '-c', 'while True: pass'])
        for _ in range(count)
    ]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def calls(name: str) -> dict[str, Callable[[int], object]]:
    """Returns the measured calls, as functions of the call's number."""
    csc = load_graph(name)
    graph = Graph.from_csc(CSC(csc.indptr, csc.indices, csc.num_rows))
    found: dict[str, Callable[[int], object]] = {}
    for size in (1, 64, 1024):
        batches = seed_batches(csc.num_cols, size, 32)
        found[f'sample {size} seeds'] = lambda i, batches=batches: (
            ops.sample_neighbors(
                graph, batches[i % 32], FANOUTS, make_key(0, 0, i)
            )
        )
    x = torch.rand(csc.num_cols, 100)
    for count in (1_000, 100_000):
        index = torch.randint(csc.num_cols, (count,))
        found[f'gather {count:,} rows'] = lambda _, index=index: (
            ops.gather_rows(x, index)
        )
    layer = nn.SAGEConv(100, 16, project=False)
    edges = torch.stack([csc.indices, csc.col()])[:, :1_000_000].long()

    @torch.no_grad()
    def fused(_: int) -> object:
        return layer(x, edges)

    found['SAGEConv, 1 M edges'] = fused
    return found


def measure(
    call: Callable[[int], object], threads: list[int], seconds: float
) -> dict[int, list[float]]:
    """Returns the seconds of each call, for each number of threads."""
    times: dict[int, list[float]] = {count: [] for count in threads}
    for count in threads:
        torch.set_num_threads(count)
        call(0)
    end = time.perf_counter() + seconds * len(threads)
    turn = 0
    while time.perf_counter() < end or turn < 2 * len(threads):
        count = threads[turn % len(threads)]
        torch.set_num_threads(count)
        begin = now = time.perf_counter()
        while now < begin + TURN:
            call(len(times[count]))
            done = time.perf_counter()
            times[count].append(done - now)
            now = done
        turn += 1
    return times


def p99(seconds: list[float]) -> float:
    """The 99th percentile; of few calls, the maximum."""
    return sorted(seconds)[min(len(seconds) - 1, len(seconds) * 99 // 100)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--graph', default='small')
    parser.add_argument('--busy', default='0,1,2,4')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--seconds', type=float, default=4.0)
    parser.add_argument('--only', help='a part of the name of what to measure')
    parser.add_argument('--markdown', type=Path, help='write the table there')
    args = parser.parse_args()
    report = Report(
        f'{args.threads} threads next to busy processes: {machine()}',
        ['call', 'busy', 'calls', 'one thread ms', 'median, of one thread']
        + ['p99, of one thread'],
    )
    for name, call in calls(args.graph).items():
        if args.only and args.only not in name:
            continue
        for busy in map(int, args.busy.split(',')):
            with busy_processes(busy):
                times = measure(call, [1, args.threads], args.seconds)
            one, several = times[1], times[args.threads]
            median = statistics.median(one)
            report.add(
                name,
                busy,
                len(several),
                f'{median * 1e3:.3f}',
                f'{statistics.median(several) / median:.2f}x',
                f'{p99(several) / p99(one):.2f}x',
            )
    report.show()
    if args.markdown:
        args.markdown.write_text(report.markdown())


if __name__ == '__main__':
    main()
