"""The command ``gsample``: reads arguments, then imports what they need."""

import argparse
import difflib
import os
import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from torch_gsample import __version__
from torch_gsample.memory import bytes_of

_GRAPH = (
    'a directory of chunks, a .pt file of Data or HeteroData, edges as '
    '.parquet, .csv or .npy, or a bundled graph: debian, gcc'
)

DESCRIPTION = """\
Graph sampling for PyTorch Geometric, from a terminal.

examples:
  gsample doctor                        what this machine has and lacks
  gsample run train.py --epochs 3       a script of PyG's on our samplers
  gsample bench --output figures        this machine, beside installed peers
  gsample sample debian --num-seeds 8   a batch of a graph
  gsample explain ladies                how a sampler is compiled
  gsample convert edges.parquet graph   edges as a graph on disk

`gsample COMMAND --help` says more."""

EPILOG = """\
exit status: 0 all is well; 1 problems were found, or a script failed;
2 wrong arguments, or files that cannot be read or written; 130 Ctrl-C."""

_EXAMPLES = {
    'convert': """\
  gsample convert edges.parquet graph
  gsample convert part-*.csv graph --columns src,dst --weight w
  gsample convert edges.npy graph --memory 8GiB --chunk 1GiB
  gsample convert old graph --stripe /disk2/graph --stripe /disk3/graph
  gsample convert shop.duckdb graph --tables manifest.json""",
    'info': """\
  gsample info graph
  gsample info graph --json""",
    'verify': '  gsample verify graph',
    'run': """\
  gsample run train.py --epochs 3
  gsample run --fuse train.py --epochs 3
  gsample run --fuse --keep-memory train.py --epochs 3
  gsample run --memory 4GiB train.py
  gsample run -m package.train""",
    'doctor': """\
  gsample doctor
  gsample doctor --json""",
    'sample': """\
  gsample sample debian --node-type package --fanouts 15,10
  gsample sample edges.csv --seeds 0,1,2 --seed 7 --output batch.parquet
  gsample sample data.pt --num-seeds 1024 --output batch.pt --json""",
    'explain': """\
  gsample explain graphsage
  gsample explain ladies --arg fanouts=[64,32] --html ladies.html
  gsample explain package.module:function --graph data.pt""",
    'completion': """\
  gsample completion bash
  gsample completion zsh""",
    'bench': """\
  gsample bench
  gsample bench --quick
  gsample bench --output figures --threads 1,8""",
}


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        wrong = re.search(r"COMMAND: invalid choice: '(.*)' \(", message)
        if wrong is not None:
            names = difflib.get_close_matches(wrong[1], _COMMANDS, 1)
            message = f"there is no command '{wrong[1]}'"
            message += f": did you mean '{names[0]}'?" if names else ''
        self.exit(2, f'{self.prog}: {message} (see {self.prog} --help)\n')


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


def _add_convert(add: Callable[..., Any]) -> None:
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


def _add_info(add: Callable[..., Any]) -> None:
    add('graph', help='the directory')


def _add_run(add: Callable[..., Any]) -> None:
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


def _add_doctor(add: Callable[..., Any]) -> None:
    pass


def _add_sample(add: Callable[..., Any]) -> None:
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


def _add_explain(add: Callable[..., Any]) -> None:
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


def _add_bench(add: Callable[..., Any]) -> None:
    add('--quick', action='store_true', help='small graphs, in a minute')
    add('--threads', type=_counts, help='default: 1, and all that torch uses')
    add('--seconds', type=float, default=20, help='of a row; 20 if not given')
    add('--output', help='a folder for bench.json, bench.txt and bench.png')


def _add_completion(add: Callable[..., Any]) -> None:
    add('shell', choices=['bash', 'tcsh', 'zsh'], help='bash, tcsh or zsh')


#: Of each command: what it does, where it is, and what it takes.
_COMMANDS: dict[str, tuple[str, str, Callable[..., None]]] = {
    'doctor': (
        'Tell what this machine has, what it lacks, and how to get it.',
        'doctor:doctor',
        _add_doctor,
    ),
    'run': (
        "Run a script with our samplers in the place of PyG's.",
        'run:run',
        _add_run,
    ),
    'bench': (
        'Measure this machine, beside the peers that are installed.',
        'bench:bench',
        _add_bench,
    ),
    'sample': ('Draw a batch of a graph.', 'sample:sample', _add_sample),
    'explain': (
        'Show how a sampler is compiled.',
        'explain:explain',
        _add_explain,
    ),
    'convert': (
        'Write edge files, or a graph on disk again, as a graph in chunks.',
        'graphs:convert',
        _add_convert,
    ),
    'info': (
        'Show counts, degrees and chunks of a graph on disk.',
        'graphs:info',
        _add_info,
    ),
    'verify': (
        'Check every byte of a graph on disk.',
        'graphs:verify',
        _add_info,
    ),
    'completion': (
        'Print a script that completes gsample in a shell.',
        'completion:completion',
        _add_completion,
    ),
}


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of all commands."""
    form = argparse.RawDescriptionHelpFormatter
    parser = _Parser(
        'gsample',
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=form,
    )
    parser.add_argument('--version', action='store_true', help='and exit')
    commands = parser.add_subparsers(metavar='COMMAND', title='commands')
    for name, (purpose, place, add_arguments) in _COMMANDS.items():
        command = commands.add_parser(
            name,
            help=purpose,
            description=purpose,
            epilog=f'examples:\n{_EXAMPLES[name]}\n\n{EPILOG}',
            formatter_class=form,
        )
        command.set_defaults(place=place)
        add_arguments(command.add_argument)
        if name not in ('run', 'completion'):  # whose output is a script's
            command.add_argument('--json', action='store_true', help='as JSON')
            command.add_argument(
                '--traceback',
                action='store_true',
                help='show where an error was raised',
            )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
        argv (List[str], optional): Its name and arguments; those of the
            process if not given.

    Returns:
        int: The exit status: 0; 1 if problems were found, or a script failed;
        2 after wrong arguments, whose error is printed in a line; 130 after
        Ctrl-C.
    """
    parser = make_parser()
    args = parser.parse_args(argv)
    if args.version:
        print(f'torch_gsample {__version__}')
        return 0
    if 'place' not in args:
        parser.error('a command is missing')
    module, name = args.place.split(':')
    try:
        command = getattr(import_module(f'torch_gsample.cli.{module}'), name)
        status = command(args) or 0
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # as under `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        if args.place == 'run:run':  # the script's
            raise
        print('gsample: stopped', file=sys.stderr)
        return 130
    except (OSError, ValueError, TypeError, IndexError, ImportError) as error:
        if getattr(args, 'traceback', False):
            raise
        message = ' '.join(str(error).split())
        print(f'gsample: {message}', file=sys.stderr)
        return 2


if __name__ == '__main__':
    sys.exit(main())
