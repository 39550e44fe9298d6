"""Compiles generated C++ on first use, and caches it on disk.

A library (or machine code of :mod:`~torch_gsample.codegen.nvrtc`) is cached
under the hash of its source, the compiler, its flags and the processor. It
ends with its own digest, so a truncated or changed file is rebuilt instead of
loaded. A library runs with the permissions of this process: files that other
users own or can write to are not trusted, and a library is loaded through the
checked descriptor, even if its name is replaced meanwhile.
"""

import atexit
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from torch_gsample.locks import HAS_OWNERS, new_lock
from torch_gsample.owned_folder import OwnedFolder, owned_folder

#: No contraction of a * b + c: results must not depend on the processor.
#: Only marked loops are vectorised, because it slows down ordered sums.
FLAGS = (
    *('-std=c++14', '-O2', '-fopenmp-simd', '-march=native', '-fPIC'),
    *('-shared', '-ffp-contract=off', '-fno-math-errno'),
    # GCC 12 miscompiles comparisons there: see setup.py.
    *(['-fno-tree-slp-vectorize'] if platform.machine() == 'aarch64' else []),
)
#: Language and libraries; kernels need no C++ runtime. macOS has one library.
_LIBRARIES = ('-nostdlib', '-lm', '-lgcc', '-lc')
_INPUT = '-x', 'c++', '-', *(_LIBRARIES if sys.platform == 'linux' else ())

_SECONDS = 120  # for one compilation
_DIGEST = hashlib.sha256().digest_size
_lock = new_lock()
#: Threads wait for a thread that builds the same kernel; others build in
#: parallel.
_building: dict[str, threading.Lock] = {}
_warned: set[str] = set()


class BuildError(RuntimeError):
    """There is no compiler, it failed, or a kernel cannot be generated."""


def build(source: str, flags: tuple[str, ...] = ()) -> BinaryIO:
    """Opens the checked shared library of a C++ source.

    Args:
        source (str): The source.
        flags (Tuple[str, ...], optional): Of the compiler, after
            :data:`FLAGS`.

    Raises:
        BuildError: If there is no compiler, or it fails; the error names it.
    """
    if not HAS_OWNERS:
        raise BuildError('kernels are not compiled on Windows')
    compiler = shutil.which(os.environ.get('CXX', 'g++'))
    if compiler is None:
        name = os.environ.get('CXX', 'g++')
        raise BuildError(f'the compiler {name!r} was not found')
    state = os.stat(compiler)
    flags = *FLAGS, *flags
    version = compiler, state.st_size, state.st_mtime_ns
    parts = version, flags, _INPUT, _processor()
    key = hashlib.sha256(repr((parts, source)).encode()).hexdigest()[:32]
    # Other processes may build the same; one result is cached.
    with _building.setdefault(key, new_lock()):
        return kept(
            f'{key}.so', lambda path: _compile(compiler, source, path, flags)
        )


def kept(name: str, make: Callable[[Path], None]) -> BinaryIO:
    """Opens a cached file; creates it if none can be trusted.

    Args:
        name (str): Of the file.
        make (Callable): Creates the file at a path.

    Raises:
        BuildError: If no folder can hold it.
    """
    with _lock:
        folders = _user_folder(), _temporary_folder(os.getpid())
    for folder in folders:
        if folder is None:
            continue
        path = folder / name
        file = _open(path)
        if file is None:
            try:
                make(path)
            except OSError:  # the folder is read-only, or the disk is full
                continue
            file = _open(path)
        if file is not None:
            return file
    raise BuildError('no folder is writable for kernels')


def warn_once(error: BuildError) -> None:
    """Warns once for each reason that generated kernels are unavailable."""
    _warn_once(f'{error}: torch operators run instead of generated kernels')


def _warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        warnings.warn(f'gsample: {message}', stacklevel=3)


