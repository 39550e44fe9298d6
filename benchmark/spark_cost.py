"""What do batches on Spark cost of processors, and where?

    python benchmark/spark_cost.py --markdown cost.md

Eight batches of an epoch, of plain, weighted and timed edges: sampled from
DataFrames and from a graph that was prepared once. Times are those of one
run, after one that starts workers and compiles code.
"""

import argparse
import contextlib
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


def processor_seconds() -> dict[str, float]:
    """What this process, the JVM and Python workers took of processors."""
    parents, ticks, names = {}, {}, {}
    for path in Path('/proc').glob('[0-9]*/stat'):
        with contextlib.suppress(OSError):
            # After the name: state, parent, ..., user and system time, and
            # those of children that ended.
            name, _, rest = path.read_text().rpartition(')')
            fields, process = rest.split(), int(path.parent.name)
            names[process] = name.partition('(')[2]
            parents[process] = int(fields[1])
            ticks[process] = sum(map(int, fields[11:15]))
    own = {os.getpid()}
    while more := {p for p in parents if parents[p] in own} - own:
        own |= more
    out = {'driver': 0.0, 'JVM': 0.0, 'workers': 0.0}
    for process in own & {*ticks}:
        kind = 'JVM' if names[process] == 'java' else 'workers'
        kind = 'driver' if process == os.getpid() else kind
        out[kind] += ticks[process] / os.sysconf('SC_CLK_TCK')
    return out


def cost(spark: Any, num_edges: int, graphs: Path, out: Path) -> Report:
    """What the batches of an epoch cost, and where it goes."""
    report = Report(
        f'Seconds of processors for 8 batches, {num_edges / 1e6:g} M edges',
        ['edges', 'what', 'driver', 'JVM', 'Python workers', 'all', 'clock'],
    )
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
    for kind in ('plain', 'weighted', 'timed'):
        flags = {} if kind == 'plain' else {kind: True}
        stored = out / kind

        def prepare(flags: Any = flags, stored: Path = stored) -> Any:
            return on_spark.prepare_adjacency(edges, stored, **flags)

        report.add(kind, 'prepare_adjacency', *measured(prepare))
        ways: dict[str, Any] = {
            'prepared': lambda stored=stored: ChunkedGraph(stored),
            'DataFrame': lambda: edges,
        }
        for way, opened in ways.items():

            def batches(
                number: int, opened: Any = opened, flags: Any = flags
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

            batches(0)  # compiles code, starts workers
            report.add(kind, way, *measured(lambda: batches(1)))
    return report


def measured(call: Callable[[], object]) -> list[float]:
    """Returns seconds of processors of the driver, the JVM, workers, all."""
    start, before = time.perf_counter(), processor_seconds()
    call()
    after = processor_seconds()
    spent = [after[kind] - before[kind] for kind in after]
    return [*spent, sum(spent), time.perf_counter() - start]


def main() -> None:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add('--edges', type=float, default=2.5, help='millions')
    add('--memory', default='6g', help='of the JVM')
    add('--folder', help='for the graphs, to use them again')
    add('--markdown', type=Path)
    args = parser.parse_args()
    spark = on_spark.local_session(
        spark_driver_memory=args.memory,
        spark_sql_shuffle_partitions='16',
        spark_ui_showConsoleProgress='false',
    )
    spark.sparkContext.setLogLevel('ERROR')
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        graphs = Path(args.folder or folder)
        report = cost(spark, int(args.edges * 1e6), graphs, Path(folder))
    report.show()
    if args.markdown:
        args.markdown.write_text(f'{report.markdown()}\n')


if __name__ == '__main__':
    main()
