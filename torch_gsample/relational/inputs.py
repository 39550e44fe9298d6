"""Loader inputs of tasks, from tables in memory or on disk.

Tables come in; the data, the sampler and its options go out.
"""

from inspect import signature
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import HeteroData
from torch_geometric.typing import EdgeType

from torch_gsample.options import DiskOptions
from torch_gsample.relational.folder import TableFolder
from torch_gsample.relational.tables import RelationalData
from torch_gsample.samplers.neighbor.node_wise import NeighborSampler
from torch_gsample.storage import RandomReadSampler

Tables = RelationalData | TableFolder

_MEMORY = set(signature(NeighborSampler).parameters)
_DISK = {
    *signature(RandomReadSampler).parameters,
    *DiskOptions.__annotations__,
}


def read_inputs(
    name: str, tables: Tables, num_neighbors: Any, options: dict[str, Any]
) -> dict[str, Any]:
    """Returns the arguments of a loader: data, sampler and other options.

    Args:
        name (str): The loader, for errors.
        tables (RelationalData or TableFolder): The database.
        num_neighbors (List[int] or Dict): Fan-outs.
        options (Dict[str, Any]): The options of the loader and its sampler.

    Raises:
        TypeError: If ``tables`` has another type.
        ValueError: If an option requires tables in memory, or no table has
            times.
    """
    if isinstance(tables, Tables) and tables.time_kind is None:
        raise ValueError(
            f'{name}: a table must have times (none of '
            f'{sorted(tables.schema)[:20]} has): NeighborLoader needs none'
        )
    if isinstance(tables, RelationalData):
        return {
            'data': tables.data,
            'num_neighbors': num_neighbors,
            'time_attr': 'time',
            **options,
        }
    if not isinstance(tables, TableFolder):
        raise TypeError(
            f"{name}: 'tables' must be a RelationalData or a TableFolder (got "
            f'{type(tables).__name__})'
        )
    for option in options:
        if option in _MEMORY - _DISK:
            raise ValueError(
                f'{name}: {option!r} must not be given for a TableFolder; it '
                'needs tables in memory (see from_tables)'
            )
    own = {key: options[key] for key in options if key in _DISK}
    rest = {key: options[key] for key in options if key not in _DISK}
    sampler = RandomReadSampler(tables.graph, num_neighbors, **own)
    return {'data': tables.data, 'sampler': sampler, **rest}


def times_of_edges(tables: Tables) -> dict[EdgeType, int]:
    """Returns the end of each edge that has its time, 0 or 1, on disk.

    It is the referring row. In memory, edges have times of their own.
    """
    out: dict[EdgeType, int] = {}
    if isinstance(tables, RelationalData):
        return out
    for name, schema in tables.schema.items():
        for key in schema.foreign_keys if name in tables.times else ():
            out[name, key.name, key.table] = 0
            out[key.table, f'rev_{key.name}', name] = 1
    return out


def add_edge_times(batch: HeteroData, end: dict[EdgeType, int]) -> None:
    """Adds the times of edges to a batch, as for tables in memory."""
    for edge_type in batch.edge_types if end else ():
        if edge_type in end:
            store, i = batch[edge_type], end[edge_type]
            time = batch[edge_type[2 * i]].time
            store.time = time[store.edge_index[i]]


def row_times(tables: Tables, table: str) -> Tensor | None:
    """Returns the times of the rows of a table, if it has them."""
    if isinstance(tables, TableFolder):
        return tables.times.get(table)
    store = tables.data[table]
    return store.time if 'time' in store else None


def num_rows(tables: Tables, table: str) -> int:
    """Returns the number of rows of a table."""
    if isinstance(tables, TableFolder):
        return tables.num_rows(table)
    return int(tables.data[table].num_nodes)


def read_column(part: Any, index: int, rows: Tensor) -> Tensor:
    """Returns a column of selected rows, read in pieces.

    Args:
        part (torch.Tensor or RowSource): Rows of several columns.
        index (int): The column.
        rows (torch.Tensor): int64 ``[n]``.
    """
    pieces = [part[piece][:, index] for piece in rows.split(1 << 16)]
    return torch.cat(pieces) if pieces else part[:0][:, index]