def _compile(
    compiler: str, source: str, path: Path, flags: tuple[str, ...]
) -> None:
    """Builds a temporary file, and renames it."""
    with _beside(path) as target:
        try:
            done = subprocess.run(
                [compiler, *flags, *_INPUT, '-o', target],
                input=source,
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                umask=0o077,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BuildError(f'{compiler} failed: {error}') from error
        if done.returncode != 0 or not target.stat().st_size:
            lines = done.stderr.strip().splitlines() or ['it says nothing']
            raise BuildError(f'{compiler} failed: {lines[0]}')


def write(path: Path, data: bytes) -> None:
    """Writes a file of :func:`kept`."""
    with _beside(path) as target:
        target.write_bytes(data)


def read(file: BinaryIO) -> bytes:
    """Returns the data passed to :func:`write`."""
    return file.read()[:-_DIGEST]


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A temporary file that is renamed, with its digest."""
    with owned_folder(path.parent, 'build-') as folder:
        target = folder / path.name
        target.touch(0o600)
        yield target
        digest = hashlib.sha256(target.read_bytes()).digest()
        with target.open('ab') as file:
            file.write(digest)
        target.chmod(0o700)
        os.replace(target, path)


def _open(path: Path) -> BinaryIO | None:
    """Opens a cached file; None if it cannot be trusted."""

    def opener(name: str, flags: int) -> int:
        # Opening a named pipe would block.
        return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK)

    try:
        file = open(path, 'rb', opener=opener)  # noqa: SIM115
    except FileNotFoundError:
        return None
    except OSError as error:  # a link, or a folder
        fault: str | None = error.strerror
    else:
        fault = _fault_of_file(file)
        if fault is None:
            return file
        file.close()
    message = f'gsample: {path} is built again: {fault}'
    warnings.warn(message, stacklevel=2)
    return None


def _fault_of_file(file: BinaryIO) -> str | None:
    """Returns why a cached file cannot be trusted."""
    state = os.fstat(file.fileno())
    fault = _fault(state)
    if not stat.S_ISREG(state.st_mode):
        fault = 'it is no regular file'
    if fault is None:
        data = file.read()
        digest = hashlib.sha256(data[:-_DIGEST]).digest()
        if len(data) <= _DIGEST or digest != data[-_DIGEST:]:
            fault = 'it is damaged'
        file.seek(0)
    return fault


def _fault(state: os.stat_result, shared: int = 0) -> str | None:
    """Returns which other user could inject code through a file or folder.

    Args:
        state (os.stat_result): Its owner and mode.
        shared (int): Allowed mode bits.
    """
    if not HAS_OWNERS:
        return 'its owner is unknown on this system'
    if state.st_uid not in (0, os.geteuid()):
        return f'it belongs to user {state.st_uid}'
    if state.st_mode & 0o022 & ~shared:
        return 'other users can write to it'
    return None


def _fault_of_folder(folder: Path) -> str | None:
    """Returns why a folder cannot hold libraries; checks its parents, too."""
    for place in (folder, *folder.parents):
        state, shared = place.stat(), 0
        if place != folder and state.st_mode & stat.S_ISVTX:
            shared = 0o022  # nobody can rename other users' files there
        elif place != folder and HAS_OWNERS and state.st_gid == os.getegid():
            shared = stat.S_IWGRP  # users often have a private group
        fault = _fault(state, shared)
        if fault is not None:
            return fault if place == folder else f'{place}: {fault}'
    return None


def _user_folder() -> Path | None:
    """The user's own folder of libraries, if it can be trusted."""
    given = os.environ.get('GSAMPLE_CACHE_DIR')
    base = os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache'
    folder = Path(given) if given else Path(base) / 'torch_gsample'
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = folder.resolve(strict=True)
        fault = _fault_of_folder(folder)
    except OSError:
        return None
    if fault is None:
        return folder
    _warn_once(f'the kernel cache {folder} is not used: {fault}')
    return None


@lru_cache(maxsize=1)
def _temporary_folder(process: int) -> Path:
    """A folder removed with its process."""
    folder = OwnedFolder(tempfile.gettempdir(), 'torch_gsample_')
    atexit.register(folder.remove)
    return folder.path


@lru_cache(maxsize=1)
def _processor() -> str:
    """The properties that determine ``-march=native``."""
    info = Path('/proc/cpuinfo')
    lines = info.read_text().splitlines() if info.exists() else []
    wanted = 'vendor_id', 'cpu family', 'model', 'flags', 'Features'
    found = {line for line in lines if line.split(':')[0].strip() in wanted}
    return '\n'.join([platform.machine(), *sorted(found)])
