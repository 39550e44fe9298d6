"""Writes a graph in the chunked format, from any source."""

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Iterable, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from tqdm import tqdm

from torch_gsample.memory import bytes_of
from torch_gsample.path_argument import path_argument
from torch_gsample.storage.chunk_writer import (
    MIN_CHUNK_BYTES,
    ChunkFiles,
    RelationWriter,
    new_directories,
    write_description,
)
from torch_gsample.storage.crc32c import BLOCK, crc32c
from torch_gsample.storage.edge_files import file_source
from torch_gsample.storage.format import GraphMeta, RelationMeta
from torch_gsample.storage.new_file import NewFile
from torch_gsample.storage.sources import (
    GraphSource,
    Pieces,
    RelationSource,
    as_paths,
    is_matrix,
    memory_source,
    stream_source,
)


def write_graph(
    path: str | Path,
    data: Any,
    *,
    num_nodes: int | dict[str, int] | None = None,
    weight_attr: str | None = None,
    time_attr: str | tuple[str, str] | None = None,
    columns: tuple[str, str] | None = None,
    num_edges: int | None = None,
    chunk_bytes: int | str = 512 << 20,
    memory_limit: int | str = 4 << 30,
    alignment: int = 4096,
    progress: bool = False,
    directories: Sequence[str | Path] = (),
) -> None:
    """Writes a graph to a directory, which appears when it is complete.

    Edge ids are preserved; in edge files they are row numbers.

    Args:
        path (str or Path): The directory, which must not exist.
        data (Data or HeteroData or CSC or torch.Tensor or Path or Iterable):
            The graph: as PyG's data or stores, ``edge_index`` or
            ``(row, col)``, a matrix that :func:`~torch_gsample.as_graph`
            reads (without its values), the path(s) of Parquet, CSV or
            ``.npy`` files (with a dictionary for each edge type), an iterable
            of ``(row, col)`` batches that ascend by ``col``, or another
            :class:`ChunkedGraph`, of any version of the format.
        num_nodes (int or Dict, optional): Number of nodes, if ``data`` has
            only edges; one more than the largest id if not given.
        weight_attr (str, optional): The attribute (column) of edge weights.
        time_attr (str or Tuple[str, str], optional): The attribute (column)
            of times, as in :class:`NeighborSampler`.
        columns (Tuple[str, str], optional): For edge files: the columns of
            sources and destinations; the first two if not given.
        num_edges (int, optional): Total number of edges of batches, for
            progress.
        chunk_bytes (int or str, optional): The maximum bytes of a chunk. A
            streaming sampler has two chunks in memory.
        memory_limit (int or str, optional): The maximum bytes, such as
            ``'4GiB'``, to use in addition to ``data``.
        alignment (int, optional): Chunks start at multiples of it; a power of
            2 from 512.
        progress (bool, optional): Whether to show a progress bar.
        directories (Sequence[str or Path], optional): Further directories,
            on other disks, which must not exist. Chunks are distributed over
            ``path`` and these, and read from all at once. ``alignment`` must
            then be at least 4096.

    Raises:
        FileExistsError: If ``path`` or a directory exists.
        IndexError: If an edge refers to a node that does not exist.
        MemoryError: If DuckDB needs more memory to sort edge files.
        OSError: If the disk is full, or a file cannot be read.
        TypeError: If the type of ``data`` is not supported.
        ValueError: If an argument is invalid; the message names the rule.
    """
    name = 'ChunkedGraph.write'
    path = path_argument(name, 'path', path)
    _check_num_nodes(name, num_nodes)
    chunk_bytes = bytes_of(chunk_bytes, f"{name}: 'chunk_bytes'")
    memory_limit = bytes_of(memory_limit, f"{name}: 'memory_limit'")
    if chunk_bytes < MIN_CHUNK_BYTES:
        raise ValueError(
            f"ChunkedGraph.write: 'chunk_bytes' must be at least "
            f'{MIN_CHUNK_BYTES} (got {chunk_bytes})'
        )
    if alignment not in [1 << i for i in range(9, 21)]:
        raise ValueError(
            f"ChunkedGraph.write: 'alignment' must be a power of 2 from 512 "
            f'to 2^20 (got {alignment})'
        )
    others = _read_directories(name, directories)
    if others and alignment < BLOCK:
        raise ValueError(
            f"ChunkedGraph.write: 'alignment' must be at least {BLOCK} for "
            f'several directories (got {alignment})'
        )
    # The edges of two chunks, with destinations, and the chunk being written.
    needed = 6 * chunk_bytes
    reading = data.memory if isinstance(data, GraphSource) else 0
    if memory_limit < needed + reading:
        more = ' and what reading the graph takes' if reading else ''
        raise ValueError(
            f"ChunkedGraph.write: 'memory_limit' must be at least 6 times "
            f"'chunk_bytes'{more}, {needed + reading} (got {memory_limit})"
        )
    with new_directories(path, others) as made:
        if _names_files(data):
            source = file_source(
                data,
                num_nodes,
                weight_attr,
                time_attr,  # type: ignore[arg-type]
                columns,
                memory_limit - needed // 2,
                made[0].parent,
                progress,
            )
        else:
            source = _read_source(
                data, num_nodes, weight_attr, time_attr, num_edges
            )
        meta = GraphMeta(
            list(source.num_nodes),
            list(source.num_nodes.values()),
            [],
            [],
            [],
            alignment,
            generation=secrets.randbits(64),
            directories=[str(other.absolute()) for other in others],
        )
        _write_source(made, source, meta, chunk_bytes, progress)
        write_description(made, meta, path)


