"""The arguments of each command, and their parsers."""

import argparse
import re
from collections.abc import Callable
from typing import Any

from torch_gsample.memory import bytes_of

_GRAPH = (
    'a graph on disk, a .pt file with Data or HeteroData, an edge file '
    '(.parquet, .csv, .npy), or a bundled graph (debian, gcc)'
)
_FANOUTS = 'number of neighbours at each hop; default: 10,5'
_NUM_SEEDS = 'number of random seed nodes; default: 8'
_EDGES = 'direction of edges to follow'
_SEED = 'random seed; default: 0'


def parse_bytes(text: str) -> int:
    """Parses a number of bytes.

    Args:
        text (str): A number and a unit: nothing, ``KiB``, ``MiB``, ``GiB`` or
            ``TiB`` (or their first letter).

    Raises:
        argparse.ArgumentTypeError: If the text has another form.

    Example:
        >>> parse_bytes('2GiB'), parse_bytes('1.5M'), parse_bytes('512')
        (2147483648, 1572864, 512)
    """
    try:
        return bytes_of(text, '')
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).lstrip()) from None


def _pair(text: str) -> tuple[str, str]:
    names = text.split(',')
    if len(names) != 2:
        raise argparse.ArgumentTypeError(
            f"must be two names, such as 'src,dst' (got {text!r})"
        )
    return names[0], names[1]


def _integers(text: str) -> list[int]:
    if not re.fullmatch(r'-?\d+(,-?\d+)*', text):
        raise argparse.ArgumentTypeError(
            f"must be integers, such as '10,5' (got {text!r})"
        )
    return [int(item) for item in text.split(',')]


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(
            f'must be a positive integer (got {text!r})'
        )
    return int(text)


def _counts(text: str) -> list[int]:
    return [_at_least_one(item) for item in text.split(',')]


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition('=')
    if not (name.isidentifier() and equals):
        raise argparse.ArgumentTypeError(
            f"must be a name and a value, such as 'k=10' (got {text!r})"
        )
    return name, value


def add_convert(add: Callable[..., Any]) -> None:
    """Adds the arguments of ``gsample convert``."""
    add(
        'edges',
        nargs='+',
        help='Parquet, CSV or .npy files, a graph on disk of any version, or '
        'a database (see --tables)',
    )
    add('graph', help='the directory to write')
    add(
        '--num-nodes',
        type=int,
        help='number of nodes; default: highest id + 1',
    )
    add('--columns', type=_pair, help='names of the columns: SRC,DST')
    add('--weight', help='name of the column of weights')
    add('--time', help='name of the column of times')
    add(
        '--tables',
        nargs='?',
        const='',
        metavar='MANIFEST',
        help='read a database or a folder of tables, with keys declared '
        'there or in a JSON manifest',
    )
    add(
        '--append',
        action='store_true',
        help='append new rows to a graph written with --tables',
    )
    _add_writing(add)


def add_compact(add: Callable[..., Any]) -> None:
    """Adds the arguments of ``gsample compact``."""
    add('graph', help='directory of converted tables')
    add('--output', help='a new directory; default: replace the old one')
    _add_writing(add)


def _add_writing(add: Callable[..., Any]) -> None:
    """Adds the arguments of all that write a graph on disk."""
    add(
        '--stripe',
        action='append',
        default=[],
        metavar='DIR',
        help='further directory, on another disk; repeatable',
    )
    add(
        '--memory',
        type=parse_bytes,
        default='4GiB',
        help='memory limit (default: 4GiB)',
    )
    add(
        '--chunk',
        type=parse_bytes,
        help='size of a chunk (default: 512MiB, of tables 32MiB)',
    )


def add_info(add: Callable[..., Any]) -> None:
    """Adds the arguments of ``gsample info``."""
    add('graph', help='directory of the graph')


def add_verify(add: Callable[..., Any]) -> None:
    """Adds the arguments of ``gsample verify``."""
    add('graph', help='directory of the graph, or a feature file')


def add_run(add: Callable[..., Any]) -> None:
    """Adds the arguments of ``gsample run``."""
    add(
        '-m',
        dest='module',
        action='store_true',
        help='run a module instead of a file',
    )
    add(
        '--fuse',
        action='store_true',
        help="fuse the layers of the script's models, with exact blocks",
    )
    add(
        '--keep-memory',
        action='store_true',
        help='reuse the memory of freed tensors',
    )
    add(
        '--memory',
        type=parse_bytes,
        help='limit of allocated memory; also plans reads of features',
    )
    add('script', help='path of the script, or the module for -m')
    add('args', nargs=argparse.REMAINDER, help='arguments of the script')


def add_doctor(add: Callable[..., Any]) -> None:
    """Adds the arguments of ``gsample doctor``: none."""


def add_sample(add: Callable[..., Any]) -> None:
    """Adds the arguments of ``gsample sample``."""
    add('graph', help=_GRAPH)
    add('--fanouts', type=_integers, default='10,5', help=_FANOUTS)
    add('--seeds', type=_integers, help='ids of the seed nodes')
    add('--num-seeds', type=_at_least_one, default=8, help=_NUM_SEEDS)
    add(
        '--node-type',
        help='node type of the seeds; default: destination of the first edge '
        'type',
    )
    add('--columns', type=_pair, help='columns of an edge file: SRC,DST')
    add('--weight', help='attribute or column of weights')
    add('--time', help='attribute or column of times')
    add('--seed-time', type=int, help='time of the seeds')
    add('--replace', action='store_true', help='sample with replacement')
    add('--seed', type=int, default=0, help=_SEED)
    add('--output', help='write the batch to a .pt or .parquet file')


