"""``gsample spark-sample``: samples files on Spark, also by ``spark-submit``.

``spark-submit`` runs a Python file: ``gsample spark-sample --script`` prints
the path of this one.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from torch_gsample.cli import output
from torch_gsample.cli.spark_job import (
    costs,
    read_graph,
    read_table,
    spark_job,
)

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
    name = args.operator
    with spark_job('spark-sample', name, args) as (session, report):
        write = _reduce if name in OPERATORS else _write_batches
        write(session, args, options)
    if args.json:
        output.print_json({**costs(report), 'output': args.output})
        return
    cells = [[n, f'{v:,}'] for n, v in costs(report).items()]
    output.table(['', name], cells, [name])
    print(f'written to {args.output}')


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


def _reduce(
    session: Any, args: argparse.Namespace, options: dict[str, Any]
) -> None:
    """Writes the vertices and edges of a smaller graph."""
    from torch_gsample import spark as on_spark

    vertices, edges = read_graph(session, args)
    src, dst = args.columns
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

    names = dict(zip(args.columns, ('src', 'dst'), strict=True))
    edges = read_table(session, args.edges).withColumnsRenamed(names)
    seeds = read_table(session, options.pop('seeds'))
    features = options.pop('features', None)
    options = {'fanouts': [10, 5], 'batch_size': 1024, **options}
    batches = neighbor_sample(edges, seeds, seed=args.seed, **options)
    table = None if features is None else read_table(session, features)
    batches.write(args.output, features=table, mode=_mode(args))
    batches.close()


def _mode(args: argparse.Namespace) -> str:
    return 'overwrite' if args.overwrite else 'errorifexists'


if __name__ == '__main__':  # by spark-submit
    from torch_gsample.cli import main

    sys.exit(main(['spark-sample', *sys.argv[1:]]))
