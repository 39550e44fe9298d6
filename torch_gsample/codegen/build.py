"""Compiles generated C++ at first use, and keeps it on disk.

A library (or what :mod:`~torch_gsample.codegen.nvrtc` made) is kept under the
hash of its text, the compiler, its flags and the processor. It ends with a
digest of itself, so that one that was cut off or changed is built again, not
loaded.
"""

import atexit
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from torch_gsample.owned_folder import OwnedFolder, owned_folder

#: No contraction of a * b + c: results must not depend on the processor.
#: Only loops that say so are vectorised: sums in order become slower by it.
FLAGS = (
    *('-std=c++14', '-O2', '-fopenmp-simd', '-march=native', '-fPIC'),
    *('-shared', '-ffp-contract=off', '-fno-math-errno'),
)

_SECONDS = 120  # that a compiler may take
_DIGEST = hashlib.sha256().digest_size
_lock = threading.Lock()
_warned: set[str] = set()


class BuildError(RuntimeError):
    """There is no compiler, it failed, or a kernel cannot be written."""


def build(source: str, flags: tuple[str, ...] = ()) -> Path:
    """Returns the shared library of a C++ source.

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
    parts = compiler, state.st_size, state.st_mtime_ns, flags, _processor()
    key = hashlib.sha256(repr((parts, source)).encode()).hexdigest()[:32]
    with _lock:  # of this process; others build the same, and one is kept
        return kept(
            f'{key}.so', lambda path: _compile(compiler, source, path, flags)
        )


def kept(name: str, make: Callable[[Path], None]) -> Path:
    """Returns a whole file of a name, which is made where it is missing.

    Args:
        name (str): Of the file.
        make (Callable): Makes it at a path.

    Raises:
        BuildError: If no folder can hold it.
    """
    for folder in (_user_folder(), _temporary_folder(os.getpid())):
        if folder is None:
            continue
        path = folder / name
        if _is_whole(path):
            return path
        try:
            make(path)
        except OSError:  # the folder is read-only, or the disk is full
            continue
        return path
    raise BuildError('no folder can hold a kernel')


def warn_once(error: BuildError) -> None:
    """Says, once for each reason, that there are no generated kernels."""
    message = str(error)
    if message not in _warned:
        _warned.add(message)
        warnings.warn(
            f'gsample: {message}: operators of torch run in the place of '
            f'generated kernels',
            stacklevel=2,
        )


def _compile(
    compiler: str, source: str, path: Path, flags: tuple[str, ...]
) -> None:
    """Builds beside the place, then moves it there in one step."""
    with _beside(path) as target:
        try:
            done = subprocess.run(
                [compiler, *flags, '-x', 'c++', '-', '-o', str(target)],
                input=source,
                capture_output=True,
                text=True,
                timeout=_SECONDS,
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


def read(path: Path) -> bytes:
    """Returns what :func:`write` was given."""
    return path.read_bytes()[:-_DIGEST]


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


def _is_whole(path: Path) -> bool:
    """Whether a library is there as it was written."""
    try:
        data = path.read_bytes()
    except OSError:
        return False
    digest = hashlib.sha256(data[:-_DIGEST]).digest()
    return len(data) > _DIGEST and digest == data[-_DIGEST:]


def _user_folder() -> Path | None:
    """The user's own folder of libraries, if it can be trusted."""
    given = os.environ.get('GSAMPLE_CACHE_DIR')
    base = os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache'
    folder = Path(given) if given else Path(base) / 'torch_gsample'
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.stat()
    except OSError:
        return None
    # Who else can write there could make this process run anything.
    own = state.st_uid in (0, os.getuid()) and not state.st_mode & 0o022
    return folder if own else None


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