def add_explain(add: Callable[..., Any]) -> None:
    """Adds the arguments of ``gsample explain``."""
    add('program', help='name in torch_gsample.algorithms, or module:function')
    add('--graph', default='debian', help=f'{_GRAPH}; default: debian')
    add(
        '--num-seeds',
        type=_at_least_one,
        default=64,
        help='number of seeds; default: 64',
    )
    add(
        '--arg',
        type=_assignment,
        action='append',
        default=[],
        metavar='NAME=VALUE',
        help='argument of the program; repeatable',
    )
    add('--html', help='write an HTML page to this file')


def add_spark_sample(add: Callable[..., Any]) -> None:
    """Adds the arguments of ``gsample spark-sample``."""
    add(
        'operator',
        nargs='?',
        choices=[
            'random_vertex',
            'random_edge',
            'random_vertex_neighborhood',
            'random_walk',
            'neighbor_sample',
        ],
        metavar='OPERATOR',
        help='random_vertex, random_edge, random_vertex_neighborhood, '
        'random_walk, or neighbor_sample (mini-batches)',
    )
    _add_graph(add)
    add('--output', help='folder to write')
    add(
        '--keys',
        choices=['dense', 'hashed'],
        help='map keys of any type to integers and back',
    )
    add('--fraction', type=float, help='share of the sample')
    add('--direction', choices=['in', 'out', 'both'], help=_EDGES)
    add('--keep-edges', choices=['incident', 'induced'], help='of the sample')
    add('--keep-isolated', action='store_true', help='keep isolated vertices')
    add('--walkers', type=_at_least_one, help='number of walkers; default: 1')
    add('--jump-probability', type=float, help='of a walker; default: 0.1')
    add('--seeds', help='seeds of mini-batches: table of position and id')
    add('--fanouts', type=_integers, help=_FANOUTS)
    add(
        '--batch-size',
        type=_at_least_one,
        help='number of seeds; default: 1024',
    )
    add('--features', help='table of id and features')
    add('--epoch', type=int, help='epoch of the draws; default: 0')
    for name, what in {
        'weighted': 'sample by the column weight of edges',
        'timed': 'sample edges up to the time of the seed',
        'replace': 'sample with replacement',
        'disjoint': 'sample a subgraph of its own for each seed',
    }.items():
        add(f'--{name}', action='store_true', help=what)
    add('--seed', type=int, default=0, help=_SEED)
    add('--format', choices=['parquet', 'csv'], default='parquet')
    add('--overwrite', action='store_true', help='replace the output')
    _add_job(add)


def add_spark_quality(add: Callable[..., Any]) -> None:
    """Adds the arguments of ``gsample spark-quality``."""
    add(
        'sample',
        nargs='?',
        metavar='SAMPLE',
        help='folder of spark-sample, with vertices and edges',
    )
    _add_graph(add)
    add('--output', help='.svg, .png or .pdf file for the degrees')
    add(
        '--wedges',
        type=_at_least_one,
        default=20_000,
        help='number of pairs of links for clustering; default: 20000',
    )
    add('--seed', type=int, default=0, help='of these pairs; default: 0')
    add(
        '--format',
        choices=['parquet', 'csv'],
        default='parquet',
        help='of the sample',
    )
    _add_job(add)


def _add_graph(add: Callable[..., Any]) -> None:
    """Adds the arguments of a graph in tables."""
    add('--edges', help='Parquet folder or .csv file, on any file system')
    add('--vertices', help='likewise; default: all ends of edges')
    add(
        '--columns',
        type=_pair,
        default='src,dst',
        help='columns of edges; default: src,dst',
    )
    add('--id', default='id', help='column of vertices; default: id')


def _add_job(add: Callable[..., Any]) -> None:
    """Adds the arguments of a Spark job: progress and settings."""
    add('--metrics', help='.json file for the metrics of all stages')
    add(
        '--interval',
        type=float,
        default=10,
        help='seconds between lines of progress',
    )
    add('--quiet', action='store_true', help='print no progress')
    add('--master', help='default: local[*]; not with spark-submit')
    add(
        '--conf',
        action='append',
        default=[],
        metavar='NAME=VALUE',
        help='setting of Spark; repeatable',
    )
    add(
        '--script',
        action='store_true',
        help='print the path of the file for spark-submit',
    )


def add_bench(add: Callable[..., Any]) -> None:
    """Adds the arguments of ``gsample bench``."""
    add('--quick', action='store_true', help='small graphs; takes a minute')
    add(
        '--threads',
        type=_counts,
        help="default: 1 and torch's number of threads",
    )
    add(
        '--seconds',
        type=float,
        default=20,
        help='time limit of a row; default: 20',
    )
    add('--output', help='folder for bench.json, bench.txt and bench.png')


def add_completion(add: Callable[..., Any]) -> None:
    """Adds the arguments of ``gsample completion``."""
    add('shell', choices=['bash', 'tcsh', 'zsh'], help='the shell')
