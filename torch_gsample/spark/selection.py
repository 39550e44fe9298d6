"""Selects edges of nodes in Arrow batches, by the operator of the package."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.spark.frames import OWN, DataFrame, pa


@dataclass(frozen=True)
class Selection:
    """How the edges of one relation are selected at one hop.

    Args:
        key (Tuple[int, int, int]): Seed, epoch and batch.
        hop (int): The number of the hop.
        relation (int): The number of the edge type.
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

    def draw(
        self, indptr: Tensor, start: Tensor, id: Tensor, **options: object
    ) -> tuple[Tensor, Tensor]:
        """Returns how many edges each column gives, and their positions."""
        out, edge = ops.sample_frontier(
            indptr,
            start,
            id,
            self.fanout,
            key=torch.tensor([self.key]),
            call_id=self.hop,
            relation=self.relation,
            replace=self.replace,
            num_threads=1,
            **options,  # type: ignore[arg-type]
        )
        return out.diff(), edge


def select_in_columns(
    columns: DataFrame, own: list[str], selection: Selection
) -> DataFrame:
    """Selects in columns whose edges are arrays of their row.

    Args:
        columns (DataFrame): ``own``, and arrays of the edges' fields.
        own (List[str]): ``node`` and, with times, ``time``.
        selection (Selection): How to select.
    """

    def select(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _select_batch(batch, own, selection)

    return columns.mapInArrow(select, _schema(own, 'src bigint, id bigint'))


def select_positions(
    columns: DataFrame, own: list[str], selection: Selection
) -> DataFrame:
    """Selects positions in columns of which only the length is known.

    Args:
        columns (DataFrame): ``own``, and the range ``first`` to ``last`` of
            the positions to select in.
        own (List[str]): ``node`` and, with times, ``time``.
        selection (Selection): How to select.
    """

    def select(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            first, last = _numbers(batch, 'first'), _numbers(batch, 'last')
            if selection.temporal_strategy == 'last' and 'time' in own:
                if selection.fanout >= 0:
                    first = torch.maximum(first, last - selection.fanout)
            counts, position = selection.draw(
                _pointers(last - first), first, _numbers(batch, 'node')
            )
            yield _rows(batch, own, counts, {'position': position})

    return columns.mapInArrow(select, _schema(own, 'position bigint'))


def _select_batch(
    batch: pa.RecordBatch, own: list[str], selection: Selection
) -> pa.RecordBatch:
    src = batch[OWN + 'src']
    indptr = _pointers(_tensor(src.value_lengths()))
    options: dict[str, object] = {}
    if OWN + 'weight' in batch.schema.names:
        weight = _tensor(batch[OWN + 'weight'].flatten())
        options['cum_weight'] = ops.cumulate_weights(indptr, weight, 'weight')
    if 'time' in own:
        options.update(
            edge_time=_tensor(batch[OWN + 'time'].flatten()),
            column_time=_numbers(batch, 'time'),
            time_window=selection.time_window,
            temporal_strategy=selection.temporal_strategy,
        )
    counts, edge = selection.draw(
        indptr, indptr[:-1], _numbers(batch, 'node'), **options
    )
    fields = {
        name: _tensor(batch[OWN + name].flatten())[edge]
        for name in ('src', 'id')
    }
    return _rows(batch, own, counts, fields)


def _rows(
    batch: pa.RecordBatch,
    own: list[str],
    counts: Tensor,
    fields: dict[str, Tensor],
) -> pa.RecordBatch:
    """A row for each selected edge."""
    column = torch.repeat_interleave(counts)
    slot = torch.arange(column.numel()) - (counts.cumsum(0) - counts)[column]
    values = {name: _numbers(batch, name)[column] for name in own}
    values.update(slot=slot, **fields)
    return pa.record_batch({k: pa.array(v.numpy()) for k, v in values.items()})


def _schema(own: list[str], fields: str) -> str:
    return ', '.join([f'{name} bigint' for name in own + ['slot']] + [fields])


def _numbers(batch: pa.RecordBatch, name: str) -> Tensor:
    return _tensor(batch[name])


def _pointers(lengths: Tensor) -> Tensor:
    return torch.nn.functional.pad(lengths.long().cumsum(0), (1, 0))


def _tensor(values: pa.Array) -> Tensor:
    if values.null_count:
        raise ValueError(
            'neighbor_sample: columns of edges and seeds must not hold nulls'
        )
    return torch.tensor(values.to_numpy(zero_copy_only=False))
