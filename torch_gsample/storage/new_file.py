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


class NewFile(io.FileIO):
    """A new file without a buffer, so that closing it cannot fail to write.

    Args:
        path (Path): The file; what it holds is lost.
    """

    def __init__(self, path: Path):
        super().__init__(path, 'wb')

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
                code = error.errno or 0
                text = f'{os.strerror(code)} (writing offset {self.tell()})'
                raise OSError(code, text, str(self.name)) from None
        return done

    def sync(self) -> None:
        """Waits until the file is on disk."""
        with naming(str(self.name)):
            os.fsync(self.fileno())


def write_new(path: Path, text: str) -> None:
    """Writes a file of text; see :class:`NewFile`."""
    with NewFile(path) as file:
        file.write(text.encode())
