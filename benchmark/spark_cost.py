"""Processor time of batches on Spark, by process and thread.

    python benchmark/spark_cost.py --markdown cost.md

Eight batches of an epoch, of plain, weighted and timed edges: sampled from
DataFrames and from a graph that was prepared once. The first runs also
compile the JVM's code.
"""

import argparse
import contextlib
import functools
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from harness import Report, machine
from spark import frames

from torch_gsample import spark as on_spark
from torch_gsample.storage import ChunkedGraph

#: JVM threads by the prefix of their names, as Linux truncates them.
THREADS = {
    'JVM: compilers': ('C1 ', 'C2 '),
    'JVM: garbage': ('GC ', 'G1 '),
    'JVM: tasks': ('Executor task', 'stdout writer'),
}
KINDS = ('driver', *THREADS, 'JVM: rest', 'workers')


def _stat(path: Path) -> tuple[str, list[str]]:
    """The name of a process or thread, and the following fields."""
    name, _, rest = path.read_text().rpartition(')')
    return name.partition('(')[2], rest.split()


def processor_seconds() -> dict[str, float]:
    """Processor time of this process, the JVM and Python workers."""
    parents, ticks, names = {}, {}, {}
    for path in Path('/proc').glob('[0-9]*/stat'):
        with contextlib.suppress(OSError):
            # After the name: state, parent, ..., user and system time, and
            # those of children that ended.
            process = int(path.parent.name)
            names[process], fields = _stat(path)
            parents[process] = int(fields[1])
            ticks[process] = sum(map(int, fields[11:15]))
    own = {os.getpid()}
    while more := {p for p in parents if parents[p] in own} - own:
        own |= more
    out = dict.fromkeys(KINDS, 0.0)
    for process in own & {*ticks}:
        if names[process] != 'java':
            kind = 'driver' if process == os.getpid() else 'workers'
            out[kind] += ticks[process]
            continue
        out['JVM: rest'] += ticks[process]
        for kind, count in _threads(process).items():
            out[kind] += count
            out['JVM: rest'] -= count
    return {k: v / os.sysconf('SC_CLK_TCK') for k, v in out.items()}


def _threads(process: int) -> dict[str, int]:
    """Ticks of threads of a JVM."""
    out = dict.fromkeys(THREADS, 0)
    for path in Path(f'/proc/{process}/task').glob('*/stat'):
        with contextlib.suppress(OSError):
            name, fields = _stat(path)
            for kind, begins in THREADS.items():
                if name.startswith(begins):
                    out[kind] += sum(map(int, fields[11:13]))
    return out


def cost(
    spark: Any,
    num_edges: int,
    graphs: Path,
    out: Path,
    report: Report,
    kinds: list[str],
    runs: int,
) -> None:
    """Processor time of the batches of an epoch, by process and thread."""
    _, bare = frames(spark, num_edges, graphs)
    edges = bare.selectExpr('*', 'double(1 + id % 7) weight', 'id % 1000 time')
    ids = torch.randperm(num_edges // 16)[:8192]
    seeds = spark.createDataFrame(
        pa.table(
            {
                'position': range(len(ids)),
                'id': ids.numpy(),
                'time': np.full(len(ids), 500),
            }
        )
    )
    for kind in kinds:
        flags = {} if kind == 'plain' else {kind: True}
        stored = out / kind

        def prepare(flags: Any = flags, stored: Path = stored) -> Any:
            return on_spark.prepare_adjacency(edges, stored, **flags)

        report.add(kind, 'prepare_adjacency', *measured(prepare))
        ways: dict[str, Any] = {
            'prepared': (lambda stored=stored: ChunkedGraph(stored), {}),
            'DataFrame': (lambda: edges, {}),
            'DataFrame, joined': (lambda: edges, {'split': 'nodes'}),
        }
        for way, (opened, split) in ways.items():

            def batches(
                number: int,
                opened: Any = opened,
                flags: Any = flags | split,
            ) -> None:
                sample = on_spark.neighbor_sample(
                    opened(),
                    seeds if 'timed' in flags else seeds.drop('time'),
                    [10, 5],
                    batch_size=1024,
                    seed=12,
                    epoch=number,
                    **flags,
                )
                path = str(out / 'batches')
                sample.write(path, mode='overwrite')
                sample.close()

            for number in range(runs):
                spent = measured(functools.partial(batches, number))
                report.add(kind, f'{way}, run {number + 1}', *spent)


def start(memory: str, report: Report) -> Any:
    """Starts Spark, and Python workers."""
    found: list[Any] = []

    def begin() -> None:
        spark = on_spark.local_session(
            spark_driver_memory=memory,
            spark_sql_shuffle_partitions='16',
            spark_ui_showConsoleProgress='false',
        )
        spark.sparkContext.setLogLevel('ERROR')
        found.append(spark)

    def work() -> None:
        vertices = found[0].range(64).withColumnRenamed('id', 'src')
        vertices = vertices.withColumn('dst', vertices.src)
        on_spark.random_edge(
            vertices.selectExpr('src as id'), vertices, 0.5, seed=1
        ).edges.count()

    report.add('-', 'start of the JVM', *measured(begin))
    report.add('-', 'start of Python workers', *measured(work))
    return found[0]


def measured(call: Callable[[], object]) -> list[float]:
    """Returns processor seconds by kind, their sum, and elapsed seconds."""
    begin, before = time.perf_counter(), processor_seconds()
    call()
    after = processor_seconds()
    spent = [after[kind] - before[kind] for kind in after]
    return [*spent, sum(spent), time.perf_counter() - begin]


def main() -> None:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add('--edges', type=float, default=2.5, help='millions')
    add('--memory', default='6g', help='of the JVM')
    add('--folder', help='for the graphs, to use them again')
    kinds = ['plain', 'weighted', 'timed']
    add('--kinds', nargs='*', default=kinds, choices=kinds)
    add('--runs', type=int, default=2, help='epochs; the first compiles code')
    add('--markdown', type=Path)
    args = parser.parse_args()
    size = int(args.edges * 1e6)
    report = Report(
        f'Seconds of processors for 8 batches, {size / 1e6:g} M edges',
        ['edges', 'what', *KINDS, 'all', 'clock'],
    )
    print(machine())
    spark = start(args.memory, report)
    with tempfile.TemporaryDirectory() as folder:
        graphs = Path(args.folder or folder)
        out = Path(folder)
        cost(spark, size, graphs, out, report, args.kinds, args.runs)
    report.show()
    if args.markdown:
        args.markdown.write_text(f'{report.markdown()}\n')


if __name__ == '__main__':
    main()
