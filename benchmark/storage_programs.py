"""Cost of sampling programs on a graph on disk.

Batches of each program are sampled twice: in a process of limited memory
(RLIMIT_DATA) that reads the graph past the page cache (O_DIRECT), and in one
with the graph in memory. Samples are compared bit by bit. 'reading' is the
time that the first process spent in reads.

A second table has whole batches of loaders (--rounds 0 leaves it out): made by
one thread, by two threads of a process and by two workers, whose reads and
draws overlap. There,
'reading' is the time of the same reads alone, in turns with the loaders.

    python benchmark/storage_programs.py --graph /data/big.gsg \
        --nodes 20000000 --edges 500000000 --memory 1GiB --cache 256MiB
"""

import argparse
import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from harness import Report, machine
from storage import generate, read_all, sequential_seconds

from torch_gsample import CSC, SparseSample, algorithms
from torch_gsample.cli.arguments import parse_bytes
from torch_gsample.loader import NeighborLoader
from torch_gsample.rng import make_key, program_scope
from torch_gsample.samplers import FastGCNSampler, LaborSampler, LadiesSampler
from torch_gsample.sparse_sample import NodeProbs
from torch_gsample.storage import ChunkedGraph, DiskFeatureStore
from torch_gsample.storage.reading import File, page_aligned


@lru_cache(maxsize=1)
def probs(A: SparseSample) -> NodeProbs:
    """The probabilities of FastGCN, which its sampler prepares once, too."""
    return NodeProbs((A**2).sum(dim=1))


#: The last two walk along edges, for which rows are written.
PROGRAMS: dict[str, Callable[[Any, torch.Tensor], Any]] = {
    'GraphSAGE': lambda A, s: algorithms.graphsage(A, s, [10, 10]),
    'LADIES': lambda A, s: algorithms.ladies(A, s, [512, 512]),
    'FastGCN': lambda A, s: algorithms.fastgcn(A, s, [2048, 2048], probs(A)),
    'LABOR': lambda A, s: algorithms.labor(A, s, [10, 10]),
    'ShaDow': lambda A, s: algorithms.shadow(A, s[:128], [10, 5]),
    'DeepWalk': lambda A, s: algorithms.deepwalk(A, s, 10),
    'GraphSAINT': lambda A, s: algorithms.saint_walk(A, s, 4),
}


#: Samplers of loaders, with the fan-outs of the programs.
SAMPLERS: dict[str, Callable[[ChunkedGraph], Any]] = {
    'LADIES': lambda graph: LadiesSampler(graph, [512, 512], seed=0),
    'FastGCN': lambda graph: FastGCNSampler(graph, [2048, 2048], seed=0),
    'LABOR': lambda graph: LaborSampler(graph, [10, 10], seed=0),
}


def digest(value: Any) -> str:
    """Returns a hash of all tensors of a sample."""
    out = hashlib.sha256()

    def add(item: Any) -> None:
        if isinstance(item, SparseSample):
            ends = item.edges()
            add([*ends, item.edge_id, item.values()])
        elif isinstance(item, torch.Tensor):
            out.update(item.contiguous().view(torch.uint8).numpy().data)
        elif item is not None:
            for part in item:
                add(part)

    add(value)
    return out.hexdigest()


def sample(
    A: SparseSample, name: str, args: argparse.Namespace, reading: list[float]
) -> dict[str, Any]:
    """Samples some batches of a program."""
    generator = torch.Generator().manual_seed(0)
    order = torch.randperm(A.num_cols, generator=generator)
    batches = order[: args.batches * args.batch_size].split(args.batch_size)
    found, program = [], PROGRAMS[name]
    with program_scope(make_key(0)):
        begin = time.perf_counter()
        program(A, batches[0][:1])  # what is computed once for the graph
        once = time.perf_counter() - begin
        reading[0] = 0.0
        begin = time.perf_counter()
        for i, seeds in enumerate(batches):
            with program_scope(make_key(0, 0, i)):
                found.append(program(A, seeds.sort().values))
    seconds = time.perf_counter() - begin
    return {
        'seconds': seconds / len(batches),
        'reading': reading[0] / len(batches),
        'once': once,
        'digests': list(map(digest, found)),
    }


