"""Writes a graph in the chunked format, whatever it comes from."""

import contextlib
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from tqdm import tqdm

from torch_gsample.csc import CSC
from torch_gsample.storage.chunk_writer import (
    MIN_CHUNK_BYTES,
    RelationWriter,
    new_directory,
    write_meta,
)
from torch_gsample.storage.edge_files import file_source
from torch_gsample.storage.format import GraphMeta, RelationMeta
from torch_gsample.storage.sources import (
    GraphSource,
    RelationSource,
    as_paths,
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
    chunk_bytes: int = 512 << 20,
    memory_limit: int = 4 << 30,
    alignment: int = 4096,
    progress: bool = False,
) -> None:
    """Writes a graph to a directory, which appears when it is complete.

    Edge ids are kept: in a graph of edge files, they number the rows.

    Args:
        path (str or Path): The directory, which must not exist.
        data (Data or HeteroData or CSC or torch.Tensor or Path or Iterable):
            The graph: as PyG's data or stores, ``edge_index`` or
            ``(row, col)``, the path(s) of Parquet, CSV or ``.npy`` files
            (with a dictionary for each edge type), or an iterable of
            ``(row, col)`` batches that ascend by ``col``.
        num_nodes (int or Dict, optional): Number of nodes, for edges alone;
            one more than the largest id if not given.
        weight_attr (str, optional): The attribute (column) of edge weights.
        time_attr (str or Tuple[str, str], optional): The attribute (column)
            of times, as in :class:`NeighborSampler`.
        columns (Tuple[str, str], optional): Of edge files: the names of the
            columns of sources and destinations; the first two if not given.
        num_edges (int, optional): How many edges batches have, for progress.
        chunk_bytes (int, optional): The most bytes of a chunk. A sampler that
            streams has two of them in memory.
        memory_limit (int, optional): The most bytes to use besides ``data``.
        alignment (int, optional): Chunks start at multiples of it: a power of
            2 from 512.
        progress (bool, optional): Whether to show a progress bar.

    Raises:
        FileExistsError: If ``path`` exists.
        IndexError: If an edge has a node that does not exist.
        OSError: If the disk is full, or a file cannot be read.
        TypeError: If ``data`` is nothing of the above.
        ValueError: If an argument breaks a rule that is named.
    """
    path = Path(path)
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
    # Edges of two chunks, with destinations, and the chunk that is written.
    needed = 6 * chunk_bytes
    if memory_limit < needed:
        raise ValueError(
            f"ChunkedGraph.write: 'memory_limit' must be at least 6 times "
            f"'chunk_bytes', {needed} (got {memory_limit})"
        )
    with new_directory(path) as made:
        if _names_files(data):
            source = file_source(
                data,
                num_nodes,
                weight_attr,
                time_attr,  # type: ignore[arg-type]
                columns,
                memory_limit - needed // 2,
                made.parent,
                progress,
            )
        else:
            source = _read_source(
                data, num_nodes, weight_attr, time_attr, num_edges
            )
        _write_source(made, source, chunk_bytes, alignment, progress)


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
    known = (Data, HeteroData, CSC, Tensor, tuple)
    if isinstance(data, known):
        return memory_source(data, num_nodes, weight_attr, time_attr)
    if isinstance(data, Iterable) and not isinstance(data, dict):
        return stream_source(data, num_nodes, num_edges)
    raise TypeError(
        "ChunkedGraph.write: 'data' must be a graph, a tensor, batches of "
        f'edges, or paths of edge files (got {type(data).__name__})'
    )


def _write_source(
    made: Path,
    source: GraphSource,
    chunk_bytes: int,
    alignment: int,
    progress: bool,
) -> None:
    relations = [
        _write_relation(made, i, relation, chunk_bytes, alignment, progress)
        for i, relation in enumerate(source.relations)
    ]
    names: list[str | None] = []
    checksums: list[int | None] = []
    for i, node_type in enumerate(source.num_nodes):
        time = source.node_times.get(node_type)
        names.append(None if time is None else f'time-{i}.bin')
        checksums.append(None)
        if time is not None:
            data = time.to(torch.int64).numpy().astype('<i8')
            checksums[i] = zlib.crc32(data.data)
            data.tofile(made / f'time-{i}.bin')
    meta = GraphMeta(
        list(source.num_nodes),
        list(source.num_nodes.values()),
        names,
        checksums,
        relations,
        alignment,
    )
    write_meta(made, meta)


def _write_relation(
    made: Path,
    number: int,
    source: RelationSource,
    chunk_bytes: int,
    alignment: int,
    progress: bool,
) -> RelationMeta:
    meta = RelationMeta(
        source.edge_type,
        f'edges-{number}.bin',
        source.num_rows,
        source.num_cols,
        0,
        source.widths,
        np.empty((0, 7), np.int64),
    )
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open(made / meta.file, 'wb'))
        bar = stack.enter_context(_bar(source)) if progress else None
        writer = RelationWriter(file, meta, chunk_bytes, alignment)
        for edges in source.batches():
            writer.add(**edges)
            if bar is not None:
                bar.update(len(edges['col']))
        writer.finish()
    return meta


def _bar(source: RelationSource) -> tqdm:
    name = 'edges' if source.edge_type is None else f'{source.edge_type}'
    return tqdm(
        total=source.num_edges, desc=name, unit='edges', unit_scale=True
    )
