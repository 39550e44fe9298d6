"""The arguments of each command, and how their text is read."""

import argparse
import re
from collections.abc import Callable
from typing import Any

from torch_gsample.memory import bytes_of

_GRAPH = (
    'a directory of chunks, a .pt file of Data or HeteroData, edges as '
    '.parquet, .csv or .npy, or a bundled graph: debian, gcc'
)


def parse_bytes(text: str) -> int:
    """Returns a number of bytes.

    Args:
        text (str): A number and a unit: nothing, ``KiB``, ``MiB``, ``GiB`` or
            ``TiB`` (or their first letter).

    Raises:
        argparse.ArgumentTypeError: If it is something else.

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
            f"must be two names, as 'src,dst' (got {text!r})"
        )
    return names[0], names[1]


def _integers(text: str) -> list[int]:
    if not re.fullmatch(r'-?\d+(,-?\d+)*', text):
        raise argparse.ArgumentTypeError(
            f"must be integers, as '10,5' (got {text!r})"
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
            f"must be a name and a value, as 'k=10' (got {text!r})"
        )
    return name, value


def add_convert(add: Callable[..., Any]) -> None:
    """Adds the arguments of ``gsample convert``."""
    add(
        'edges',
        nargs='+',
        help='Parquet, CSV or .npy files, a graph on disk of any version, or '
        'tables',
    )
    add('graph', help='the directory to make')
    add('--num-nodes', type=int, help='default: the largest id + 1')
    add('--columns', type=_pair, help='those of sources and destinations')
    add('--weight', help='the column of weights')
    add('--time', help='the column of times')
    add(
        '--stripe',
        action='append',
        default=[],
        metavar='DIR',
        help='a further directory to make, on another disk; may be repeated',
    )
    add(
        '--tables',
        nargs='?',
        const='',
        metavar='MANIFEST',
        help='edges is a database or a folder of tables, whose keys are '
        'declared, or in this JSON file',
    )
    add(
        '--append',
        action='store_true',
        help='edges are new rows for a graph that --tables made',
    )
    for name, default in {'--memory': '4GiB', '--chunk': '512MiB'}.items():
        add(name, type=parse_bytes, default=default, help=f'{default} if not')


def add_info(add: Callable[..., Any]) -> None:
    """Adds the arguments of ``gsample info`` and ``verify``."""
    add('graph', help='the directory')


def add_run(add: Callable[..., Any]) -> None:
    """Adds the arguments of ``gsample run``."""
    add('-m', dest='module', action='store_true', help='names a module')
    add(
        '--fuse',
        action='store_true',
        help='fuse its models: fused layers on exact blocks',
    )
    add(
        '--keep-memory',
        action='store_true',
        help='keep memory that tensors free, for the next ones',
    )
    add(
        '--memory',
        type=parse_bytes,
        help='the most that it may allocate; plans reads of features',
    )
    add('script', help='its path; a module after -m')
    add('args', nargs=argparse.REMAINDER, help='arguments of the script')


def add_doctor(add: Callable[..., Any]) -> None:
    """Adds the arguments of ``gsample doctor``: none."""


def add_sample(add: Callable[..., Any]) -> None:
    """Adds the arguments of ``gsample sample``."""
    add('graph', help=_GRAPH)
    add('--fanouts', type=_integers, default='10,5', help='10,5 if not given')
    add('--seeds', type=_integers, help='the nodes to start from')
    add('--num-seeds', type=_at_least_one, default=8, help='else 8 by chance')
    add('--node-type', help='the type of the seeds')
    add('--columns', type=_pair, help='of edge files: source,destination')
    add('--weight', help='the attribute or column of weights')
    add('--time', help='the attribute or column of times')
    add('--seed-time', type=int, help='the time of the seeds')
    add('--replace', action='store_true', help='draw with replacement')
    add('--seed', type=int, default=0, help='of the draws; 0 if not given')
    add('--output', help='write the batch to a .pt or .parquet file')


def add_explain(add: Callable[..., Any]) -> None:
    """Adds the arguments of ``gsample explain``."""
    add('program', help='one of torch_gsample.algorithms, or module:function')
    add('--graph', default='debian', help=f'{_GRAPH}; debian if not given')
    add('--num-seeds', type=_at_least_one, default=64, help='64 if not given')
    add(
        '--arg',
        type=_assignment,
        action='append',
        default=[],
        metavar='NAME=VALUE',
        help='an argument of the program; may be repeated',
    )
    add('--html', help='write a page to this file')


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
    add('--edges', help='a Parquet folder or a .csv file, in any file system')
    add('--vertices', help='the same; the ends of all edges if not given')
    add('--output', help='the folder to write')
    add('--columns', type=_pair, help='of sources and destinations: src,dst')
    add('--id', default='id', help='the column of vertices; id if not given')
    add(
        '--keys',
        choices=['dense', 'hashed'],
        help='ids are keys of any kind: map them to numbers and back',
    )
    add('--fraction', type=float, help='the share to keep')
    add('--direction', choices=['in', 'out', 'both'], help='of neighbours')
    add('--keep-edges', choices=['incident', 'induced'])
    add('--keep-isolated', action='store_true')
    add('--walkers', type=_at_least_one, help='1 if not given')
    add('--jump-probability', type=float, help='0.1 if not given')
    add('--seeds', help='of mini-batches: a table of position and id')
    add('--fanouts', type=_integers, help='10,5 if not given')
    add('--batch-size', type=_at_least_one, help='1024 if not given')
    add('--features', help='a table of id and features')
    add('--epoch', type=int, help='0 if not given')
    for name in ('weighted', 'timed', 'replace', 'disjoint'):
        add(f'--{name}', action='store_true')
    add('--seed', type=int, default=0, help='of the draws; 0 if not given')
    add('--format', choices=['parquet', 'csv'], default='parquet')
    add('--overwrite', action='store_true', help='what is in the output')
    add('--metrics', help='a .json file for what all stages did')
    add('--interval', type=float, default=10, help='seconds between lines')
    add('--quiet', action='store_true', help='log nothing')
    add('--master', help='local[*] if not given; spark-submit has its own')
    add(
        '--conf',
        action='append',
        default=[],
        metavar='NAME=VALUE',
        help='a setting of Spark; may be repeated',
    )
    add('--script', action='store_true', help='print what spark-submit runs')


def add_bench(add: Callable[..., Any]) -> None:
    """Adds the arguments of ``gsample bench``."""
    add('--quick', action='store_true', help='small graphs, in a minute')
    add('--threads', type=_counts, help='default: 1, and all that torch uses')
    add('--seconds', type=float, default=20, help='of a row; 20 if not given')
    add('--output', help='a folder for bench.json, bench.txt and bench.png')


def add_completion(add: Callable[..., Any]) -> None:
    """Adds the arguments of ``gsample completion``."""
    add('shell', choices=['bash', 'tcsh', 'zsh'], help='bash, tcsh or zsh')