def run_child(args: argparse.Namespace) -> dict[str, Any]:
    """Measures in a process of one kind."""
    reading = [0.0]
    if args.child == 'memory':
        graph = ChunkedGraph(args.graph)
        indptr, indices = read_all(graph)
        A = SparseSample(
            CSC(indptr, indices, indptr.numel() - 1),
            None,
            (
                indptr.numel() - 1,
                indptr.numel() - 1,
            ),
        )
        _ = A.csr
    else:
        resource.setrlimit(resource.RLIMIT_DATA, (args.memory, args.memory))
        _time_reads(reading)
        graph = ChunkedGraph(args.graph, direct=True)
        begin = time.perf_counter()
        A = graph.matrix(cache_bytes=args.cache)
        opened = time.perf_counter() - begin
    out = {name: sample(A, name, args, reading) for name in args.programs}
    if args.child != 'memory':
        out['opened'] = opened
        out['sequential'] = sequential_seconds(graph, 1)
    return out


def run_loaders(args: argparse.Namespace) -> dict[str, Any]:
    """Measures loaders in a process of limited memory."""
    resource.setrlimit(resource.RLIMIT_DATA, (args.memory, args.memory))
    torch.set_num_threads(1)  # as in workers
    reads = _record_reads()
    out = {}
    for name in args.programs:
        if name in SAMPLERS:
            out[name] = _run_loader(args, name, reads)
    return out


def _run_loader(
    args: argparse.Namespace, name: str, reads: list[Any]
) -> dict[str, Any]:
    """Measures loaders with one sampler, and the reads of its batches."""
    graph = ChunkedGraph(args.graph, direct=True)
    graph.cache_bytes = args.cache
    size = graph.num_nodes[None]
    order = torch.randperm(size, generator=torch.Generator().manual_seed(0))
    data = DiskFeatureStore({'y': torch.zeros(size)}), graph
    one, ahead, two = (
        NeighborLoader(
            data,
            sampler=SAMPLERS[name](graph),
            input_nodes=order[: args.batches * args.batch_size],
            batch_size=args.batch_size,
            prefetch=prefetch,
            num_workers=workers,
            persistent_workers=workers > 0,
        )
        for prefetch, workers in ((0, 0), (2, 0), (0, 2))
    )

    def epoch(loader: NeighborLoader) -> list[torch.Tensor]:
        loader.set_epoch(0)
        return [batch.n_id for batch in loader]

    epoch(one)  # with what is computed once for the graph
    reads.clear()
    want = epoch(one)
    kept = [*reads]
    for loader in (ahead, two):
        assert all(map(torch.equal, epoch(loader), want)), f'{name} differs'
    buffer = page_aligned(max(int(sizes.sum()) for _, _, sizes in kept))

    def replay() -> None:
        for file, offset, sizes in kept:
            file.read_ranges(offset, sizes, buffer)

    calls = {
        'one': lambda: epoch(one),
        'ahead': lambda: epoch(ahead),
        'two': lambda: epoch(two),
    }
    calls['reading'] = replay
    seconds: dict[str, list[float]] = {key: [] for key in [*calls, 'cpu']}
    for _ in range(args.rounds):
        for key, call in calls.items():
            begin, cpu = time.perf_counter(), time.process_time()
            call()
            seconds[key].append(time.perf_counter() - begin)
            if key == 'one':
                seconds['cpu'].append(time.process_time() - cpu)
    return {
        key: statistics.median(found) / args.batches
        for key, found in seconds.items()
    }


