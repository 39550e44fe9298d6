"""``gsample spark-sample``: samples files on Spark, also by ``spark-submit``.

``spark-submit`` runs a Python file: ``gsample spark-sample --script`` prints
the path of this one.
"""

import argparse
import logging
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

#: Operators that reduce a graph, and their options.
OPERATORS = {
    'random_vertex': ('keep_isolated',),
    'random_edge': (),
    'random_vertex_neighborhood': (
        'direction',
        'keep_edges',
        'keep_isolated',
    ),
    'random_walk': ('walkers', 'jump_probability', 'keep_isolated'),
}
_BATCHES = (
    'seeds',
    'fanouts',
    'batch_size',
    'features',
    'epoch',
    'weighted',
    'timed',
    'replace',
    'disjoint',
)


def spark_sample(args: argparse.Namespace) -> None:
    """Samples vertices and edges in files.

    Args:
        args (argparse.Namespace): The operator, files and options.

    Raises:
        ValueError: If an option is missing or of another operator.
    """
    if args.script:
        print(Path(__file__).resolve())
        return
    options = _options(args)
    for name in ('edges', 'output'):
        if getattr(args, name) is None:
            raise ValueError(f'spark-sample: --{name} is missing')
    if args.operator is None:
        raise ValueError('spark-sample: an operator is missing')
    from torch_gsample.cli import output

    if args.metrics is not None:
        output.check_output(args.metrics, ['.json'])
    with ExitStack() as stack:
        if not args.quiet:
            _log_progress(stack)
        report = _run(args, options, stack)
    rows = [
        ('stages', len(report.stages)),
        ('seconds', round(report.seconds, 1)),
        ('seconds of tasks', round(report.total('task_seconds'), 1)),
        ('bytes shuffled', report.total('shuffle_bytes_written')),
        *((name, count) for name, count in report.counters.items()),
    ]
    if args.json:
        output.print_json({**dict(rows), 'output': args.output})
        return
    cells = [[n, f'{v:,}'] for n, v in rows]
    output.table(['', args.operator], cells, [args.operator])
    print(f'written to {args.output}')


def _log_progress(stack: ExitStack) -> None:
    """Sends progress to standard error until the stack is closed."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter('%(asctime)s %(message)s'))
    log = logging.getLogger('torch_gsample.spark')
    log.addHandler(handler)
    stack.callback(log.removeHandler, handler)
    stack.callback(log.setLevel, log.level)
    log.setLevel(logging.INFO)


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the options of the operator; rejects others."""
    known = set(OPERATORS.get(args.operator, _BATCHES))
    every = {*_BATCHES, *(n for names in OPERATORS.values() for n in names)}
    if args.operator in OPERATORS:
        known.add('fraction')
    every.add('fraction')
    out = {}
    for name in sorted(every):
        value = getattr(args, name)
        if value is None or value is False:
            continue
        if args.operator is not None and name not in known:
            raise ValueError(
                f'spark-sample: --{name.replace("_", "-")} is not an option '
                f'of {args.operator}'
            )
        out[name] = value
    needed = ['fraction'] if args.operator in OPERATORS else ['seeds']
    for name in needed:
        if args.operator is not None and name not in out:
            raise ValueError(f'spark-sample: --{name} is missing')
    return out


def _run(
    args: argparse.Namespace, options: dict[str, Any], stack: ExitStack
) -> Any:
    from pyspark.errors import PySparkException

    from torch_gsample.spark import watch

    session, own = _session(args)
    if own:
        stack.callback(session.stop)
    name = f'gsample spark-sample {args.operator}'
    write = _reduce if args.operator in OPERATORS else _write_batches
    with watch(
        session, name, interval=args.interval, metrics=args.metrics
    ) as report:
        try:
            write(session, args, options)
        except PySparkException as error:  # e.g. a missing file or column
            text = str(error).split('\n')[0]
            raise ValueError(f'spark-sample: {text}') from error
    return report


def _session(args: argparse.Namespace) -> tuple[Any, bool]:
    """Returns the session, and whether this command started it.

    ``spark-submit`` starts a JVM before it starts Python, with the master
    and all settings.
    """
    from pyspark.sql import SparkSession

    from torch_gsample.spark import local_session

    own = SparkSession.getActiveSession() is None
    if 'PYSPARK_GATEWAY_PORT' in os.environ:
        if args.master is not None:
            raise ValueError(
                'spark-sample: set --master as an option of spark-submit'
            )
        return SparkSession.builder.appName('gsample').getOrCreate(), own
    settings = dict(pair.partition('=')[::2] for pair in args.conf)
    if args.master is not None:
        settings['master'] = args.master
    return local_session(**settings), own


def _reduce(
    session: Any, args: argparse.Namespace, options: dict[str, Any]
) -> None:
    """Writes the vertices and edges of a smaller graph."""
    from torch_gsample import spark as on_spark

    edges = _read(session, args.edges)
    src, dst = args.columns or ('src', 'dst')
    if args.vertices is not None:
        vertices = _read(session, args.vertices)
    else:
        from pyspark.sql import functions as F

        ends = [edges.select(F.col(n).alias(args.id)) for n in (src, dst)]
        vertices = ends[0].union(ends[1]).distinct()
    ends_of = {'src': src, 'dst': dst}
    ids = None
    if args.keys is not None:
        ids = on_spark.assign_ids(vertices, args.id, args.keys)
        ids.write(f'{args.output}/ids', _mode(args))
        ids = on_spark.read_ids(session, f'{args.output}/ids')
        vertices = ids.encode(vertices, {'id': args.id})
        edges = ids.encode(edges, ends_of)
    else:
        vertices = vertices.withColumnRenamed(args.id, 'id')
        edges = edges.withColumnsRenamed({src: 'src', dst: 'dst'})
    sample = getattr(on_spark, args.operator)(
        vertices, edges, options.pop('fraction'), seed=args.seed, **options
    )
    kept, joined = sample.vertices, sample.edges
    if ids is not None:
        kept = ids.decode(kept, {'id': args.id})
        joined = ids.decode(joined, ends_of)
    for name, frame in (('vertices', kept), ('edges', joined)):
        writer = frame.write.mode(_mode(args))
        if args.format == 'csv':
            writer = writer.option('header', True)
        writer.format(args.format).save(f'{args.output}/{name}')


def _write_batches(
    session: Any, args: argparse.Namespace, options: dict[str, Any]
) -> None:
    """Writes the mini-batches of an epoch."""
    from torch_gsample.spark import neighbor_sample

    edges = _read(session, args.edges)
    if args.columns is not None:
        names = dict(zip(args.columns, ('src', 'dst'), strict=True))
        edges = edges.withColumnsRenamed(names)
    seeds = _read(session, options.pop('seeds'))
    features = options.pop('features', None)
    options = {'fanouts': [10, 5], 'batch_size': 1024, **options}
    batches = neighbor_sample(edges, seeds, seed=args.seed, **options)
    table = None if features is None else _read(session, features)
    batches.write(args.output, features=table, mode=_mode(args))
    batches.close()


def _read(session: Any, path: str) -> Any:
    """Reads a .csv file or a Parquet folder."""
    if path.endswith(('.csv', '.csv.gz')):
        return session.read.csv(path, header=True, inferSchema=True)
    return session.read.parquet(path)


def _mode(args: argparse.Namespace) -> str:
    return 'overwrite' if args.overwrite else 'errorifexists'


if __name__ == '__main__':  # by spark-submit
    from torch_gsample.cli import main

    sys.exit(main(['spark-sample', *sys.argv[1:]]))
