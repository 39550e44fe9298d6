"""Times of the whole-graph operators, compared with other samplers.

    python benchmark/spark_peers.py --edges 1

On Spark with graph-distributed-sampling, a package for GraphFrames, and on
tensors with littleballoffur, if they are installed. Times are elapsed and
processor time of one run after a warm-up run.
"""

import argparse
import functools
import importlib
import sys
import tempfile
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness import Report, machine
from spark import OPERATORS, SHARE, frames, make_graph, seconds
from torch_geometric.data import Data

from torch_gsample import graph_sampling
from torch_gsample import spark as on_spark


def pair(values: Sequence[float]) -> str:
    return ' / '.join(f'{value:.2f}' for value in values)


def peer(name: str, data: Data, share: float) -> Callable[[], object] | None:
    """The equivalent sampler of littleballoffur, if any."""
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
    graph = networkx.Graph(data.edge_index.T.tolist())
    edges = name == 'random_edge'
    size = graph.number_of_edges() if edges else graph.number_of_nodes()
    # The edges are counted, as those on Spark: a subgraph of NetworkX is lazy.
    return lambda: kinds[name](int(share * size)).sample(graph).size()


def on_tensors(names: list[str], num_edges: int) -> Report:
    """Measures operators on tensors, and those of littleballoffur."""
    report = Report(
        f'With littleballoffur, {num_edges / 1e6:g} M edges: seconds by the '
        'clock / of processors',
        ['operator', 'on tensors', 'littleballoffur'],
    )
    data = make_graph(num_edges)
    for name in names:
        share = SHARE.get(name, 0.1)
        local = functools.partial(
            getattr(graph_sampling, name),
            *(data, share),
            seed=12,
            **OPERATORS[name],
        )
        other = peer(name, data, share)
        cells = [seconds(local), seconds(other) if other else None]
        report.add(name, *(pair(cell) if cell else '-' for cell in cells))
    return report


class Frames(NamedTuple):
    """The input and output tables of the peer on Spark.

    Its ``GraphFrame`` is this pair and a JAR that Python's package index does
    not have.
    """

    vertices: Any
    edges: Any


def on_frames(
    spark: Any, names: list[str], num_edges: int, folder: Path
) -> Report:
    """Measures operators, and graph-distributed-sampling, both on Spark.

    A walk of ours visits as many vertices as the peer's; the peer follows the
    first edge that it finds.
    """
    report = Report(
        f'With graph-distributed-sampling on Spark, {num_edges / 1e6:g} M '
        'edges: seconds by the clock / of processors',
        [
            'operator',
            'ours',
            'theirs',
            'ours by theirs, processors',
            'vertices',
        ],
    )
    graphframes: Any = types.ModuleType('graphframes')
    graphframes.GraphFrame = Frames
    sys.modules['graphframes'] = graphframes
    try:
        samplers = importlib.import_module('distributed_sampling.samplers')
    except ImportError:
        return report
    vertices, edges = frames(spark, num_edges, folder)
    for name, module, kind, options in (
        ('random_vertex', 'random_node', 'RandomNodeSampler', {}),
        ('random_edge', 'random_edge', 'RandomEdgeSampler', {}),
        (
            'random_walk',
            'random_walk',
            'RandomWalkSampler',
            {'walk_length': 4, 'num_walks': 10_000},
        ),
    ):
        if name not in names:
            continue
        importlib.import_module(f'{samplers.__name__}.{module}')
        options = options or {'fraction': 0.1}
        theirs = getattr(getattr(samplers, module), kind)(**options, seed=12)
        kept = [0]

        def peer(theirs: Any = theirs, kept: list[int] = kept) -> None:
            sample = theirs.sample(Frames(vertices, edges))
            kept[0] = sample.vertices.count()
            sample.edges.count()

        def own(name: str = name, kept: list[int] = kept) -> None:
            share = 0.1 if name != 'random_walk' else kept[0] * 16 / num_edges
            sample = getattr(on_spark, name)(
                vertices, edges, share, seed=12, **OPERATORS[name]
            )
            sample.vertices.count(), sample.edges.count()

        try:
            peer(), own()  # warms up
        except Exception as error:  # theirs does not run on every Spark
            report.add(name, '-', str(error).split('\n')[0][:60], '-', '-')
            continue
        other, ours = seconds(peer), seconds(own)
        ratio = f'{ours[1] / other[1]:.2f}'
        report.add(name, pair(ours), pair(other), ratio, f'{kept[0]:,}')
    return report


def main() -> None:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add('--edges', type=float, default=1, help='millions')
    add('--memory', default='2g', help='of the JVM')
    add('--partitions', default='16', help='of a shuffle')
    add('--folder', help='for the graphs, to use them again')
    add('--only', nargs='*', default=[*OPERATORS], choices=[*OPERATORS])
    add('--markdown', type=Path)
    args = parser.parse_args()
    size = int(args.edges * 1e6)
    print(machine())
    spark = on_spark.local_session(
        spark_driver_memory=args.memory,
        spark_sql_shuffle_partitions=args.partitions,
        spark_ui_showConsoleProgress='false',
    )
    spark.sparkContext.setLogLevel('ERROR')
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(args.folder or folder)
        reports = [on_frames(spark, args.only, size, kept)]
    spark.stop()
    reports.append(on_tensors(args.only, size))
    for report in reports:
        report.show()
    if args.markdown:
        text = '\n'.join(report.markdown() for report in reports)
        args.markdown.write_text(f'{machine()}\n\n{text}')


if __name__ == '__main__':
    main()
