"""``gsample run``."""

import argparse

from torch_gsample.run_script import run_script


def run(args: argparse.Namespace) -> int:
    """Runs a script with our samplers in the place of PyG's.

    Args:
        args (argparse.Namespace): The script and its arguments.
    """
    return run_script(args.script, args.args, args.module, args.fuse)
