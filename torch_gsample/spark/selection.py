"""Selects edges of nodes in Arrow batches with the package's operator."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.spark.frames import OWN, Column, DataFrame, F, arrow_udf, pa


@dataclass(frozen=True)
class Selection:
    """The selection options of one relation at one hop.

    Args:
        key (Tuple[int, int, int]): Seed, epoch and batch.
        hop (int): The index of the hop.
        relation (int): The index of the edge type.
        fanout (int): Edges to select; -1 takes all.
        replace (bool): Whether an edge may be drawn repeatedly.
        time_window (int, optional): Width of the window.
        temporal_strategy (str): ``'uniform'`` or ``'last'``.
    """

    key: tuple[int, int, int]
    hop: int
    relation: int
    fanout: int
    replace: bool
    time_window: int | None
    temporal_strategy: str

    def options(self) -> dict[str, Any]:
        """Returns the options for readers of stored columns."""
        return {
            'key': torch.tensor([self.key]),
            'replace': self.replace,
            'time_window': self.time_window,
            'temporal_strategy': self.temporal_strategy,
            'num_threads': 1,
        }

    def draw(
        self, indptr: Tensor, start: Tensor, id: Tensor, **options: object
    ) -> tuple[Tensor, Tensor]:
        """Returns the count of each column, and the selected positions."""
        out, edge = ops.sample_columns(
            indptr,
            self.fanout,
            key=torch.tensor([self.key]),
            call_id=self.hop,
            relation=self.relation,
            id=id,
            start=start,
            replace=self.replace,
            num_threads=1,
            **options,  # type: ignore[arg-type]
        )
        return out.diff(), edge


def select_in_columns(
    columns: DataFrame, own: list[str], selection: Selection
) -> DataFrame:
    """Selects edges in columns stored as arrays in a row.

    Args:
        columns (DataFrame): ``own``, and arrays of the edges' fields.
        own (List[str]): ``node`` and, with times, ``time``.
        selection (Selection): How to select.
    """
    names = columns.columns

    @arrow_udf('array<struct<src: bigint, id: bigint>>')
    def select(*values: pa.Array) -> pa.Array:
        return _select_edges(dict(zip(names, values, strict=True)), selection)

    return _exploded(columns, own, select(*names), ['src', 'id'])


def select_positions(
    columns: DataFrame, own: list[str], selection: Selection
) -> DataFrame:
    """Selects positions in columns of known length.

    Args:
        columns (DataFrame): ``own``, and the range ``first`` to ``last`` of
            the positions to select in.
        own (List[str]): ``node`` and, with times, ``time``.
        selection (Selection): How to select.
    """
    keep_last = selection.temporal_strategy == 'last' and 'time' in own

    @arrow_udf('array<struct<position: bigint>>')
    def select(node: pa.Array, first: pa.Array, last: pa.Array) -> pa.Array:
        start, end = tensor(first), tensor(last)
        if keep_last and selection.fanout >= 0:
            start = torch.maximum(start, end - selection.fanout)
        counts, position = selection.draw(
            _pointers(end - start), start, tensor(node)
        )
        return _lists(counts, position=position)

    selected = select('node', 'first', 'last')
    return _exploded(columns, own, selected, ['position'])


def _select_edges(
    values: dict[str, pa.Array], selection: Selection
) -> pa.Array:
    edges = {
        name.removeprefix(OWN): value
        for name, value in values.items()
        if name.startswith(OWN)
    }
    indptr = _pointers(tensor(edges['src'].value_lengths()))
    flat = {name: tensor(array.flatten()) for name, array in edges.items()}
    _check_distinct(indptr, flat)
    options: dict[str, object] = {}
    if 'weight' in flat:
        weights = ops.cumulate_weights(indptr, flat['weight'], 'weight')
        options['cum_weight'] = weights
    if 'time' in flat:
        options.update(
            edge_time=flat['time'],
            column_time=tensor(values['time']),
            time_window=selection.time_window,
            temporal_strategy=selection.temporal_strategy,
        )
    counts, edge = selection.draw(
        indptr, indptr[:-1], tensor(values['node']), **options
    )
    return _lists(counts, src=flat['src'][edge], id=flat['id'][edge])


def _check_distinct(indptr: Tensor, flat: dict[str, Tensor]) -> None:
    """Checks that the edges of a node, in order, differ in their ids."""
    id = flat['id']
    same = id[1:] == id[:-1]
    if 'time' in flat:
        same &= flat['time'][1:] == flat['time'][:-1]
    first = indptr[(indptr > 0) & (indptr < len(id))]
    same[first - 1] = False  # two nodes
    if bool(same.any()):
        raise ValueError(
            "neighbor_sample: the column 'id' of 'edges' must hold distinct "
            f'numbers (got {int(id[1:][same][0])} twice)'
        )


def _exploded(
    columns: DataFrame, own: list[str], selected: Column, fields: list[str]
) -> DataFrame:
    """A row for each selected edge, with its slot."""
    exploded = columns.select(
        *own, F.posexplode(selected).alias('slot', OWN + 'edge')
    )
    return exploded.select(
        *own,
        F.col('slot').cast('bigint').alias('slot'),
        *(F.col(f'{OWN}edge.{name}').alias(name) for name in fields),
    )


def _lists(counts: Tensor, **fields: Tensor) -> pa.Array:
    """A list array with `counts` edges for each column."""
    arrays = [pa.array(value.numpy()) for value in fields.values()]
    edges = pa.StructArray.from_arrays(arrays, list(fields))
    offsets = pa.array(_pointers(counts).numpy(), pa.int32())
    return pa.ListArray.from_arrays(offsets, edges)


def _pointers(lengths: Tensor) -> Tensor:
    return torch.nn.functional.pad(lengths.long().cumsum(0), (1, 0))


def tensor(values: pa.Array) -> Tensor:
    """Converts an Arrow array without nulls to a tensor."""
    if values.null_count:
        raise ValueError(
            'neighbor_sample: columns of edges and seeds must not hold nulls'
        )
    return torch.tensor(values.to_numpy(zero_copy_only=False))
