"""Files that are written, whose errors say where.

A path and bytes come in; the file goes out, or an error of the system that
names it and the offset.
"""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_PIECE = 8 << 20  # bytes of one write; Ctrl-C waits for it


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Makes errors of the system name a file, unless they name one."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        code = error.errno or 0
        raise OSError(code, os.strerror(code), str(path)) from error


def write_error(path: str | Path, offset: int, code: int | None) -> OSError:
    """Returns the error of a write at an offset of a file."""
    code = code or 0
    text = f'{os.strerror(code)} (writing offset {offset})'
    return OSError(code, text, str(path))


def write_at(fd: int, data: Any, offset: int, path: str | Path) -> None:
    """Writes all bytes at an offset of a file.

    Raises:
        OSError: If it fails; the error names ``path`` and the offset.
    """
    view, done = memoryview(data).cast('B'), 0
    while done < len(view):  # a full disk takes a part, and then raises
        part = view[done : done + _PIECE]
        try:
            done += os.pwrite(fd, part, offset + done)
        except OSError as error:
            raise write_error(path, offset + done, error.errno) from None


class NewFile(io.FileIO):
    """A new file without a buffer, so that closing it cannot fail to write.

    Args:
        path (Path): The file; what it holds is lost.
        mode (str, optional): ``'r+b'`` to continue a file.
    """

    def __init__(self, path: Path, mode: str = 'wb'):
        super().__init__(path, mode)

    def write(self, data: Any) -> int:
        """Writes all bytes; returns their number.

        Raises:
            OSError: If it fails; the error names the file and the offset.
        """
        view = memoryview(data)
        view = view.cast('B') if view.nbytes else memoryview(b'')
        done = 0
        while done < len(view):  # a full disk takes a part, and then raises
            try:
                done += super().write(view[done:])
            except OSError as error:
                raise write_error(
                    self.name, self.tell(), error.errno
                ) from None
        return done

    def sync(self) -> None:
        """Waits until the file is on disk."""
        with naming(str(self.name)):
            os.fsync(self.fileno())


def write_new(path: Path, text: str) -> None:
    """Writes a file of text; see :class:`NewFile`."""
    with NewFile(path) as file:
        file.write(text.encode())