def _read_directories(name: str, directories: Any) -> list[Path]:
    if isinstance(directories, (str, os.PathLike)):  # of letters
        raise TypeError(
            f"{name}: 'directories' must be a list of paths (got "
            f'{directories!r})'
        )
    return [path_argument(name, 'directories', d) for d in directories]


def _check_num_nodes(name: str, num_nodes: Any) -> None:
    by_type = num_nodes if isinstance(num_nodes, dict) else {'': num_nodes}
    for node_type, number in by_type.items():
        if number is None:
            continue
        of = f' of {node_type!r}' if node_type else ''
        if not isinstance(number, Integral) or isinstance(number, bool):
            raise TypeError(
                f"{name}: 'num_nodes'{of} must be an integer (got {number!r})"
            )
        if number < 0:
            raise ValueError(
                f"{name}: 'num_nodes'{of} must not be negative (got {number})"
            )


def _names_files(data: Any) -> bool:
    if isinstance(data, dict):
        return bool(data) and all(as_paths(p) for p in data.values())
    return as_paths(data) is not None


def _read_source(
    data: Any,
    num_nodes: Any,
    weight_attr: str | None,
    time_attr: Any,
    num_edges: int | None,
) -> GraphSource:
    if isinstance(data, GraphSource):
        return data
    if isinstance(data, np.ndarray):
        data = torch.from_numpy(data)
    known = Data, HeteroData, Tensor, tuple
    if isinstance(data, known) or is_matrix(data):
        return memory_source(data, num_nodes, weight_attr, time_attr)
    if isinstance(data, Iterable) and not isinstance(data, dict):
        return stream_source(data, num_nodes, num_edges)
    hint = ''
    if isinstance(data, dict):
        hint = (
            f' with {list(data)[:3]}: pass its edge index, or a HeteroData '
            'for several edge types'
        )
    raise TypeError(
        "ChunkedGraph.write: 'data' must be a graph, a tensor, batches of "
        f'edges, or paths of edge files (got {type(data).__name__}{hint})'
    )


def _write_source(
    made: list[Path],
    source: GraphSource,
    meta: GraphMeta,
    chunk_bytes: int,
    progress: bool,
) -> None:
    _check_space(made, source)
    for relation in source.relations:
        _write_relation(made, relation, meta, chunk_bytes, progress)
    for i, node_type in enumerate(source.num_nodes):
        time = source.node_times.get(node_type)
        if time is None:
            meta.node_times.append(None)
            meta.time_checksums.append(None)
            continue
        name = f'time-{i}.bin'
        meta.node_times.append(name)
        crc = meta.file_seed(name)
        with NewFile(made[0] / name) as file:
            for piece in _pieces_of(time):
                data = np.ascontiguousarray(piece, '<i8').view(np.uint8)
                file.write(data.data)
                crc = crc32c(data, crc)
        meta.time_checksums.append(crc)
    if source.finish is not None:
        source.finish(made[0])


def _check_space(made: list[Path], source: GraphSource) -> None:
    """Checks that disks have space for the columns of a graph.

    A wrong id of 2^60 would fill them before any other error.

    Raises:
        OSError: If they have less.
    """
    needed = sum(
        8 * r.num_cols + (r.num_edges or 0) * sum(r.widths.values())
        for r in source.relations
    )
    disks = {os.stat(f).st_dev: shutil.disk_usage(f) for f in made}
    free = sum(disk.free for disk in disks.values())
    if needed > free and all(disk.total for disk in disks.values()):
        raise OSError(
            errno.ENOSPC,
            f'{os.strerror(errno.ENOSPC)}: a graph of '
            f'{sum(source.num_nodes.values())} nodes needs at least {needed} '
            f'bytes (free: {free})',
            str(made[0].parent),
        )


def _pieces_of(time: Tensor | Pieces) -> Iterable[np.ndarray]:
    """Yields the times of nodes in pieces."""
    return [time.numpy()] if isinstance(time, Tensor) else time()


def _write_relation(
    made: list[Path],
    source: RelationSource,
    meta: GraphMeta,
    chunk_bytes: int,
    progress: bool,
) -> None:
    number = len(meta.relations)
    relation = RelationMeta(
        source.edge_type,
        f'edges-{number}.bin',
        source.num_rows,
        source.num_cols,
        0,
        source.widths,
        np.empty((0, 6), np.int64),
        number,
    )
    with contextlib.ExitStack() as stack:
        files = stack.enter_context(ChunkFiles(made, meta, relation))
        bar = stack.enter_context(_bar(source)) if progress else None
        writer = RelationWriter(files, relation, chunk_bytes, meta.alignment)
        for edges in source.batches():
            writer.add(**edges)
            if bar is not None:
                bar.update(len(edges['col']))
        writer.finish()
    meta.relations.append(relation)


def _bar(source: RelationSource) -> tqdm:
    name = 'edges' if source.edge_type is None else f'{source.edge_type}'
    return tqdm(
        total=source.num_edges, desc=name, unit='edges', unit_scale=True
    )
