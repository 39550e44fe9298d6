"""Compiler outputs, cached in ``build/tests`` for the next run."""

import functools
import hashlib
import os
import shutil
import subprocess
import time
from pathlib import Path

import torch
from filelock import FileLock

TOP = Path(__file__).resolve().parents[1]
CSRC = TOP / 'csrc'
FOLDER = TOP / 'build' / 'tests'
#: Outputs unused for this long belong to sources that have changed.
_WEEK = 7 * 86_400


def made_of(command, *sources):
    """A hash of a compiler, its flags, and all included sources.

    Paths are excluded: only the contents of a folder of headers matter.
    """
    name, *flags = command
    folders = {CSRC, *(source.parent for source in sources)}
    folders |= {Path(flag[2:]) for flag in flags if flag.startswith('-I')}
    flags = [flag for flag in flags if not flag.startswith('-I')]
    state = os.stat(shutil.which(name))
    parts = [
        torch.__version__,
        repr((flags, state.st_size, state.st_mtime_ns)),
        *(source.read_text() for source in sources),
        *sorted(map(headers, folders)),
    ]
    return hashlib.sha256('\0'.join(parts).encode()).hexdigest()[:16]


@functools.cache
def headers(folder):
    """A hash of the headers in a folder of sources."""
    paths = (p for p in folder.rglob('*') if p.suffix in ('.h', '.cuh'))
    texts = [(str(p.relative_to(folder)), p.read_text()) for p in paths]
    return hashlib.sha256(repr(sorted(texts)).encode()).hexdigest()


def path_of(command, *sources):
    """The path of a cached compiler output."""
    _forget()
    return FOLDER / f'{sources[0].stem}-{made_of(command, *sources)}'


def make(command, output, *sources):
    """Runs a compiler; the output appears atomically."""
    part = output.with_suffix('.part')
    subprocess.run([*command, *sources, '-o', part], check=True)
    part.replace(output)


def program(command, *sources):
    """Compiles a program, or returns it from the cache."""
    output = path_of(command, *sources)
    with FileLock(f'{output}.lock'):
        if not output.exists():
            make(command, output, *sources)
    return output


@functools.cache
def _forget():
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in FOLDER.iterdir():
        if path.stat().st_atime < time.time() - _WEEK:
            path.unlink(missing_ok=True)
