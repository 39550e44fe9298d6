"""Reads features of any source in pieces of bounded size.

Tensors, ``.npy``, Parquet and Arrow files come in; pieces of rows go out.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_gsample.storage.reading import File
from torch_gsample.storage.sources import as_paths

#: Rows, or values and scales of int8 rows.
Piece = Tensor | tuple[Tensor, Tensor]

_ARROW = {'.arrow', '.feather', '.ipc'}
_PARQUET = {'.parquet', '.pq'}


def feature_pieces(
    data: Any, columns: list[str] | None, piece_bytes: int
) -> Iterator[Piece]:
    """Yields features in pieces of rows.

    Args:
        data (Any): As in :meth:`FeatureFile.write`.
        columns (List[str], optional): The columns of tables; all if not
            given.
        piece_bytes (int): The approximate maximum of bytes of a piece.

    Raises:
        TypeError: If the type of ``data`` is not supported.
    """
    paths = as_paths(data)
    if columns is not None and not (paths or _is_table(data)):
        raise ValueError(
            "FeatureFile.write: 'columns' is for Parquet and Arrow (got "
            f'{type(data).__name__})'
        )
    if paths is not None:
        for path in paths:
            yield from _read_file(path, columns, piece_bytes)
    elif isinstance(data, (Tensor, np.ndarray)):
        yield from _cut(as_tensor(data), piece_bytes)
    elif isinstance(data, tuple):
        yield from _cut_quantized(data, piece_bytes)
    elif _is_table(data):
        yield from _read_batches(data, columns, piece_bytes, 'data')
    elif isinstance(data, Iterable) and not isinstance(data, (str, dict)):
        for piece in data:
            if isinstance(piece, tuple):
                yield from _cut_quantized(piece, piece_bytes)
            else:
                yield from _cut(as_tensor(piece), piece_bytes)
    else:
        raise TypeError(
            "FeatureFile.write: 'data' must be a tensor, (int8 values, "
            'scales), an array, an Arrow table, an iterable of these, or '
            f'paths of files (got {type(data).__name__})'
        )


def as_tensor(data: Any) -> Tensor:
    """Converts an array to a tensor; returns tensors unchanged.

    Raises:
        TypeError: If it is neither.
    """
    if isinstance(data, np.ndarray) and data.dtype.kind in 'fiu':
        data = data if data.flags.writeable else data.copy()
        return torch.from_numpy(np.ascontiguousarray(data))
    if not isinstance(data, Tensor):
        got = data.dtype if isinstance(data, np.ndarray) else type(data)
        raise TypeError(
            "FeatureFile.write: 'data' must have tensors or arrays of numbers "
            f'(got {got})'
        )
    return data.detach()


def _rows_of(row: Tensor, piece_bytes: int) -> int:
    return max(piece_bytes // max(row.numel() * row.element_size(), 1), 1)


def _cut(data: Tensor, piece_bytes: int) -> Iterator[Tensor]:
    if data.dim() == 0:
        raise ValueError(
            "FeatureFile.write: 'data' must have at least one dimension (got "
            'shape [])'
        )
    size = _rows_of(data[:1], piece_bytes)
    for first in range(0, max(len(data), 1), size):
        yield data[first : first + size].cpu()


def _cut_quantized(data: Any, piece_bytes: int) -> Iterator[Piece]:
    tensors = len(data) == 2 and all(isinstance(x, Tensor) for x in data)
    if not tensors or data[0].dtype != torch.int8:
        raise TypeError(
            "FeatureFile.write: a tuple of 'data' must be int8 values and "
            'float32 scales, as quantize_rows returns them (got '
            f'{[getattr(x, "dtype", type(x)) for x in data[:2]]})'
        )
    values, scale = data
    if scale.dtype != torch.float32 or scale.shape != values.shape[:1]:
        raise ValueError(
            f"FeatureFile.write: scales of 'data' must be float32 "
            f'{list(values.shape[:1])} (got {scale.dtype} '
            f'{list(scale.shape)})'
        )
    size = _rows_of(values[:1], piece_bytes)
    for first in range(0, max(len(values), 1), size):
        part = slice(first, first + size)
        yield values[part].cpu(), scale[part].cpu()


def _read_file(
    path: Path, columns: list[str] | None, piece_bytes: int
) -> Iterator[Tensor]:
    suffix = path.suffix.lower()
    if suffix == '.npy':
        if columns is not None:
            raise ValueError(
                "FeatureFile.write: 'columns' is for Parquet and Arrow (got "
                f'{path})'
            )
        yield from _read_npy(path, piece_bytes)
    elif suffix in _PARQUET:
        import_arrow()
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            _check_columns(path, file.schema_arrow.names, columns)
            # Rows decoded at a time, independent of the row group.
            batches = file.iter_batches(4096, columns=columns)
            yield from _read_batches(batches, columns, piece_bytes, path)
    elif suffix in _ARROW:
        pa = import_arrow()
        with pa.memory_map(str(path)) as source:
            file = pa.ipc.open_file(source)
            batches = map(file.get_batch, range(file.num_record_batches))
            _check_columns(path, file.schema.names, columns)
            yield from _read_batches(batches, columns, piece_bytes, path)
    else:
        known = sorted({'.npy', *_PARQUET, *_ARROW})
        raise ValueError(
            f'FeatureFile.write: files must be of one kind of {known} (got '
            f'{path})'
        )


def import_arrow() -> Any:
    """Returns pyarrow.

    Raises:
        ImportError: If it is not installed; the message has the command.
    """
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            'FeatureFile.write: tables need PyArrow: '
            "`pip install 'torch_gsample[storage]'`"
        ) from error
    return pyarrow


def _read_npy(path: Path, piece_bytes: int) -> Iterator[Tensor]:
    try:
        array = np.load(path, mmap_mode='r', allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f'FeatureFile.write: {path}: {error}') from error
    mapped = isinstance(array, np.memmap)
    if not mapped or array.ndim == 0 or not array.flags.c_contiguous:
        raise ValueError(
            f'FeatureFile.write: {path} must hold rows in C order (got shape '
            f'{list(array.shape)})'
        )
    if array.dtype.kind not in 'fiu' or not array.dtype.isnative:
        raise TypeError(
            f'FeatureFile.write: {path} must hold numbers in native order '
            f'(got {array.dtype})'
        )
    # Read, not mapped: access to a mapping of a truncated file kills the
    # process.
    shape, dtype, offset = array.shape, array.dtype, int(array.offset)
    del array
    file = File(path)
    row_bytes = int(np.prod(shape[1:], dtype=np.int64)) * dtype.itemsize
    size = max(piece_bytes // max(row_bytes, 1), 1)
    for first in range(0, max(shape[0], 1), size):
        piece = np.empty((min(size, shape[0] - first), *shape[1:]), dtype)
        bytes_of = piece.reshape(-1).view(np.uint8)
        file.read(offset + first * row_bytes, bytes_of)
        yield torch.from_numpy(piece)


def _is_table(data: Any) -> bool:
    """Whether it has Arrow's batches, checked without importing Arrow."""
    return hasattr(data, 'schema') and (
        hasattr(data, 'to_batches') or hasattr(data, 'read_next_batch')
    )


