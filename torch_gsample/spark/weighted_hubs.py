"""Weighted draws in columns too long for one row.

A weighted draw depends on all weights of its column and on earlier draws. So
one task holds the weights, as plain bytes in bins packed by many tasks, 8
bytes an edge. All other columns of a hub stay distributed.
"""

from collections.abc import Iterator

import pyarrow.compute as pc
import torch

from torch_gsample import ops
from torch_gsample.spark.frames import OWN, DataFrame, F, arrow_udf, pa
from torch_gsample.spark.selection import Selection, tensor

_BIN = OWN + 'bin'


def pack_columns(hubs: DataFrame, timed: bool, largest: int) -> DataFrame:
    """Packs the weights of hubs, in bins that a task may sort.

    Args:
        hubs (DataFrame): ``dst``, ``position``, ``weight`` and, with times,
            ``time`` of each edge.
        timed (bool): Whether times are packed, too.
        largest (int): Edges of a bin.

    Returns:
        DataFrame: ``node``, the index of the bin, and the bytes of each packed
        column, in the order of positions.
    """

    @arrow_udf('binary')
    def pack(position: pa.Array, values: pa.Array) -> pa.BinaryScalar:
        ordered = tensor(values)[tensor(position).argsort()]
        return pa.scalar(ordered.numpy().tobytes())

    number = F.floor(F.col('position') / largest).alias(_BIN)
    names = ['weight', 'time'] if timed else ['weight']
    return hubs.groupBy(F.col('dst').alias('node'), number).agg(
        *(pack('position', name).alias(OWN + name) for name in names)
    )


def select_by_weight(
    nodes: DataFrame, packed: DataFrame, selection: Selection
) -> DataFrame:
    """Selects positions in packed columns.

    Args:
        nodes (DataFrame): Distinct ``node`` and, with times, ``time``.
        packed (DataFrame): The result of :func:`pack_columns`.
        selection (Selection): The options of the selection.

    Returns:
        DataFrame: The columns of ``nodes``, ``slot`` and ``position``.
    """
    fields = [*nodes.columns[1:], 'slot', 'position']
    types = ', '.join(f'{name}: bigint' for name in fields)
    bins = packed.join(nodes.select('node'), 'node', 'left_semi')
    rows = nodes.unionByName(bins, allowMissingColumns=True)
    names = rows.columns

    @arrow_udf(f'array<struct<{types}>>')
    def select(*values: pa.Array) -> pa.ListScalar:
        table = pa.table(dict(zip(names, values, strict=True)))
        parts = [*_select_in_hub(table, selection)]
        arrays = [
            pa.array(torch.cat(column).numpy())
            for column in zip(*parts, strict=True)
        ]
        edges = pa.StructArray.from_arrays(arrays, fields)
        return pa.ListArray.from_arrays([0, len(edges)], edges)[0]

    drawn = rows.groupBy('node').agg(select(*names).alias(OWN + 'edges'))
    return drawn.select('node', F.inline(OWN + 'edges'))


def _select_in_hub(
    rows: pa.Table, selection: Selection
) -> Iterator[tuple[torch.Tensor, ...]]:
    """Yields the selection of each row of one node, column by column."""
    bins = rows.filter(pc.is_valid(rows[_BIN])).sort_by(_BIN)
    weight = _unpack(bins[OWN + 'weight'], torch.float64)
    indptr = torch.tensor([0, len(weight)])
    options: dict[str, object] = {
        'cum_weight': ops.cumulate_weights(indptr, weight, 'weight')
    }
    timed = 'time' in rows.column_names
    if timed:
        options.update(
            edge_time=_unpack(bins[OWN + 'time'], torch.int64),
            time_window=selection.time_window,
            temporal_strategy=selection.temporal_strategy,
        )
    for row in rows.filter(pc.is_null(rows[_BIN])).to_pylist():
        own = [row['time']] if timed else []
        if timed:
            options['column_time'] = torch.tensor(own)
        id = torch.tensor([row['node']])
        _, position = selection.draw(indptr, indptr[:1], id, **options)
        slot = torch.arange(len(position))
        yield *(torch.full_like(slot, time) for time in own), slot, position


def _unpack(bins: pa.ChunkedArray, dtype: torch.dtype) -> torch.Tensor:
    data = bytearray().join(part.as_buffer() for part in bins)
    return torch.frombuffer(data, dtype=dtype)
