"""Runs a script of PyG's with our samplers."""

import os
import runpy
import sys
import traceback
from collections.abc import Sequence
from types import TracebackType

from torch_gsample.patch import patch_pyg


def run_script(script: str, args: Sequence[str], module: bool = False) -> int:
    """Runs a script as ``python`` would, with PyG patched.

    Args:
        script (str): Its path, or the name of a module.
        args (Sequence[str]): Its arguments.
        module (bool, optional): Whether ``script`` names a module, as
            ``python -m`` takes it.

    Returns:
        int: The exit status: 1 after an error, whose traceback was printed as
        Python would have printed it. ``sys.exit()`` of the script is not
        caught.

    Raises:
        FileNotFoundError: If there is no such script.
    """
    if not module and not os.path.exists(script):
        raise FileNotFoundError(f'run: there is no script {script!r}')
    before = sys.argv, sys.path[:]
    sys.argv = [script, *args]
    folder = os.getcwd() if module else os.path.dirname(script)
    sys.path.insert(0, os.path.abspath(folder))
    try:
        with patch_pyg():
            if module:
                runpy.run_module(script, run_name='__main__', alter_sys=True)
            else:
                runpy.run_path(script, run_name='__main__')
    except Exception as error:
        frames = _of_script(error.__traceback__)
        traceback.print_exception(type(error), error, frames)
        return 1
    finally:
        sys.argv, sys.path[:] = before
    return 0


def _of_script(frames: TracebackType | None) -> TracebackType | None:
    """Leaves out the frames that led to the script."""
    hidden = __file__, runpy.__file__, '<frozen runpy>'
    while frames and frames.tb_frame.f_code.co_filename in hidden:
        frames = frames.tb_next
    return frames
