"""``gsample spark-quality``: compares a sample on Spark with its graph.

``spark-submit`` runs a Python file: ``gsample spark-quality --script`` prints
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


def spark_quality(args: argparse.Namespace) -> None:
    """Compares the vertices and edges in files with those of a sample.

    Args:
        args (argparse.Namespace): The files and options.

    Raises:
        ImportError: If a picture needs matplotlib, which is missing.
        ValueError: If an argument is missing.
    """
    if args.script:
        print(Path(__file__).resolve())
        return
    if args.sample is None:
        raise ValueError('spark-quality: the folder of a sample is missing')
    if args.edges is None:
        raise ValueError('spark-quality: --edges is missing')
    output.check_output(args.output, ['.svg', '.png', '.pdf'])
    if args.output is not None:
        try:
            import matplotlib  # noqa: F401
        except ImportError as error:
            raise ImportError(
                'spark-quality: --output needs matplotlib: `pip install '
                "'torch_gsample[viz]'`"
            ) from error
    with spark_job('spark-quality', args.sample, args) as (session, report):
        from torch_gsample.spark import sample_quality

        original, sampled = _graphs(session, args)
        quality = sample_quality(
            original, sampled, wedges=args.wedges, seed=args.seed
        )
    if args.output is not None:
        from torch_gsample.viz import plot_quality

        plot_quality(quality).figure.savefig(args.output)
    if args.json:
        rows = quality.rows()
        both = {
            'original': {name: value for name, value, _ in rows},
            'sampled': {name: value for name, _, value in rows},
        }
        output.print_json({**both, **costs(report), 'output': args.output})
        return
    lines = quality.table().splitlines()
    columns, _, *cells = (line.strip('| ').split(' | ') for line in lines)
    output.table(columns, cells, columns[1:])
    if args.output is not None:
        print(f'picture written to {args.output}')


def _graphs(session: Any, args: argparse.Namespace) -> list[tuple[Any, Any]]:
    """Reads the vertices and edges of the graph and of the sample."""
    from torch_gsample import spark as on_spark
    from torch_gsample.spark.frames import INTEGERS

    graphs = [
        read_graph(session, args),
        tuple(
            read_table(session, f'{args.sample}/{name}', args.format)
            for name in ('vertices', 'edges')
        ),
    ]
    ends = dict(zip(('src', 'dst'), args.columns, strict=True))
    if dict(graphs[0][0].dtypes).get(args.id) in INTEGERS:
        names = {column: end for end, column in ends.items()}
        return [
            (
                vertices.withColumnRenamed(args.id, 'id'),
                edges.withColumnsRenamed(names),
            )
            for vertices, edges in graphs
        ]
    # A hash is a function of its key alone: the two need no common map.
    ids = on_spark.assign_ids(graphs[0][0], args.id, 'hashed')
    return [
        (
            ids.encode(vertices, {'id': args.id}, check=False),
            ids.encode(edges, ends, check=False),
        )
        for vertices, edges in graphs
    ]


if __name__ == '__main__':  # by spark-submit
    from torch_gsample.cli import main

    sys.exit(main(['spark-quality', *sys.argv[1:]]))
