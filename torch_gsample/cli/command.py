"""The command ``gsample``: parses arguments, then imports the command."""

import argparse
import difflib
import os
import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NoReturn

from torch_gsample import __version__
from torch_gsample.cli import arguments

DESCRIPTION = """\
Graph sampling for PyTorch Geometric, from a terminal.

examples:
  gsample doctor                        check this machine's installation
  gsample run train.py --epochs 3       run a PyG script with our samplers
  gsample bench --output figures        measure our speed and that of peers
  gsample sample debian --num-seeds 8   sample one batch
  gsample explain ladies                show how a sampler is compiled
  gsample convert edges.parquet graph   write edges as a graph on disk
  gsample spark-sample --script         print the script for spark-submit

`gsample COMMAND --help` lists the options of a command."""

EPILOG = """\
exit status: 0 success; 1 problems found, or the script failed;
2 wrong arguments, or an unreadable or unwritable file; 130 Ctrl-C."""

_EXAMPLES = {
    'convert': """\
  gsample convert edges.parquet graph
  gsample convert part-*.csv graph --columns src,dst --weight w
  gsample convert edges.npy graph --memory 8GiB --chunk 1GiB
  gsample convert old graph --stripe /disk2/graph --stripe /disk3/graph
  gsample convert shop.duckdb graph --tables manifest.json
  gsample convert november.duckdb graph --append""",
    'compact': """\
  gsample compact graph
  gsample compact graph --output new""",
    'info': """\
  gsample info graph
  gsample info graph --json""",
    'verify': """\
  gsample verify graph
  gsample verify x.gsf""",
    'spark-sample': """\
  gsample spark-sample random_edge --edges e.csv --fraction 0.1 --output out
  spark-submit "$(gsample spark-sample --script)" random_walk \\
      --edges s3a://lake/edges --fraction 0.05 --output s3a://lake/smaller""",
    'spark-quality': """\
  gsample spark-quality out --edges e.csv --output degrees.svg
  spark-submit "$(gsample spark-quality --script)" s3a://lake/smaller \\
      --edges s3a://lake/edges --output degrees.svg""",
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


#: Errors that are shown in one line. CompileError is a RuntimeError.
_ERRORS = (
    OSError,
    ValueError,
    TypeError,
    IndexError,
    ImportError,
    RuntimeError,
)

#: The options of arguments that errors of the package name.
_OPTIONS = {
    'chunk_bytes': '--chunk',
    'directories': '--stripe',
    'memory_limit': '--memory',
    'num_neighbors': '--fanouts',
    'num_nodes': '--num-nodes',
    'time_attr': '--time',
    'weight_attr': '--weight',
}


class _Parser(argparse.ArgumentParser):
    """Prints errors in one line."""

    def error(self, message: str) -> NoReturn:
        wrong = re.search(r"COMMAND: invalid choice: '(.*)' \(", message)
        if wrong is not None:
            names = difflib.get_close_matches(wrong[1], _COMMANDS, 1)
            message = f"there is no command '{wrong[1]}'"
            message += f": did you mean '{names[0]}'?" if names else ''
        self.exit(2, f'{self.prog}: {message} (see {self.prog} --help)\n')


#: Purpose, function and arguments of each command.
_COMMANDS: dict[str, tuple[str, str, Callable[..., None]]] = {
    'doctor': (
        'Check this machine, and say how to install what is missing.',
        'doctor:doctor',
        arguments.add_doctor,
    ),
    'run': (
        "Run a PyG script with our samplers instead of PyG's.",
        'run:run',
        arguments.add_run,
    ),
    'bench': (
        'Measure speed on this machine, compared with installed peers.',
        'bench:bench',
        arguments.add_bench,
    ),
    'sample': (
        'Sample one batch of a graph.',
        'sample:sample',
        arguments.add_sample,
    ),
    'explain': (
        'Show how a sampler is compiled.',
        'explain:explain',
        arguments.add_explain,
    ),
    'spark-sample': (
        'Sample a graph on Apache Spark.',
        'spark_sample:spark_sample',
        arguments.add_spark_sample,
    ),
    'spark-quality': (
        'Compare a sample with its graph on Apache Spark.',
        'spark_quality:spark_quality',
        arguments.add_spark_quality,
    ),
    'convert': (
        'Write edge files, tables or an old graph as a graph on disk.',
        'graphs:convert',
        arguments.add_convert,
    ),
    'compact': (
        'Merge the rows appended to tables on disk.',
        'graphs:compact',
        arguments.add_compact,
    ),
    'info': (
        'Show counts, degrees and chunks of a graph on disk.',
        'graphs:info',
        arguments.add_info,
    ),
    'verify': (
        'Check every byte of a graph or a feature file on disk.',
        'graphs:verify',
        arguments.add_verify,
    ),
    'completion': (
        'Print a completion script for a shell.',
        'completion:completion',
        arguments.add_completion,
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
    parser.add_argument(
        '--version', action='store_true', help='print the version and exit'
    )
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
        if name not in ('run', 'completion'):  # these print scripts' output
            command.add_argument(
                '--json', action='store_true', help='print JSON'
            )
            command.add_argument(
                '--traceback',
                action='store_true',
                help='show where an error was raised',
            )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
        argv (List[str], optional): The command and its arguments; default:
            those of the process.

    Returns:
        int: The exit status: 0; 1 if problems were found, or a script failed;
        2 for wrong arguments, with an error of one line; 130 after Ctrl-C.
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
    except _ERRORS as error:
        if getattr(args, 'traceback', False):
            raise
        message = ' '.join(_with_options(_shown(error)).split())
        print(f'gsample: {message}', file=sys.stderr)
        return 2


def _with_options(message: str) -> str:
    """Returns a message of the package with the names of the options."""
    for argument, option in _OPTIONS.items():
        message = message.replace(f"'{argument}'", option)
    return message


def _shown(error: Exception) -> str:
    """Returns the text of an error, without the number of the system's."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    names = (error.filename, error.filename2)
    shown = [error.strerror, *(repr(n) for n in names if n is not None)]
    return ': '.join(shown)


if __name__ == '__main__':
    sys.exit(main())
