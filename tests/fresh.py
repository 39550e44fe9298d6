"""Processes that start with only imports.

Each is a fork of a process that has only imported torch and PyG: importing
takes longer than most tests.
"""

import multiprocessing
import os
import runpy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from torch.multiprocessing import start_processes

TOP = Path(__file__).resolve().parents[1]
#: Like 'spawn', its processes inherit only pickles from their parent.
FORKS = multiprocessing.get_context('forkserver')
FORKS.set_forkserver_preload(
    [__name__, 'torch_geometric.nn', 'torch_gsample.loader']
)


def start(job, args, count):
    """Runs a function of the rank in several processes, until they end."""
    start_processes(job, args, count, start_method='forkserver')


class Run:
    """A script in such a process.

    Args:
        script (Path): The script.
        out (Path): The file of its output.
        args (List[str], optional): Its arguments.
        env (Dict[str, str], optional): Changes of the environment.
    """

    def __init__(
        self,
        script: Path,
        out: Path,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ):
        self._out = out
        args = [str(script), *args]
        self._process = FORKS.Process(target=_run, args=(args, out, env or {}))
        self._process.start()

    def wait(self) -> str:
        """Returns the script's output, once it has ended without an error."""
        self._process.join(300)
        self._process.kill()
        text = self._out.read_text()
        assert self._process.exitcode == 0, text
        return text


def _run(args: list[str], out: Path, env: Mapping[str, str]) -> None:
    os.chdir(TOP)
    os.environ.update(env)
    with out.open('w') as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.argv = args
    sys.path.insert(0, str(Path(args[0]).parent))  # as Python does
    runpy.run_path(args[0], run_name='__main__')
