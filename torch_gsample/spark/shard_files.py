"""Packed mini-batches: Parquet files of about 128 MB, a row group a batch.

Rows of batches come in, a folder of shards and its ``index.json`` go out, and
tables of one row come back. The index has the offsets and checksums of all row
groups, and is written last: a folder without one is not complete. Nothing here
needs Spark.
"""

import io
import itertools
import json
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np

from torch_gsample.storage.crc32c import crc32c
from torch_gsample.storage.format import is_sealed, malformed, seal

INDEX = 'index.json'
#: The file of a folder with a subfolder for each epoch.
RUN = 'run.json'
FORMAT = 'gsample packed batches'
#: Version 1 is the only one.
VERSION = 1
_NAME = 'SampledParquetLoader'
#: Number of cached file footers.
_FOOTERS = 64


def file_system(path: Any) -> tuple[Any, str]:
    """Returns the file system of a path or URL, and the path in it."""
    from fsspec.core import url_to_fs

    system, root = url_to_fs(str(path))
    return system, root


def put(system: Any, path: str, data: bytes) -> None:
    """Writes a file atomically."""
    if 'file' not in np.atleast_1d(system.protocol):
        system.pipe_file(path, data)
        return
    hidden = f'{path}.{uuid.uuid4().hex}.tmp'
    try:
        system.pipe_file(hidden, data)
        system.mv(hidden, path)
    except BaseException:
        if system.exists(hidden):
            system.rm(hidden)
        raise


class Shard:
    """Collects batches, and writes them as one file.

    Args:
        first (int): The index of the first batch.
    """

    def __init__(self, first: int):
        self.first, self._sink = first, io.BytesIO()
        self._writer: Any = None

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._sink.tell()

    def add(self, row: Any) -> None:
        """Adds the table of one batch."""
        from pyarrow import parquet

        if self._writer is None:
            self._writer = parquet.ParquetWriter(
                self._sink, row.schema, use_dictionary=False
            )
        self._writer.write_table(row, row_group_size=row.num_rows)

    def write(self, system: Any, folder: str) -> dict[str, Any]:
        """Writes the file, and returns its entry of the index.

        A repeated task writes two files; the index has one of them.
        """
        from pyarrow import parquet

        self._writer.close()
        data = self._sink.getvalue()
        meta = parquet.ParquetFile(io.BytesIO(data)).metadata
        groups = range(meta.num_row_groups)
        begins = [_begin_of(meta.row_group(i)) for i in groups]
        footer = len(data) - 8 - int.from_bytes(data[-8:-4], 'little')
        bounds = [*begins, footer, len(data)]
        view = memoryview(data)
        checksums = [crc32c(view[a:b]) for a, b in itertools.pairwise(bounds)]
        name = f'batches-{self.first:08d}-{uuid.uuid4().hex[:8]}.parquet'
        put(system, f'{folder}/{name}', data)
        return {
            'file': name,
            'first': self.first,
            'bounds': bounds,
            'checksums': checksums,
        }


def _begin_of(group: Any) -> int:
    column = group.column(0)
    dictionary = column.dictionary_page_offset
    return column.data_page_offset if dictionary is None else dictionary


def write_index(
    system: Any,
    folder: str,
    facts: dict[str, Any],
    shards: list[Any],
    seeds: list[int] | None = None,
    epoch: int | None = None,
) -> None:
    """Writes the index, which makes a folder complete.

    Args:
        system (fsspec.AbstractFileSystem): Where the folder is.
        folder (str): The folder.
        facts (Dict[str, Any]): Of :meth:`BatchTypes.facts`.
        shards (List[Dict]): The results of :meth:`Shard.write`.
        seeds (List[int], optional): The number and a hash of the seeds, to
            compare.
        epoch (int, optional): The epoch of a run.
    """
    fields = {
        'format': FORMAT,
        'version': VERSION,
        'facts': facts,
        'seeds': seeds,
        'epoch': epoch,
        'shards': sorted(shards, key=lambda shard: shard['first']),
    }
    put(system, f'{folder}/{INDEX}', seal(fields).encode())


