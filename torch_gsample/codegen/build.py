"""Compiles generated C++ at first use, and keeps it on disk.

A library (or what :mod:`~torch_gsample.codegen.nvrtc` made) is kept under the
hash of its text, the compiler, its flags and the processor. It ends with a
digest of itself, so that one that was cut off or changed is built again, not
loaded. A library runs with the rights of this process: what others own or may
write is not trusted, and a library is loaded through the descriptor that was
checked, whatever takes its name meanwhile.
"""

import atexit
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from torch_gsample.owned_folder import OwnedFolder, owned_folder

#: No contraction of a * b + c: results must not depend on the processor.
#: Only loops that say so are vectorised: sums in order become slower by it.
FLAGS = (
    *('-std=c++14', '-O2', '-fopenmp-simd', '-march=native', '-fPIC'),
    *('-shared', '-ffp-contract=off', '-fno-math-errno'),
    # GCC 12 counts comparisons wrongly there: see setup.py.
    *(['-fno-tree-slp-vectorize'] if platform.machine() == 'aarch64' else []),
)
#: What is compiled, and the libraries that it is linked with: it takes nothing
#: of C++'s.
_INPUT = '-x', 'c++', '-', '-nostdlib', '-lm', '-lgcc', '-lc'

_SECONDS = 120  # that a compiler may take
_DIGEST = hashlib.sha256().digest_size
_lock = threading.Lock()
#: Threads wait for the one that builds the same; others build meanwhile.
_building: dict[str, threading.Lock] = {}
_warned: set[str] = set()


class BuildError(RuntimeError):
    """There is no compiler, it failed, or a kernel cannot be written."""


def build(source: str, flags: tuple[str, ...] = ()) -> BinaryIO:
    """Opens the shared library of a C++ source, checked.

    Args:
        source (str): Its text.
        flags (Tuple[str, ...], optional): Of the compiler, after
            :data:`FLAGS`.

    Raises:
        BuildError: If there is no compiler, or it fails; says which one.
    """
    compiler = shutil.which(os.environ.get('CXX', 'g++'))
    if compiler is None:
        name = os.environ.get('CXX', 'g++')
        raise BuildError(f'the compiler {name!r} was not found')
    state = os.stat(compiler)
    flags = *FLAGS, *flags
    version = compiler, state.st_size, state.st_mtime_ns
    parts = version, flags, _INPUT, _processor()
    key = hashlib.sha256(repr((parts, source)).encode()).hexdigest()[:32]
    # Other processes build the same, and one is kept.
    with _building.setdefault(key, threading.Lock()):
        return kept(
            f'{key}.so', lambda path: _compile(compiler, source, path, flags)
        )


def kept(name: str, make: Callable[[Path], None]) -> BinaryIO:
    """Opens a file of the cache, which is made where none can be trusted.

    Args:
        name (str): Of the file.
        make (Callable): Makes it at a path.

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
    """Says, once for each reason, that there are no generated kernels."""
    _warn_once(f'{error}: torch operators run instead of generated kernels')


def _warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        warnings.warn(f'gsample: {message}', stacklevel=3)


def _compile(
    compiler: str, source: str, path: Path, flags: tuple[str, ...]
) -> None:
    """Builds beside the place, then moves it there in one step."""
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
    """Returns what :func:`write` was given."""
    return file.read()[:-_DIGEST]


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A file that is moved to a place in one step, with its digest."""
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
    """Opens a file of the cache; nothing if it cannot be trusted."""

    def opener(name: str, flags: int) -> int:
        # A named pipe would be waited for.
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
    """Why a file of the cache cannot be trusted."""
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
    """Who else could make this process run anything through a file or folder.

    Args:
        state (os.stat_result): Its owner and mode.
        shared (int): Bits of the mode that do no harm.
    """
    if state.st_uid not in (0, os.geteuid()):
        return f'it belongs to user {state.st_uid}'
    if state.st_mode & 0o022 & ~shared:
        return 'other users can write to it'
    return None


def _fault_of_folder(folder: Path) -> str | None:
    """Why a folder cannot hold libraries: who owns one above could swap it."""
    for place in (folder, *folder.parents):
        state, shared = place.stat(), 0
        if place != folder and state.st_mode & stat.S_ISVTX:
            shared = 0o022  # nobody moves there what belongs to others
        elif place != folder and state.st_gid == os.getegid():
            shared = stat.S_IWGRP  # users often have a group of their own
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
    """A folder that goes with its process."""
    folder = OwnedFolder(tempfile.gettempdir(), 'torch_gsample_')
    atexit.register(folder.remove)
    return folder.path


@lru_cache(maxsize=1)
def _processor() -> str:
    """What ``-march=native`` depends on."""
    info = Path('/proc/cpuinfo')
    lines = info.read_text().splitlines() if info.exists() else []
    wanted = 'vendor_id', 'cpu family', 'model', 'flags', 'Features'
    found = {line for line in lines if line.split(':')[0].strip() in wanted}
    return '\n'.join([platform.machine(), *sorted(found)])
