"""A relation whose chunks are distributed over several directories.

Chunk i of n directories is in directory ``i % n``. Offsets refer to one
virtual file of all chunks in order; reads go to the actual files, on all disks
at once.
"""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from torch_gsample.storage.format import (
    LENGTH,
    OFFSET,
    GraphMeta,
    RelationMeta,
    malformed,
)
from torch_gsample.storage.reading import File

#: The description file of each further directory.
STRIPE = 'stripe.json'


class Stripes:
    """Maps offsets of a relation to files.

    Args:
        paths (List[Path]): A file for each directory.
        relation (RelationMeta): The relation.
    """

    def __init__(self, paths: list[Path], relation: RelationMeta):
        self.paths = paths
        self._start = relation.chunks[:, OFFSET]
        length = relation.chunks[:, LENGTH]
        # A chunk's offset in its file: after the earlier chunks of that file.
        self._inside = np.zeros_like(length)
        for i in range(len(paths)):
            own = length[i :: len(paths)]
            self._inside[i :: len(paths)] = np.cumsum(own) - own

    def cut(
        self, offset: np.ndarray, size: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Cuts ranges at the ends of chunks.

        Args:
            offset (numpy.ndarray): int64 ``[n]``.
            size (numpy.ndarray): int64 ``[n]``, above 0.

        Returns:
            Tuple[numpy.ndarray, numpy.ndarray]: The file of each piece, and
            int64 ``[num_pieces, 3]``: offset in the file, size, and offset in
            the concatenated output.
        """
        first = np.searchsorted(self._start, offset, 'right') - 1
        last = np.searchsorted(self._start, offset + size - 1, 'right') - 1
        count = last - first + 1
        of = np.repeat(np.arange(len(offset)), count)
        before = np.repeat(np.cumsum(count) - count, count)
        chunk = first[of] + np.arange(len(of)) - before
        # A range beyond the last chunk is read there, which is an error.
        ends = np.append(self._start[1:], np.iinfo(np.int64).max)
        begin = np.maximum(offset[of], self._start[chunk])
        end = np.minimum((offset + size)[of], ends[chunk])
        to = (np.cumsum(size) - size)[of] + begin - offset[of]
        at = self._inside[chunk] + begin - self._start[chunk]
        return chunk % len(self.paths), np.stack([at, end - begin, to], 1)

    def where(self, offset: int) -> tuple[Path, int]:
        """Returns the file of an offset, and the offset in it."""
        part, ranges = self.cut(np.array([offset]), np.array([1]))
        return self.paths[int(part[0])], int(ranges[0, 0])


class StripedFile:
    """The files of a relation in several directories, read as one.

    Args:
        paths (List[Path]): A file for each directory.
        relation (RelationMeta): The relation.
        direct (bool, optional): See :class:`File`.

    Raises:
        OSError: If one cannot be opened.
    """

    def __init__(
        self, paths: list[Path], relation: RelationMeta, direct: bool = False
    ):
        self.path = Stripes(paths, relation)
        self._files = [File(path, direct) for path in paths]
        self.depth = len(paths)

    def close(self) -> None:
        """Closes the files; further calls have no effect."""
        for file in self._files:
            file.close()

    def identity(self) -> tuple[int, ...]:
        """An identity that changes with the files."""
        return sum((file.identity() for file in self._files), ())

    def read(
        self,
        offset: int,
        out: np.ndarray,
        stopped: threading.Event | None = None,
    ) -> None:
        """Fills ``out``; see :meth:`File.read`."""
        if out.size == 0:
            return
        parts, ranges = self.path.cut(np.array([offset]), np.array([out.size]))
        for part, (at, size, to) in zip(
            parts.tolist(), ranges.tolist(), strict=True
        ):
            self._files[part].read(at, out[to : to + size], stopped)

    def read_ranges(
        self,
        offset: np.ndarray,
        size: np.ndarray,
        out: np.ndarray,
        engine: str = 'auto',
    ) -> str:
        """Reads ranges from all disks; see :meth:`File.read_ranges`."""
        assert int(size.sum()) <= out.size
        parts, ranges = self.path.cut(offset, size)

        def read(i: int) -> str:
            return self._files[i].read_to(ranges[parts == i], out, engine)

        wanted = np.unique(parts).tolist() or [0]
        with ThreadPoolExecutor(len(wanted)) as threads:
            used = list(threads.map(read, wanted))
        return used[0]


def open_relation(
    folder: Path, meta: GraphMeta, relation: RelationMeta, direct: bool
) -> File | StripedFile:
    """Opens the file(s) of a relation.

    Raises:
        OSError: If one cannot be opened.
    """
    paths = meta.files(folder, relation)
    if len(paths) == 1:
        return File(paths[0], direct)
    return StripedFile(paths, relation, direct)


def stripe_text(meta: GraphMeta, number: int, path: Path) -> str:
    """Returns the description of a directory.

    Args:
        meta (GraphMeta): The graph.
        number (int): The index of the directory, from 1.
        path (Path): The directory of the graph.
    """
    return json.dumps(
        {
            'format': 'gsample stripe',
            'generation': f'{meta.generation:016x}',
            'number': number,
            'graph': str(path),
        }
    )


def check_stripes(folder: Path, meta: GraphMeta) -> None:
    """Checks that the directories of a graph exist and belong to it.

    Raises:
        FileNotFoundError: If one is missing.
        ValueError: If one belongs to another graph.
    """
    for number, directory in enumerate(meta.directories, 1):
        file = Path(directory) / STRIPE
        try:
            found = json.loads(file.read_bytes())
        except FileNotFoundError as error:
            raise FileNotFoundError(
                error.errno,
                f'directory {number} of the graph {folder} is missing',
                str(file),
            ) from error
        except (ValueError, RecursionError) as error:
            malformed(file, 0, f'it is no JSON text ({error})')
        want = f'{meta.generation:016x}', number
        found = found if isinstance(found, dict) else {}
        got = found.get('generation'), found.get('number')
        if got != want:
            malformed(
                file,
                0,
                f'it must be directory {number} of the graph {folder}, '
                f'generation {want[0]} (got {got[1]!r} of {got[0]!r})',
            )
