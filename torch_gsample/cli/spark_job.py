"""Runs a command as a Spark job: its session, progress, metrics and tables.

A command's arguments come in. Its block gets the session and a report of the
block's stages, on this machine or under ``spark-submit``.
"""

import argparse
import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch_gsample.cli import output


@contextmanager
def spark_job(
    command: str, name: str, args: argparse.Namespace
) -> Iterator[tuple[Any, Any]]:
    """Starts Spark for a block, and logs and measures its jobs.

    Args:
        command (str): The command, for errors.
        name (str): Description of the jobs.
        args (argparse.Namespace): ``metrics``, ``interval``, ``quiet``,
            ``master`` and ``conf``.

    Raises:
        ValueError: If Spark cannot read a file or a column.
    """
    if args.metrics is not None:
        output.check_output(args.metrics, ['.json'])
    from pyspark.errors import PySparkException

    from torch_gsample.spark import watch

    with ExitStack() as stack:
        if not args.quiet:
            _log_progress(stack)
        session, own = _session(command, args)
        if own:
            stack.callback(session.stop)
        title = f'gsample {command} {name}'
        with watch(
            session, title, interval=args.interval, metrics=args.metrics
        ) as report:
            try:
                yield session, report
            except PySparkException as error:  # e.g. a missing file or column
                text = str(error).split('\n')[0]
                raise ValueError(f'{command}: {text}') from error


def costs(report: Any) -> dict[str, Any]:
    """Returns the costs of a job by name."""
    return {
        'stages': len(report.stages),
        'seconds': round(report.seconds, 1),
        'seconds of tasks': round(report.total('task_seconds'), 1),
        'bytes shuffled': report.total('shuffle_bytes_written'),
        **report.counters,
    }


def read_table(session: Any, path: str, format: str | None = None) -> Any:
    """Reads a table: a .csv file, or by default Parquet.

    Args:
        session (SparkSession): The session.
        path (str): The file or folder.
        format (str, optional): ``'csv'`` or ``'parquet'``; default: by the
            name.
    """
    if format is None:
        csv = path.endswith(('.csv', '.csv.gz'))
        format = 'csv' if csv else 'parquet'
    if format == 'csv':
        return session.read.csv(path, header=True, inferSchema=True)
    return session.read.parquet(path)


def read_graph(session: Any, args: argparse.Namespace) -> tuple[Any, Any]:
    """Reads the vertices and edges of a graph; columns keep their names.

    Args:
        session (SparkSession): The session.
        args (argparse.Namespace): ``edges``, ``vertices``, ``columns`` and
            ``id``.
    """
    edges = read_table(session, args.edges)
    if args.vertices is not None:
        return read_table(session, args.vertices), edges
    from pyspark.sql import functions as F

    src, dst = (
        edges.select(F.col(name).alias(args.id)) for name in args.columns
    )
    return src.union(dst).distinct(), edges


def _log_progress(stack: ExitStack) -> None:
    """Sends progress to standard error until the stack is closed."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter('%(asctime)s %(message)s'))
    log = logging.getLogger('torch_gsample.spark')
    log.addHandler(handler)
    stack.callback(log.removeHandler, handler)
    stack.callback(log.setLevel, log.level)
    log.setLevel(logging.INFO)


def _session(command: str, args: argparse.Namespace) -> tuple[Any, bool]:
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
                f'{command}: set --master as an option of spark-submit'
            )
        return SparkSession.builder.appName('gsample').getOrCreate(), own
    settings = dict(pair.partition('=')[::2] for pair in args.conf)
    if args.master is not None:
        settings['master'] = args.master
    return local_session(**settings), own