def num_batches(facts: dict[str, Any]) -> int:
    """Returns the number of batches of a sample."""
    return -(-facts['num_seeds'] // facts['batch_size'])


class PackedBatches:
    """The batches of one folder.

    Args:
        path (str): The folder, a path or a URL of ``fsspec``.

    Raises:
        FileNotFoundError: If the folder does not exist or is incomplete.
        ValueError: If the index is damaged.
    """

    def __init__(self, path: str):
        self.path = str(path)
        self._system, self._root = file_system(path)
        fields = self._read_index()
        self.facts: dict[str, Any] = fields['facts']
        self.seeds: list[int] | None = fields.get('seeds')
        #: The epoch of a run; None in runs of earlier releases.
        self.epoch: int | None = fields.get('epoch')
        self.shards: list[dict[str, Any]] = fields['shards']
        sizes = [len(shard['bounds']) - 2 for shard in self.shards]
        #: Number of batches of each shard, int64 ``[num_shards]``.
        self.sizes = np.array(sizes, np.int64)
        self._first = np.cumsum(self.sizes) - self.sizes
        self._footers: dict[int, Any] = {}

    def _read_index(self) -> Any:
        path = f'{self._root}/{INDEX}'
        if not self._system.exists(path):
            raise FileNotFoundError(
                f'{_NAME}: {self.path!r} is not a complete folder of '
                f'batches: it has no {INDEX!r}'
            )
        text = self._system.cat_file(path)
        if not is_sealed(text):
            malformed(path, 0, 'its checksum is wrong', _NAME)
        fields = json.loads(text)
        found = fields.get('format'), fields.get('version')
        if found != (FORMAT, VERSION):
            rule = f"'format' and 'version' must be {FORMAT!r} and {VERSION}"
            malformed(path, 0, f'{rule} (got {found})', _NAME)
        try:
            _check_shards(fields)
        except (ArithmeticError, LookupError, TypeError) as error:
            malformed(path, 0, f'a field is missing ({error!r})', _NAME)
        except ValueError as error:
            malformed(path, 0, str(error), _NAME)
        return fields

    def __len__(self) -> int:
        return int(self.sizes.sum())

    def name(self, index: int) -> str:
        """Returns the path of the file of a batch."""
        shard = int(np.searchsorted(self._first, index, 'right')) - 1
        return f'{self._root}/{self.shards[shard]["file"]}'

    def read(self, index: int) -> Any:
        """Returns the row of a batch.

        Raises:
            ValueError: If the batch is damaged.
        """
        from pyarrow import ArrowInvalid, PythonFile, parquet

        number = int(np.searchsorted(self._first, index, 'right')) - 1
        shard, group = self.shards[number], index - int(self._first[number])
        name = f'{self._root}/{shard["file"]}'
        bounds = shard['bounds']
        begin = bounds[group]
        data = self._bytes(name, shard, group)
        try:
            file = parquet.ParquetFile(
                PythonFile(_Window(begin, data, bounds[-1]), mode='r'),
                metadata=self._footer(number),
                pre_buffer=False,
            )
            table = file.read_row_group(group, use_threads=False)
        except (ArrowInvalid, OSError) as error:
            raise ValueError(
                f'{_NAME}: {name!r} is damaged ({error})'
            ) from error
        if table.num_rows != 1:
            malformed(
                name,
                begin,
                f'a row group must be one batch (got {table.num_rows} rows)',
                _NAME,
            )
        return table

    def _footer(self, number: int) -> Any:
        """Returns the footer of a file, which all its batches need."""
        from pyarrow import BufferReader, parquet

        if number not in self._footers:
            while len(self._footers) >= _FOOTERS:
                self._footers.pop(next(iter(self._footers)))
            shard = self.shards[number]
            name = f'{self._root}/{shard["file"]}'
            data = self._bytes(name, shard, len(shard['bounds']) - 2)
            self._footers[number] = parquet.read_metadata(BufferReader(data))
        return self._footers[number]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, '_footers': {}}

    def _bytes(self, name: str, shard: Any, part: int) -> bytes:
        begin, end = shard['bounds'][part : part + 2]
        try:
            data = self._system.cat_file(name, start=begin, end=end)
        except (OSError, ValueError) as error:
            raise ValueError(
                f'{_NAME}: {name!r} cannot be read ({error})'
            ) from error
        if (
            len(data) != end - begin
            or crc32c(data) != (shard['checksums'][part])
        ):
            malformed(
                name,
                begin,
                f'the checksum of {end - begin} bytes is wrong: it is damaged',
                _NAME,
            )
        return bytes(data)

    def order(self, seed: int, epoch: int, window: int) -> np.ndarray:
        """Returns a random order of batches, int64 ``[num_batches]``.

        Shards are shuffled, then the batches of ``window`` shards at a time:
        so a reader uses few files at a time.

        Args:
            seed (int): The seed.
            epoch (int): The epoch.
            window (int): Number of shards shuffled together.
        """
        from torch_gsample import rng
        from torch_gsample.loader.order import Order

        shards = Order(seed, epoch, len(self.sizes)).at(
            np.arange(len(self.sizes))
        )
        parts = []
        for at in range(0, len(shards), window):
            some = np.concatenate(
                [
                    np.arange(self._first[s], self._first[s] + self.sizes[s])
                    for s in shards[at : at + window]
                ]
            )
            own = Order(rng.hash_ids(seed, at + 1), epoch, len(some))
            parts.append(some[own.at(np.arange(len(some)))])
        return np.concatenate(parts)


