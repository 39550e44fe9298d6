"""Scaling of sampling on Spark with the graph and with executors.

    python benchmark/spark.py                           # in this process
    python benchmark/spark.py --workers 2 --replay      # a cluster of two

Graphs are configuration models; the exponent of a power law fitted to
processor seconds shows how close an operator is to linear. An epoch is
``neighbor_sample`` of 20 batches, written, from tables of edges or from a
graph that ``prepare_adjacency`` wrote. Times are elapsed and processor time of
one run, after a warm-up run; a busy machine changes processor time less.
"""

import argparse
import contextlib
import functools
import math
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from harness import Report, machine
from pyarrow import parquet
from spark_cluster import HOST, TOP, read_log, replay, standalone
from torch_geometric.data import Data

from torch_gsample import spark as on_spark
from torch_gsample.datasets import power_law
from torch_gsample.storage import ChunkedGraph

#: Arguments besides the graph and the sampled fraction.
OPERATORS: dict[str, dict[str, Any]] = {
    'random_vertex': {},
    'random_edge': {},
    'random_vertex_neighborhood': {  # as the peer does it
        'direction': 'out',
        'keep_edges': 'induced',
    },
    'random_walk': {'walkers': 10_000},
}
SHARE = {'random_vertex_neighborhood': 0.02, 'random_walk': 0.05}
EPOCH = 'neighbor_sample'
#: The same from a graph that was prepared, and its preparation.
PREPARED, PREPARE = 'neighbor_sample, prepared', 'prepare_adjacency'
EXECUTORS = 1, 2, 4, 8, 16, 32, 64, 128, 256


