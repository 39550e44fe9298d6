"""The folder of a job that can be resumed after the loss of its driver.

Arguments and progress records come in; sealed JSON files go out, which a later
driver reads. One driver at a time locks the folder.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch_gsample.spark.shard_files import RUN, file_system, put
from torch_gsample.storage.format import is_sealed, malformed, seal

_VERSION = 1


def local_folder(op: str, name: str, path: str | Path) -> Path:
    """Returns a folder on a mounted file system; it need not exist.

    Args:
        op (str): The function, for errors.
        name (str): The argument.
        path (str or Path): Its value, a path or a ``file://`` URL.

    Raises:
        ValueError: If it is a URL of another kind, or a file.
    """
    protocol, _, rest = str(path).rpartition('://')
    if protocol not in ('', 'file', 'local'):
        raise ValueError(
            f"{op}: '{name}' must be a folder on a file system with locks "
            f'(got {str(path)!r})'
        )
    folder = Path(rest).expanduser().absolute()
    if folder.exists() and not folder.is_dir():
        raise ValueError(
            f"{op}: '{name}' must be a folder (got the file {str(path)!r})"
        )
    return folder


@contextmanager
def run_folder(
    op: str,
    path: str | Path,
    arguments: dict[str, Any],
    defaults: Mapping[str, Any] | None = None,
) -> Iterator[Path]:
    """Creates the folder of a job, or opens it for equal arguments.

    The lock lasts until the block or the process ends, in any way.

    Args:
        op (str): The function, for errors.
        path (str or Path): The folder.
        arguments (Dict[str, Any]): The arguments that determine the results.
        defaults (Dict[str, Any], optional): Of arguments that are not given.

    Raises:
        RuntimeError: If another driver has the folder.
        ValueError: If its arguments differ (the error names the first one), it
            has files but no arguments, or the file system has no locks.
    """
    folder = local_folder(op, 'path', path)
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / 'lock', os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RuntimeError(
                f'{op}: another driver writes to {str(folder)!r}'
            ) from error
        # Integers of NumPy are plain ones in the file.
        plain = json.loads(json.dumps(arguments, default=int))
        _check_arguments(op, folder, plain, defaults or {})
        yield folder
    finally:
        os.close(lock)


def _check_arguments(
    op: str,
    folder: Path,
    arguments: dict[str, Any],
    defaults: Mapping[str, Any],
) -> None:
    """Writes the arguments of a job, or compares them."""
    path = folder / RUN
    if not path.exists():
        # A driver that was killed leaves a lock, and half of the arguments.
        others = sorted(
            other.name
            for other in folder.iterdir()
            if other.name != 'lock' and not other.name.startswith(('.', RUN))
        )
        if others:
            raise ValueError(
                f'{op}: {str(folder)!r} must be an empty folder or have '
                f'{RUN!r}, which has the arguments of its files (got '
                f'{others[0]!r})'
            )
        fields = {'op': op, 'version': _VERSION, 'arguments': arguments}
        write_record(path, fields)
        return
    found = read_record(op, path)
    if (found.get('op'), found.get('version')) != (op, _VERSION):
        rule = f"'op' and 'version' must be {op!r} and {_VERSION}"
        malformed(path, 0, rule, op)
    known = found['arguments']
    for name in [*arguments, *known]:
        default = defaults.get(name)
        old, new = known.get(name, default), arguments.get(name, default)
        if new != old:
            raise ValueError(
                f'{op}: {str(folder)!r} was started with other arguments: '
                f'{name!r} must be {old!r} (got {new!r})'
            )


def write_record(path: Path, fields: dict[str, Any]) -> None:
    """Writes a sealed file atomically."""
    put(*file_system(path), seal(fields).encode())


def read_record(op: str, path: Path) -> Any:
    """Reads a file of :func:`write_record`.

    Raises:
        ValueError: If it is damaged.
    """
    text = path.read_bytes()
    if not is_sealed(text):
        malformed(path, 0, 'its checksum is wrong', op)
    return json.loads(text)
