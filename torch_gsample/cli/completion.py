"""``gsample completion``."""

import argparse


def completion(args: argparse.Namespace) -> None:
    """Prints a completion script for a shell.

    Args:
        args (argparse.Namespace): The shell.

    Raises:
        ImportError: If shtab is not installed.
    """
    from torch_gsample.cli.command import make_parser

    try:
        import shtab
    except ImportError as error:
        raise ImportError(
            "completion: shtab is missing: `pip install 'torch_gsample[cli]'`"
        ) from error
    print(shtab.complete(make_parser(), args.shell))
