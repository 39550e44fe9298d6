"""``gsample run``."""

import argparse
import resource
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from sys import stderr

from torch_gsample.memory import keep_memory
from torch_gsample.run_script import run_script
from torch_gsample.storage.feature_store import plan_by_default

#: The least memory of a script in bytes, and the divisor of the remaining
#: memory that gives the budget for planned reads of features.
_LEAST, _SHARE = 64 << 20, 4


def run(args: argparse.Namespace) -> int:
    """Runs a script with our samplers instead of PyG's.

    Args:
        args (argparse.Namespace): The script and its arguments.
    """
    if args.keep_memory and not keep_memory():
        print(
            'run: --keep-memory has no effect: it requires glibc', file=stderr
        )
    limits = within(args.memory) if args.memory else nullcontext()
    try:
        with limits:
            return run_script(args.script, args.args, args.module, args.fuse)
    finally:
        if args.keep_memory:
            keep_memory(False)


@contextmanager
def within(memory: int) -> Iterator[None]:
    """Limits the memory of this process, and plans reads of features in it.

    Args:
        memory (int): Bytes of data as counted by ``RLIMIT_DATA``: allocated
            memory without mapped files. Each child process has the same
            limit for itself.

    Raises:
        ValueError: If more is already in use.
    """
    used = _used()
    if memory < used + _LEAST:
        raise ValueError(
            f"run: '--memory' must be at least {used + _LEAST}: Python and "
            f'torch take {used} before the script starts (got {memory})'
        )
    before = resource.getrlimit(resource.RLIMIT_DATA)
    hard = before[1]
    if hard != resource.RLIM_INFINITY:
        memory = min(memory, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (memory, hard))
    plan_by_default((memory - used) // _SHARE)
    try:
        yield
    finally:
        plan_by_default(None)
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _used() -> int:
    """Returns the bytes that currently count towards the limit."""
    for line in Path('/proc/self/status').read_text().splitlines():
        if line.startswith('VmData:'):
            return int(line.split()[1]) << 10
    return 0
