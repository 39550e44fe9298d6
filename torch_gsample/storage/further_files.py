"""Checksums of further files in the folder of a graph, such as table rows.

Callers of writers add files. The descriptions of the graph and its segments
have their checksums; a reader checks a file before it uses it.
"""

import os
from pathlib import Path

from torch_gsample.storage.crc32c import BLOCK, crc32c
from torch_gsample.storage.feature_format import CHECKSUM_AT, MAGIC
from torch_gsample.storage.format import GraphMeta, malformed
from torch_gsample.storage.reading import file_identity

_PIECE = 4 << 20  # bytes read at once


def further_checksums(
    folder: Path, described: set[str], meta: GraphMeta, prefix: str = ''
) -> dict[str, int]:
    """Returns the checksum of each file that a description does not have.

    Args:
        folder (Path): The folder of the graph or of a segment.
        described (Set[str]): The names of its other files.
        meta (GraphMeta): The graph.
        prefix (str, optional): What precedes names: a segment and ``'/'``.
    """
    names = sorted(set(os.listdir(folder)) - described)
    return {
        name: _checksum(folder / name, meta.file_seed(prefix + name))
        for name in names
    }


def _checksum(path: Path, crc: int) -> int:
    """Returns the checksum of a file; of a feature file, of its header.

    The header has a generation and the checksum of checksums, so it determines
    the file. Its own checksum is left out: a CRC of data and their CRC is a
    constant.
    """
    with open(path, 'rb') as file:
        data = file.read(BLOCK)
        if data.startswith(MAGIC):
            return crc32c(data[:CHECKSUM_AT], crc)
        while data:
            crc = crc32c(data, crc)
            data = file.read(_PIECE)
    return crc


class FurtherFiles:
    """The further files of a graph and its segments, and their checksums.

    Args:
        folder (Path): The folder of the graph.
        meta (GraphMeta): The graph.
        checksums (Dict[str, int]): The checksum of each file that has one, by
            its path in the folder.
        verify (str): See :class:`ChunkedGraph`.
    """

    def __init__(
        self,
        folder: Path,
        meta: GraphMeta,
        checksums: dict[str, int],
        verify: str,
    ):
        self._folder, self._meta, self._verify = folder, meta, verify
        self._checksums = checksums
        self._checked: dict[Path, tuple[int, ...]] = {}

    def check(self, path: Path) -> None:
        """Checks that a file is the one that was written.

        Files of earlier releases have no checksum, and are not checked.

        Raises:
            OSError: If it cannot be read.
            ValueError: If it is damaged or another file.
        """
        name = str(path.relative_to(self._folder))
        want = self._checksums.get(name)
        if want is None or self._verify == 'never':
            return
        found = file_identity(os.stat(path))
        if self._verify == 'once' and self._checked.get(path) == found:
            return
        if _checksum(path, self._meta.file_seed(name)) != want:
            rule = 'its checksum is wrong: it is damaged or another file'
            malformed(path, 0, rule)
        self._checked[path] = found
