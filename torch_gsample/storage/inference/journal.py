"""Facts that survive a kill, in lines with checksums.

JSON objects come in and go out. A line that a kill has torn is no line; one
that is complete and not as it was written is an error.
"""

import json
import os
from pathlib import Path
from typing import Any

from torch_gsample.storage.crc32c import crc32c
from torch_gsample.storage.format import malformed
from torch_gsample.storage.new_file import naming, write_at


def sealed(fields: dict[str, Any]) -> bytes:
    r"""Returns a line: a JSON object, its CRC-32C, and its end.

    Example:
        >>> sealed({'a': 1})
        b'{"a": 1} 6f4c8c94\n'
    """
    text = json.dumps(fields).encode()
    return text + f' {crc32c(text):08x}\n'.encode()


def unsealed(path: Path, offset: int, line: bytes) -> dict[str, Any]:
    """Returns the object of a line.

    Raises:
        ValueError: If it is not as it was written; it names the file and the
            offset of the line.
    """
    text = line[:-10]
    if len(line) < 12 or line != text + f' {crc32c(text):08x}\n'.encode():
        malformed(
            path,
            offset,
            f'the checksum of {len(line)} bytes is wrong; '
            "'restart=True' computes everything again",
            'infer',
        )
    return json.loads(text)


class Journal:
    """Facts that are on disk when :meth:`add` returns.

    A process that is killed leaves at most one line without an end, which is
    cut off.

    Args:
        path (Path): The file; made if it is not there.

    Raises:
        OSError: If it cannot be read or written.
        ValueError: If a line is damaged; it names the file and the offset.
    """

    def __init__(self, path: Path):
        self.path = path
        self.facts: dict[str, dict[str, Any]] = {}
        self._end, self._fd = 0, -1
        data = path.read_bytes() if path.exists() else b''
        *lines, _ = data.split(b'\n')
        for line in (text + b'\n' for text in lines):
            fields = unsealed(path, self._end, line)
            self._end += len(line)
            self.facts.setdefault(fields.pop('file'), {}).update(fields)
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        os.ftruncate(self._fd, self._end)

    def add(self, file: str, **fields: Any) -> None:
        """Adds facts of a file.

        Raises:
            OSError: If the disk is full; it names the file and the offset.
        """
        line = sealed({'file': file, **fields})
        with naming(self.path):
            write_at(self._fd, line, self._end, self.path)
            os.fdatasync(self._fd)
        self._end += len(line)
        self.facts.setdefault(file, {}).update(fields)

    def close(self) -> None:
        """Closes the file; once is enough."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
