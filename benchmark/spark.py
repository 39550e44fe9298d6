"""How does sampling on Spark grow with the graph, and what does it shuffle?

Spark runs in this process. Graphs are configuration models of 1x, 4x and 16x
edges; the exponent of a power law through the times says how near to linear
an operator is. Peers are measured on the same graphs when they can be
imported. Times are those of one run, after one that warms Spark up: of the
clock, and of all processors, which a busy machine changes less.
"""

import argparse
import contextlib
import json
import math
import os
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from harness import Report, machine
from pyarrow import parquet
from torch_geometric.data import Data

from torch_gsample import graph_sampling
from torch_gsample import spark as on_spark
from torch_gsample.datasets import power_law
from torch_gsample.storage import ChunkedGraph

#: Arguments beside the graph and the share that is kept.
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

#: What `neighbor_sample` does for two hops in a graph without hubs.
STEPS = (
    'degrees, seeds counted',
    'rows of nodes',
    'seeds to batches',
    'hop 1, edges to batches',
    'hop 1, unseen nodes',
    'hop 2, edges to batches',
    'hop 2, unseen nodes',
    'writing',
)


def make_graph(num_edges: int) -> Data:
    """A graph of mean degree 16 and greatest degree 10,000."""
    graph = power_law(num_edges // 16, num_edges, 10_000)
    edge_index = torch.stack([graph.indices, graph.col()]).long()
    return Data(edge_index=edge_index, num_nodes=num_edges // 16)


def frames(spark: Any, data: Data, folder: Path) -> tuple[Any, Any]:
    """Stores a graph, so that Spark reads it as it would on a cluster."""
    src, dst = data.edge_index.numpy()
    tables = {
        'vertices': {'id': torch.arange(data.num_nodes).numpy()},
        'edges': {'src': src, 'dst': dst, 'id': np.arange(len(src))},
    }
    out = []
    for name, columns in tables.items():
        path = folder / f'{name}-{len(src)}.parquet'
        if not path.exists():
            parquet.write_table(
                pa.table(columns), path, row_group_size=1 << 20
            )
        out.append(spark.read.parquet(str(path)))
    return out[0], out[1]


def seconds(call: Callable[[], object]) -> tuple[float, float]:
    """Times one call: by the clock, and of processors."""
    *_, processors, clock = measured(call)
    return clock, processors


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


def pair(values: Sequence[float]) -> str:
    return ' / '.join(f'{value:.2f}' for value in values)


def exponent(sizes: list[int], times: Sequence[float]) -> float:
    """The slope of a line through the logarithms."""
    x = torch.tensor([math.log(n) for n in sizes])
    y = torch.tensor([math.log(t) for t in times])
    x, y = x - x.mean(), y - y.mean()
    return float((x * y).sum() / (x * x).sum())


def peer(name: str, data: Data, share: float) -> Callable[[], object] | None:
    """The sampler of littleballoffur that does the same, if it is there."""
    try:
        import littleballoffur
        import networkx
    except ImportError:
        return None
    kinds = {
        'random_vertex': littleballoffur.RandomNodeSampler,
        'random_edge': littleballoffur.RandomEdgeSampler,
        'random_vertex_neighborhood': (
            littleballoffur.RandomNodeNeighborSampler
        ),
        'random_walk': littleballoffur.RandomWalkWithJumpSampler,
    }
    if name not in kinds:
        return None
    graph = networkx.Graph(data.edge_index.T.tolist())
    edges = name == 'random_edge'
    size = graph.number_of_edges() if edges else graph.number_of_nodes()
    # The edges are counted, as those on Spark: a subgraph of NetworkX is lazy.
    return lambda: kinds[name](int(share * size)).sample(graph).size()


def grow(
    spark: Any, sizes: list[int], folder: Path, operators: list[str]
) -> Report:
    """Times each operator on graphs of several sizes."""
    report = Report(
        'Run time by number of edges, in seconds by the clock / of processors',
        [
            'operator',
            *(f'{n / 1e6:g} M' for n in sizes),
            'exponents',
            'on tensors, greatest',
            'littleballoffur, least',
            'on tensors, least',
        ],
    )
    graphs = {n: make_graph(n) for n in sizes}
    stored = {n: frames(spark, graphs[n], folder) for n in sizes}
    for name in operators:
        share = SHARE.get(name, 0.1)

        def on_cluster(n: int, name: str = name, share: float = share) -> None:
            sample = getattr(on_spark, name)(
                *stored[n], share, seed=12, **OPERATORS[name]
            )
            sample.vertices.count(), sample.edges.count()

        def local(n: int, name: str = name, share: float = share) -> None:
            getattr(graph_sampling, name)(
                graphs[n], share, seed=12, **OPERATORS[name]
            )

        on_cluster(sizes[0])
        times = [seconds(lambda n=n: on_cluster(n)) for n in sizes]
        other = peer(name, graphs[sizes[0]], share)
        exponents = [
            exponent(sizes, column) for column in zip(*times, strict=True)
        ]
        others = [
            seconds(lambda: local(sizes[-1])),
            seconds(other) if other else None,
            seconds(lambda: local(sizes[0])),
        ]
        cells = [*times, exponents, *others]
        report.add(name, *(pair(cell) if cell else '-' for cell in cells))
    return report


def shuffle(spark: Any, num_edges: int, graphs: Path, out: Path) -> Report:
    """What `neighbor_sample` shuffles, stage by stage."""
    report = Report(
        f'Shuffled bytes of neighbor_sample, {num_edges / 1e6:g} M edges',
        ['part', 'written', 'a sampled edge', 'seconds'],
    )
    _, edges = frames(spark, make_graph(num_edges), graphs)
    ids = torch.randperm(num_edges // 16)[:20_480]
    seeds = spark.createDataFrame(
        pa.table({'position': range(len(ids)), 'id': ids.numpy()})
    )
    marks = [(shuffled(spark), time.perf_counter())]
    sample = on_spark.neighbor_sample(
        edges, seeds, [10, 5], batch_size=1024, seed=12
    )
    marks.append((shuffled(spark), time.perf_counter()))
    # Each is kept when it is computed, and needs those before it.
    _, *kept = sample._persisted
    assert len(kept) == len(STEPS) - 2  # no hubs
    for frame in kept:
        frame.count()
        marks.append((shuffled(spark), time.perf_counter()))
    sample.write(str(out / 'batches'))
    marks.append((shuffled(spark), time.perf_counter()))
    sampled = sample.edges.count()
    sample.close()
    for name, before, after in zip(STEPS, marks[:-1], marks[1:], strict=True):
        size, took = after[0] - before[0], after[1] - before[1]
        report.add(name, f'{size / 1e6:.1f} MB', size / sampled, took)
    size, took = marks[-1][0] - marks[0][0], marks[-1][1] - marks[0][1]
    report.add('all', f'{size / 1e6:.1f} MB', size / sampled, took)
    report.add('sampled edges', f'{sampled:,}', '', '')
    return report


def cost(spark: Any, num_edges: int, graphs: Path, out: Path) -> Report:
    """What the batches of an epoch cost, and where it goes."""
    report = Report(
        f'Seconds of processors for 8 batches, {num_edges / 1e6:g} M edges',
        ['edges', 'what', 'driver', 'JVM', 'Python workers', 'all', 'clock'],
    )
    data = make_graph(num_edges)
    _, bare = frames(spark, data, graphs)
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


def shuffled(spark: Any) -> int:
    """Bytes that all stages so far wrote for others, as Spark counts."""
    context = spark.sparkContext
    url = f'{context.uiWebUrl}/api/v1/applications/{context.applicationId}'
    time.sleep(1)  # what it counts comes late
    with urllib.request.urlopen(f'{url}/stages?status=complete') as answer:
        return sum(s['shuffleWriteBytes'] for s in json.load(answer))


def main() -> None:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add('--edges', type=int, default=1_250_000, help='of the least graph')
    add('--memory', default='6g')
    add('--folder', help='for the graphs, to use them again')
    parts = [*OPERATORS, 'neighbor_sample', 'cost']
    add('--only', nargs='*', default=parts, choices=parts)
    add('--markdown', type=Path)
    args = parser.parse_args()
    spark = on_spark.local_session(
        spark_driver_memory=args.memory,
        spark_ui_enabled='true',
        spark_sql_shuffle_partitions='16',
        spark_ui_showConsoleProgress='false',
    )
    spark.sparkContext.setLogLevel('ERROR')
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        sizes = [args.edges * factor for factor in (1, 4, 16)]
        kept = Path(args.folder or folder)
        operators = [name for name in args.only if name in OPERATORS]
        reports = [grow(spark, sizes, kept, operators)] if operators else []
        if 'neighbor_sample' in args.only:
            reports.append(shuffle(spark, sizes[1], kept, Path(folder)))
        if 'cost' in args.only:
            number = 2 * args.edges
            reports.append(cost(spark, number, kept, Path(folder)))
    for report in reports:
        report.show()
    if args.markdown:
        text = '\n'.join(report.markdown() for report in reports)
        args.markdown.write_text(f'{machine()}\n\n{text}')


if __name__ == '__main__':
    main()
