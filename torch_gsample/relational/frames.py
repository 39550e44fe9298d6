"""Rows of batches for PyTorch Frame."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from torch_gsample.relational.inputs import read_column
from torch_gsample.relational.values import NULLS, Values

_DAY = 86_400_000_000  # microseconds


class TensorFrames:
    """Converts the columns of each table of a batch to a ``TensorFrame``.

    A transform for loaders: ``batch[table].tf`` replaces ``num``, ``cat`` and
    ``stamp``, as in RelBench's models (Hu et al., `"PyTorch Frame"
    <https://arxiv.org/abs/2404.00776>`_). Edges lose their times, because
    RelBench's models take ``batch.time_dict`` for the times of rows. It needs
    PyTorch Frame.

    Args:
        tables (RelationalData or TableFolder): The database.

    Attributes:
        col_stats (Dict[str, Dict[str, Dict]]): For each table and column, the
            statistics for encoders of PyTorch Frame.
        col_names_dict (Dict[str, Dict]): For each table, its columns by
            semantic type.

    Raises:
        ImportError: If PyTorch Frame is missing.

    Example:
        >>> loader = RelationalLoader(  # doctest: +SKIP
        ...     tables, task, [8], transform=TensorFrames(tables)
        ... )
        >>> next(iter(loader))['user'].tf  # doctest: +SKIP
    """

    def __init__(self, tables: Any):
        frame = _import_frame()
        self._kinds = {
            'num': frame.numerical,
            'cat': frame.categorical,
            'stamp': frame.timestamp,
        }
        self.col_names_dict = {
            table: {
                stype: list(names)
                for kind, stype in self._kinds.items()
                if (names := getattr(values, f'{kind}_names'))
            }
            for table, values in tables.values.items()
        }
        self.col_stats = {
            table: _stats(values) for table, values in tables.values.items()
        }

    def __call__(self, batch: HeteroData) -> HeteroData:
        """Returns a batch with ``tf`` for each table."""
        for store in batch.node_stores:
            parts = {kind: store.get(kind) for kind in self._kinds}
            for kind in parts:
                _remove(store, kind)
            store.tf = self.frame(store._key, parts)
        for store in batch.edge_stores:
            _remove(store, 'time')
        return batch

    def frame(self, table: str, parts: dict[str, Tensor | None]) -> Any:
        """Returns the rows of a table as a ``TensorFrame``.

        Args:
            table (str): The table.
            parts (Dict[str, torch.Tensor]): ``num``, ``cat`` and ``stamp`` of
                the rows.
        """
        names, out, count = self.col_names_dict[table], {}, 0
        for kind, stype in self._kinds.items():
            part = parts[kind]
            if part is not None:
                count = len(part)
            if stype in names:
                assert part is not None
                out[stype] = calendar(part) if kind == 'stamp' else part
        return _import_frame().TensorFrame(out, names, num_rows=count)


def _remove(store: Any, key: str) -> None:
    """Removes an attribute of a batch, if there is one.

    Without PyG's search for the kinds of attributes that it has classified: a
    new batch has none.
    """
    if '_cached_attr' in store.__dict__:
        del store[key]
    elif key in store._mapping:
        del store._mapping[key]


def _import_frame() -> Any:
    try:
        import torch_frame
    except ImportError as error:
        raise ImportError(
            'TensorFrames: PyTorch Frame is needed: '
            "`pip install 'torch_gsample[frame]'`"
        ) from error
    return torch_frame


def calendar(stamp: Tensor) -> Tensor:
    """Returns year, month, day, weekday, hour, minute, second of times.

    Months and days count from 0, weekdays from Monday; null is -1.

    Args:
        stamp (torch.Tensor): int64 ``[...]``, microseconds since 1970.

    Example:
        >>> calendar(torch.tensor([951_782_400_000_000]))
        tensor([[2000,    1,   28,    1,    0,    0,    0]])
    """
    null = stamp == NULLS['stamp']
    stamp = stamp.where(~null, 0)
    days = stamp.div(_DAY, rounding_mode='floor')
    # Eras are 400 years from March 1 of year 0.
    shifted = days + 719_468
    era = shifted.div(146_097, rounding_mode='floor')
    day = shifted - era * 146_097
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day = day - (365 * year + year // 4 - year // 100)
    month = (5 * day + 2) // 153  # from March on
    of_month = day - (153 * month + 2) // 5
    month = (month + 2) % 12
    year = year + era * 400 + (month < 2).long()
    second = (stamp - days * _DAY) // 1_000_000
    parts = [year, month, of_month, (days + 3) % 7]
    parts += [second // 3600, second // 60 % 60, second % 60]
    return torch.stack(parts, -1).where(~null[..., None], -1)


def _column(part: Any, index: int) -> Tensor:
    """Returns a column of a table, read in pieces."""
    return read_column(part, index, torch.arange(part.shape[0]))


def _stats(values: Values) -> dict[str, dict[Any, Any]]:
    """Returns the statistics of each column of a table for PyTorch Frame."""
    from torch_frame.data.stats import StatType

    out: dict[str, dict[Any, Any]] = {}
    for i, name in enumerate(values.num_names):
        column = _column(values.num, i).double()
        column = column[column.isfinite()]
        if not len(column):
            column = torch.tensor([float('nan')], dtype=torch.float64)
        steps = torch.linspace(0, 1, 5) * (len(column) - 1)
        ordered = column.sort().values
        low = ordered[steps.floor().long()]
        high = ordered[steps.ceil().long()]
        quantiles = low + (high - low) * (steps - steps.floor())
        out[name] = {
            StatType.MEAN: float(column.mean()),
            StatType.STD: float(column.std(correction=0)),
            StatType.QUANTILES: quantiles.tolist(),
        }
    for i, name in enumerate(values.cat_names):
        code = _column(values.cat, i)
        known = values.categories[name]
        count = code[code >= 0].bincount(minlength=len(known))
        # In the order of codes, by which a frame's embeddings are indexed.
        out[name] = {StatType.COUNT: (list(known), count.tolist())}
    for i, name in enumerate(values.stamp_names):
        column = _column(values.stamp, i)
        column = column[column != NULLS['stamp']].sort().values
        if not len(column):
            column = torch.tensor([NULLS['stamp']], dtype=torch.int64)
        first, middle, last = calendar(
            column[torch.tensor([0, len(column) // 2, -1])]
        )
        out[name] = {
            StatType.YEAR_RANGE: [int(first[0]), int(last[0])],
            StatType.NEWEST_TIME: last,
            StatType.OLDEST_TIME: first,
            StatType.MEDIAN_TIME: middle,
        }
    return out