def _check_shards(fields: dict[str, Any]) -> None:
    """Checks the values that allocations and reads depend on."""
    facts, shards, batch = fields['facts'], fields['shards'], 0
    for shard in shards:
        bounds, checksums = shard['bounds'], shard['checksums']
        name = shard['file']
        if shard['first'] != batch or len(bounds) < 3:
            raise ValueError(f'batch {batch} must be the next one')
        if '/' in name or name in ('', '.', '..'):
            raise ValueError(f'{name!r} is not a file name in the folder')
        numbers = [*bounds, *checksums]
        if any(type(n) is not int or n < 0 for n in numbers):
            raise ValueError("'bounds' and 'checksums' must be numbers")
        if len(checksums) != len(bounds) - 1 or bounds != sorted(bounds):
            raise ValueError("'bounds' must ascend, a checksum for each part")
        batch += len(bounds) - 2
    if batch != num_batches(facts) or batch == 0:
        raise ValueError(
            f'there must be {num_batches(facts)} batches (got {batch})'
        )


class _Window(io.RawIOBase):
    """A file object over one range of a file.

    Args:
        begin (int): The start of the range.
        data (bytes): The range.
        size (int): The size of the file.
    """

    def __init__(self, begin: int, data: bytes, size: int):
        super().__init__()
        self._begin, self._data, self._size = begin, data, size
        self._at = 0

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def seekable(self) -> bool:
        """Whether it has positions."""
        return True

    def tell(self) -> int:
        """Returns the position."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Sets the position."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}
        self._at = base[whence] + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Reads from the range.

        Raises:
            OSError: If the position is outside the range.
        """
        first = self._at - self._begin
        if first < 0 or size < 0 or first + size > len(self._data):
            raise OSError(f'{size} bytes at {self._at} belong to no column')
        self._at += size
        return self._data[first : first + size]


def segments(batches: Iterator[Any]) -> Iterator[tuple[int, Any]]:
    """Yields the rows of each batch from sorted rows."""
    import pyarrow as pa

    number, parts = -1, list[Any]()
    for rows in batches:
        of = rows.column('batch').to_numpy()
        starts = np.flatnonzero(np.diff(of, prepend=-1))
        for begin, end in zip(starts, [*starts[1:], len(of)], strict=True):
            if of[begin] != number and parts:
                yield number, pa.Table.from_batches(parts)
                parts = []
            number = int(of[begin])
            parts.append(rows.slice(begin, end - begin))
    if parts:
        yield number, pa.Table.from_batches(parts)