def _record_reads() -> list[Any]:
    """Returns a list that gets the ranges of each read of a file."""
    read, out = File.read_ranges, list[Any]()

    def recorded(
        self: File, offset: Any, size: Any, *args: Any, **kwargs: Any
    ) -> Any:
        out.append((self, offset.copy(), size.copy()))
        return read(self, offset, size, *args, **kwargs)

    File.read_ranges = recorded  # type: ignore[method-assign]
    return out


def _time_reads(reading: list[float]) -> None:
    """Adds up the time of file reads."""
    read = File.read_ranges

    def timed(self: File, *args: Any, **kwargs: Any) -> Any:
        begin = time.perf_counter()
        try:
            return read(self, *args, **kwargs)
        finally:
            reading[0] += time.perf_counter() - begin

    File.read_ranges = timed  # type: ignore[method-assign]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add('--graph', type=Path, help='made if it does not exist')
    add('--nodes', type=int, default=200_000)
    add('--edges', type=int, default=5_000_000)
    add('--chunk', type=parse_bytes, default='64MiB')
    add('--memory', type=parse_bytes, default='1GiB')
    add('--cache', type=parse_bytes, default='8MiB')
    add('--batches', type=int, default=8)
    add('--batch-size', type=int, default=512)
    add('--programs', nargs='*', default=list(PROGRAMS), choices=PROGRAMS)
    add('--rounds', type=int, default=5, help='turns of loaders')
    kinds = 'disk', 'memory', 'loaders'
    add('--child', choices=kinds, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        run = run_loaders if args.child == 'loaders' else run_child
        print(json.dumps(run(args)))
        return
    folder = tempfile.TemporaryDirectory()
    args.graph = args.graph or Path(folder.name) / 'graph'
    if not args.graph.exists():
        generate(args.graph, args.nodes, args.edges, args.chunk)
    ChunkedGraph(args.graph).write_rows(chunk_bytes=args.chunk)
    found = {kind: _measure(args, kind) for kind in ('disk', 'memory')}
    report = Report(
        f'{ChunkedGraph(args.graph)}; {machine()}; memory '
        f'{args.memory >> 20} MiB, cache {args.cache >> 20} MiB; milliseconds '
        'a batch',
        ['program', 'disk', 'reading', 'disk / reading', 'memory', 'once, s'],
    )
    for name in args.programs:
        disk, memory = (found[kind][name] for kind in ('disk', 'memory'))
        assert disk['digests'] == memory['digests'], f'{name} differs'
        report.add(
            name,
            1e3 * disk['seconds'],
            1e3 * disk['reading'],
            disk['seconds'] / max(disk['reading'], 1e-9),
            1e3 * memory['seconds'],
            disk['once'],
        )
    opened, once = found['disk']['opened'], found['disk']['sequential']
    report.add('opened', 1e3 * opened, 1e3 * once, opened / once, 0.0, 0.0)
    report.show()
    if args.rounds:
        _show_loaders(_measure(args, 'loaders'))


def _show_loaders(found: dict[str, dict[str, float]]) -> None:
    report = Report(
        f'Batches of loaders; load {os.getloadavg()[0]:.1f}; milliseconds a '
        'batch',
        ['sampler', 'one thread', 'its processor', 'two threads',
         'two workers', 'reading', 'one / reading', 'threads / reading',
         'workers / reading'],
    )  # fmt: skip
    for name, of in found.items():
        one, cpu, ahead, two, reading = (
            1e3 * of[key] for key in ('one', 'cpu', 'ahead', 'two', 'reading')
        )
        ratios = (value / reading for value in (one, ahead, two))
        report.add(name, one, cpu, ahead, two, reading, *ratios)
    report.show()


def _measure(args: argparse.Namespace, kind: str) -> dict[str, Any]:
    command = [sys.executable, __file__, '--child', kind]
    for name in (
        'graph', 'memory', 'cache', 'batches', 'batch_size', 'rounds'
    ):  # fmt: skip
        command += [f'--{name.replace("_", "-")}', str(getattr(args, name))]
    command += ['--programs', *args.programs]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


if __name__ == '__main__':
    main()
