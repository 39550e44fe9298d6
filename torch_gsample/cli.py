"""The command ``gsample``: scripts of PyG, and graphs on disk.

Each command is a function of its parsed arguments that prints what it found.
"""

import argparse
import json
import re
import sys
from collections.abc import Sequence

from torch_gsample.storage import ChunkedGraph

_UNITS = {'': 1, 'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30, 'T': 1 << 40}


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
    match = re.fullmatch(r'(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?', text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"must be a number of bytes, as '512MiB' (got {text!r})"
        )
    return int(float(match[1]) * _UNITS[match[2]])


def convert(args: argparse.Namespace) -> None:
    """Writes edge files as a graph in chunks."""
    paths = args.edges if len(args.edges) > 1 else args.edges[0]
    graph = ChunkedGraph.write(
        args.graph,
        paths,
        num_nodes=args.num_nodes,
        columns=args.columns,
        weight_attr=args.weight,
        time_attr=args.time,
        chunk_bytes=args.chunk,
        memory_limit=args.memory,
        progress=sys.stderr.isatty(),
    )
    print(graph)


def info(args: argparse.Namespace) -> None:
    """Prints counts, degrees and the chunk table."""
    graph = ChunkedGraph(args.graph)
    print(graph)
    for node_type, count in graph.num_nodes.items():
        print(f'nodes {node_type or ""}: {count:,}')
    for relation in graph.meta.relations:
        arrays = ', '.join(
            f'{name} of {width} bytes'
            for name, width in relation.widths.items()
            if width > 0
        )
        print(f'\nedges {relation.edge_type or ""}: {relation.num_edges:,}')
        print(f'arrays: {arrays}')
        print('in-degree        nodes')
        for bits, count in enumerate(graph.degree_histogram(relation)):
            low, high = (1 << bits) >> 1, (1 << bits) - 1
            if count > 0:
                name = f'{low}' if low >= high else f'{low}-{high}'
                print(f'{name:>12} {count:>10,}')
        print('chunk      start      nodes      first      edges     offset')
        for i, row in enumerate(relation.chunks.tolist()):
            numbers = ' '.join(f'{value:>10}' for value in row[:5])
            print(f'{i:>5} {numbers}')


def verify(args: argparse.Namespace) -> None:
    """Checks every byte of a graph."""
    graph = ChunkedGraph(args.graph)
    graph.verify()
    print(f'{graph} is whole')


def run(args: argparse.Namespace) -> int:
    """Runs a script with our samplers in the place of PyG's."""
    from torch_gsample.run_script import run_script

    return run_script(args.script, args.args, args.module)


def doctor(args: argparse.Namespace) -> int:
    """Prints what this machine has, what it lacks, and how to get it."""
    from torch_gsample.doctor import as_dicts, examine, is_sound, table

    findings = examine()
    if args.json:
        print(json.dumps(as_dicts(findings), indent=2))
    else:
        print(table(findings))
    return int(not is_sound(findings))


def _pair(text: str) -> tuple[str, str]:
    names = text.split(',')
    if len(names) != 2:
        raise argparse.ArgumentTypeError(
            f"must be two names, as 'src,dst' (got {text!r})"
        )
    return names[0], names[1]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser('gsample', description=__doc__)
    commands = parser.add_subparsers(required=True, metavar='command')

    command = commands.add_parser('convert', help=convert.__doc__)
    command.set_defaults(run=convert)
    command.add_argument('edges', nargs='+', help='Parquet, CSV or .npy files')
    command.add_argument('graph', help='the directory to make')
    command.add_argument('--num-nodes', type=int, help='largest id + 1 if not')
    command.add_argument('--columns', type=_pair, help='source,destination')
    command.add_argument('--weight', help='the column of weights')
    command.add_argument('--time', help='the column of times')
    sizes = {'--memory': '4GiB', '--chunk': '512MiB'}
    for name, default in sizes.items():
        command.add_argument(name, type=parse_bytes, default=default)

    command = commands.add_parser('doctor', help=doctor.__doc__)
    command.set_defaults(run=doctor)
    command.add_argument('--json', action='store_true', help='as JSON')

    command = commands.add_parser('run', help=run.__doc__)
    command.set_defaults(run=run)
    command.add_argument('-m', dest='module', action='store_true')
    command.add_argument('script', help='its path; a module after -m')
    command.add_argument('args', nargs=argparse.REMAINDER)

    for function in (info, verify):
        command = commands.add_parser(function.__name__, help=function.__doc__)
        command.set_defaults(run=function)
        command.add_argument('graph', help='the directory')
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
        argv (List[str], optional): Its name and arguments; those of the
            process if not given.

    Returns:
        int: The exit status: 0, 1 after an error that is printed, or that of
        the script that was run.
    """
    args = _parser().parse_args(argv)
    try:
        return args.run(args) or 0
    except (OSError, ValueError, TypeError, IndexError, ImportError) as error:
        print(f'gsample: {error}', file=sys.stderr)
        return 1


if __name__ == '__main__':
    sys.exit(main())