def _check_columns(
    path: Any, names: list[str], columns: list[str] | None
) -> None:
    missing = [c for c in columns or [] if c not in names]
    if missing or not names:
        raise ValueError(
            f'FeatureFile.write: {path} must have the columns {columns} (it '
            f'has {names})'
        )


def _read_batches(
    data: Any, columns: list[str] | None, piece_bytes: int, name: Any
) -> Iterator[Tensor]:
    if hasattr(data, 'schema'):
        _check_columns(name, data.schema.names, columns)
    batches = data.to_batches() if hasattr(data, 'to_batches') else data
    for batch in batches if isinstance(batches, Iterable) else [batches]:
        names = columns or batch.schema.names
        parts = [_column(batch.column(n), n, name) for n in names]
        widths = {p.shape[1:] for p in parts}
        if len(parts) == 1:
            out = parts[0]
        elif widths == {()}:
            out = np.stack(parts, 1)
        else:
            raise ValueError(
                f'FeatureFile.write: {name} must have one column of lists, or '
                f'columns of numbers (got {names})'
            )
        yield from _cut(as_tensor(out), piece_bytes)


def _column(column: Any, key: str, name: Any) -> np.ndarray:
    """Returns a column of a batch, ``[n]`` or ``[n, width]`` of lists."""
    pa = import_arrow()
    kind = column.type
    lists = pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind)
    lists = lists or pa.types.is_large_list(kind)
    values = column.flatten() if lists else column
    if column.null_count or values.null_count:
        raise ValueError(
            f'FeatureFile.write: column {key!r} of {name} must have no empty '
            f'fields (it has {column.null_count or values.null_count})'
        )
    types = pa.types
    if not (types.is_floating(values.type) or types.is_integer(values.type)):
        raise TypeError(
            f'FeatureFile.write: column {key!r} of {name} must hold numbers '
            f'(got {kind})'
        )
    out: np.ndarray = values.to_numpy(zero_copy_only=False)
    if not lists or len(column) == 0:
        return out
    width, rest = divmod(len(values), len(column))
    if not pa.types.is_fixed_size_list(kind):
        lengths = column.value_lengths().to_numpy(zero_copy_only=False)
        rest = rest or int((lengths != width).any())
    if rest:
        raise ValueError(
            f'FeatureFile.write: lists of column {key!r} of {name} must have '
            'one length (they do not)'
        )
    return out.reshape(len(column), width)
