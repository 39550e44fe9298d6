"""An unnamed file for data written once and read once.

Bytes are written and read by offset; read ranges are freed. The system removes
the file when its process ends, in any way.
"""

import ctypes
import errno
import fcntl
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from torch_gsample.storage.new_file import write_at, write_error
from torch_gsample.storage.reading import File

#: Errors of a full disk, an exceeded quota or a file size limit.
FULL = errno.ENOSPC, errno.EDQUOT, errno.EFBIG
#: Disk space left free.
_SPARE = 64 << 20
_FREE = 0x3  # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE
_UNKNOWN = errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL


class ScratchFile(File):
    """A new unnamed file.

    Args:
        folder (Path): A folder on the target disk.
        direct (bool, optional): See :class:`File`; offsets, sizes and
            addresses must then be multiples of a block.

    Raises:
        OSError: If it cannot be created.

    Example:
        >>> file = ScratchFile(Path(tempfile.gettempdir()))
        >>> file.write(3, b'abc')
        >>> file.free(0, 6)
        >>> file.close()
    """

    def __init__(self, folder: Path, direct: bool = False):
        self.path, self.direct, self.fd = folder, direct, -1
        self._process = os.getpid()
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            self.fd = os.dup(file.fileno())
        if direct:
            flags = fcntl.fcntl(self.fd, fcntl.F_GETFL)
            try:
                fcntl.fcntl(self.fd, fcntl.F_SETFL, flags | os.O_DIRECT)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                self.direct = False

    def reserve(self, size: int) -> None:
        """Reserves the first ``size`` bytes, if the file system supports it.

        Raises:
            OSError: If the disk has less space.
        """
        self._allocate(0, 0, size)

    def write(self, offset: int, data: Any) -> None:
        """Writes bytes.

        Raises:
            OSError: If it fails; the error names the folder and the offset.
        """
        write_at(self.fd, data, offset, self.path)

    def free(self, offset: int, size: int) -> None:
        """Frees space, if the file system supports it."""
        with suppress(OSError):
            if self._process == os.getpid():
                self._allocate(_FREE, offset, size)

    def _allocate(self, mode: int, offset: int, size: int) -> None:
        if size <= 0:
            return
        library = ctypes.CDLL(None, use_errno=True)
        code = library.fallocate(
            ctypes.c_int(self.fd),
            ctypes.c_int(mode),
            ctypes.c_int64(offset),
            ctypes.c_int64(size),
        )
        if code != 0 and ctypes.get_errno() not in _UNKNOWN:
            raise write_error(self.path, offset, ctypes.get_errno())

    def close(self) -> None:
        """Frees the file, even if a forked process has it open."""
        if self.fd >= 0 and self._process == os.getpid():
            os.ftruncate(self.fd, 0)
        super().close()


def free_space(folder: Path) -> int:
    """Returns the free bytes of a folder's disk."""
    facts = os.statvfs(folder)
    return max(facts.f_bavail * facts.f_frsize - _SPARE, 0)