def make_graph(num_edges: int) -> Data:
    """A graph of mean degree 16 and greatest degree 10,000."""
    graph = power_law(num_edges // 16, num_edges, 10_000)
    edge_index = torch.stack([graph.indices, graph.col()]).long()
    return Data(edge_index=edge_index, num_nodes=num_edges // 16)


def tables(num_edges: int, folder: Path) -> list[Path]:
    """Stores a graph, so that Spark reads it as it would on a cluster."""
    names = 'vertices', 'edges'
    paths = [folder / f'{name}-{num_edges}.parquet' for name in names]
    if not all(path.exists() for path in paths):
        data = make_graph(num_edges)
        src, dst = data.edge_index.numpy()
        columns = [
            {'id': np.arange(data.num_nodes)},
            {'src': src, 'dst': dst, 'id': np.arange(len(src))},
        ]
        for path, arrays in zip(paths, columns, strict=True):
            parquet.write_table(pa.table(arrays), path, row_group_size=1 << 16)
    return paths


def frames(spark: Any, num_edges: int, folder: Path) -> tuple[Any, Any]:
    """The DataFrames of a stored graph."""
    paths = tables(num_edges, folder)
    vertices, edges = (spark.read.parquet(str(path)) for path in paths)
    return vertices, edges


def processes() -> set[int]:
    """This process and its descendants."""
    parents = {}
    for path in Path('/proc').glob('[0-9]*/stat'):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(')')[2].split()
            parents[int(path.parent.name)] = int(fields[1])
    own = {os.getpid()}
    while more := {p for p in parents if parents[p] in own} - own:
        own |= more
    return own


def processor_seconds() -> float:
    """Processor seconds of this process and its descendants so far."""
    ticks = 0
    for process in processes():
        with contextlib.suppress(OSError):
            text = Path(f'/proc/{process}/stat').read_text()
            # User and system time, and those of children that ended.
            ticks += sum(map(int, text.rpartition(')')[2].split()[11:15]))
    return ticks / os.sysconf('SC_CLK_TCK')


def memory() -> int:
    """Bytes of their resident memory, shared memory in proportion."""
    total = 0
    for process in processes():
        with contextlib.suppress(OSError):
            text = Path(f'/proc/{process}/smaps_rollup').read_text()
            total += int(text.split('\nPss:')[1].split()[0]) * 1024
    return total


@contextlib.contextmanager
def peak_memory(found: list[int]) -> Iterator[None]:
    """Adds the peak memory of a block, sampled every second."""
    ended = threading.Event()

    def look() -> None:
        most = memory()
        while not ended.wait(1):
            most = max(most, memory())
        found.append(most)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def seconds(call: Callable[[], object]) -> tuple[float, float]:
    """Returns elapsed and processor seconds of one call."""
    start, before = time.perf_counter(), processor_seconds()
    call()
    return time.perf_counter() - start, processor_seconds() - before


def exponent(sizes: Sequence[int], times: Sequence[float]) -> float:
    """The slope of a line through the logarithms."""
    x = torch.tensor([math.log(n) for n in sizes])
    y = torch.tensor([math.log(t) for t in times])
    x, y = x - x.mean(), y - y.mean()
    return float((x * y).sum() / (x * x).sum())


def run(spark: Any, name: str, num_edges: int, folder: Path) -> None:
    """Samples a graph once."""
    vertices, edges = frames(spark, num_edges, folder)
    if name in OPERATORS:
        share = SHARE.get(name, 0.1)
        sample = getattr(on_spark, name)(
            vertices, edges, share, seed=12, **OPERATORS[name]
        )
        sample.vertices.count(), sample.edges.count()
        return
    if name == PREPARE:
        shutil.rmtree(folder / f'graph-{num_edges}', ignore_errors=True)
        prepared(edges, num_edges, folder)
        return
    graph = edges if name == EPOCH else prepared(edges, num_edges, folder)
    ids = torch.randperm(num_edges // 16)[:20_480]
    seeds = spark.createDataFrame(
        pa.table({'position': range(len(ids)), 'id': ids.numpy()})
    )
    batches = on_spark.neighbor_sample(
        graph, seeds, [10, 5], batch_size=1024, seed=12
    )
    with tempfile.TemporaryDirectory(dir=folder) as out:
        batches.write(f'{out}/batches')
    batches.close()


def prepared(edges: Any, num_edges: int, folder: Path) -> ChunkedGraph:
    """The graph on disk, which is written once."""
    path = folder / f'graph-{num_edges}'
    if not path.exists():
        on_spark.prepare_adjacency(edges, path)
    return ChunkedGraph(path)


def grow(
    spark: Any,
    names: list[str],
    sizes: list[int],
    folder: Path,
    log: str,
    metrics: str | None,
) -> list[Report]:
    """Measures operators on graphs of several sizes, and replays them."""
    grown = Report(
        'Growth with the graph',
        [
            *('operator', 'M edges', 'seconds', 'of processors'),
            *('of tasks', 'MB shuffled', 'MB in memory', 'skew'),
        ],
    )
    exponents = Report('Exponents', ['operator', 'of processors', 'shuffled'])
    replayed = Report(
        f'SIMULATED seconds by executors of one core, {sizes[-1] / 1e6:g} M '
        'edges: recorded tasks replayed',
        ['operator', *map(str, EXECUTORS), 'longest tasks', 'skew'],
    )
    for name in names:
        run(spark, name, sizes[0], folder)  # warms up
        taken, moved = [], []
        for size in sizes:
            if name == PREPARED:
                prepared(frames(spark, size, folder)[1], size, folder)
            most: list[int] = []
            start = time.time()
            file = metrics and f'{metrics}/{name}-{size}.json'
            watched = on_spark.watch(spark, name, metrics=file or None)
            with watched as report, peak_memory(most):
                wall, busy = seconds(
                    functools.partial(run, spark, name, size, folder)
                )
            end = time.time()
            taken.append(busy)
            moved.append(report.total('shuffle_bytes_written') / 1e6)
            skew = max(
                s.longest_task_seconds / max(s.median_task_seconds, 1e-3)
                for s in report.stages
            )
            grown.add(
                name,
                f'{size / 1e6:g}',
                f'{wall:.1f}',
                f'{busy:.1f}',
                f'{report.total("task_seconds"):.1f}',
                f'{moved[-1]:.1f}',
                f'{most[0] / 1e6:,.0f}',
                f'{skew:.1f}',
            )
        if len(sizes) > 1:
            shuffled = [max(value, 1e-3) for value in moved]
            cells = [exponent(sizes, column) for column in (taken, shuffled)]
            exponents.add(name, *(f'{cell:.2f}' for cell in cells))
        if log:
            time.sleep(2)  # what is written of the last job
            stages = read_log(log, start, end)
            times = [replay(stages, start, n) for n in EXECUTORS]
            replayed.add(
                name,
                *(f'{t:.1f}' for t in times),
                f'{sum(max(s.tasks) for s in stages):.1f}',
                f'{max(s.skew for s in stages):.1f}',
            )
    out = [grown, exponents] if len(sizes) > 1 else [grown]
    return out + [replayed] if log else out


@contextlib.contextmanager
def session(args: argparse.Namespace, log: str) -> Iterator[Any]:
    """Spark in this process, or on a cluster that it starts."""
    settings = {
        'spark_driver_memory': args.memory,
        'spark_sql_shuffle_partitions': str(args.partitions),
        'spark_ui_showConsoleProgress': 'false',
    }
    if log:
        settings |= {
            'spark_eventLog_enabled': 'true',
            'spark_eventLog_rolling_enabled': 'false',
            'spark_eventLog_compress': 'false',
            'spark_eventLog_dir': f'file://{log}',
            # As many tasks as the most executors have cores.
            'spark_sql_adaptive_enabled': 'false',
            'spark_sql_files_maxPartitionBytes': str(args.split),
        }
    with contextlib.ExitStack() as stack:
        if args.workers:
            settings |= {
                'master': stack.enter_context(
                    standalone(args.workers, args.memory)
                ),
                'spark_driver_host': HOST,
                'spark_driver_bindAddress': HOST,
                'spark_executor_memory': args.memory,
                'spark_executorEnv_PYTHONPATH': str(TOP),
            }
        spark = on_spark.local_session(**settings)
        stack.callback(spark.stop)
        spark.sparkContext.setLogLevel('ERROR')
        yield spark


def main() -> None:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add('--edges', type=float, nargs='+', default=[1, 5, 20], help='millions')
    add('--workers', type=int, default=0, help='of a cluster; 0: none')
    add('--memory', default='2g', help='of the driver and each executor')
    add('--partitions', type=int, default=16, help='of a shuffle')
    add('--split', type=int, default=128 << 20, help='bytes of a file a task')
    add('--replay', action='store_true', help='simulate more executors')
    add('--metrics', help='a folder for what each stage did, as JSON')
    add('--folder', help='for the graphs, to use them again')
    every = [*OPERATORS, PREPARE, PREPARED, EPOCH]
    add('--only', nargs='*', default=every, choices=every)
    add('--markdown', type=Path)
    args = parser.parse_args()
    sizes = [int(millions * 1e6) for millions in args.edges]
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(args.folder or folder)
        log = tempfile.mkdtemp(dir=folder) if args.replay else ''
        for size in sizes:  # before Spark takes memory
            tables(size, kept)
        with session(args, log) as spark:
            reports = grow(spark, args.only, sizes, kept, log, args.metrics)
    for report in reports:
        report.show()
    if args.markdown:
        text = '\n'.join(report.markdown() for report in reports)
        args.markdown.write_text(f'{machine()}\n\n{text}')


if __name__ == '__main__':
    main()
