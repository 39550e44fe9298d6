"""``gsample run``."""

import argparse
from sys import stderr

from torch_gsample.memory import keep_memory
from torch_gsample.run_script import run_script


def run(args: argparse.Namespace) -> int:
    """Runs a script with our samplers in the place of PyG's.

    Args:
        args (argparse.Namespace): The script and its arguments.
    """
    if args.keep_memory and not keep_memory():
        print('run: only glibc keeps memory', file=stderr)
    try:
        return run_script(args.script, args.args, args.module, args.fuse)
    finally:
        if args.keep_memory:
            keep_memory(False)
