"""Operators of batches and layers of the last release, for one more."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample._deprecated_sampling import make_graph


def _slice_rows(
    indptr: Tensor,
    indices: Tensor,
    num_rows: int,
    rows: Tensor,
    row_ptr: Tensor,
    cols: Tensor | None,
    col_ptr: Tensor,
    whole: bool = True,
    **options: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    options |= {'row_ptr': row_ptr, 'col_ptr': col_ptr, 'whole': whole}
    return ops.slice_rows(indptr, indices, num_rows, rows, cols, **options)


def _sample_nodes(
    num_nodes: int,
    k: int,
    *,
    key: Tensor,
    ptr: Tensor | None = None,
    **options: Any,
) -> tuple[Tensor, Tensor]:
    if ptr is not None:
        return ops.sample_nodes(num_nodes, k, key=key, ptr=ptr, **options)
    parts = [
        ops.sample_nodes(num_nodes, k, key=row, **options)
        for row in key.split(1)
    ]
    node = torch.cat([key.new_empty(0, device=options.get('device')), *parts])
    sizes = [0, *(part.numel() for part in parts)]
    return node, torch.tensor(sizes, device=node.device).cumsum(0)


def _unique_nodes(
    id: Tensor, ptr: Tensor, num_nodes: int = 2**62, sorted: bool = False
) -> tuple[Tensor, ...]:
    return ops.unique_nodes(id, num_nodes, sorted, ptr=ptr)


def _positive_weights(
    weight: Tensor, ptr: Tensor, name: str = 'weight'
) -> tuple[Tensor, ...]:
    return ops.formats.positive_weights(weight, name, ptr=ptr)


def _sample_frontier(
    indptr: Tensor,
    start: Tensor,
    id: Tensor,
    k: int,
    *,
    key: Tensor,
    **options: Any,
) -> tuple[Tensor, Tensor]:
    options |= {'start': start, 'id': id}
    return ops.sample_columns(indptr.long(), k, key=key, **options)


class Hops(NamedTuple):
    """Layers of a homogeneous graph."""

    indptr: list[Tensor]
    row: list[Tensor]
    edge: list[Tensor]
    node: list[Tensor]


class HeteroHops(NamedTuple):
    """Layers, with a list for each relation or node type."""

    indptr: list[list[Tensor]]
    row: list[list[Tensor]]
    edge: list[list[Tensor]]
    node: list[list[Tensor]]
    batch: list[list[Tensor]]


_HOP_OPTIONS = 'call_id', 'frontier', 'sorted', 'return_frontier'


def _hetero_sample_hops(
    indptr: Sequence[Tensor],
    indices: Sequence[Tensor],
    relations: Sequence[tuple[int, int]],
    num_nodes: Sequence[int],
    seeds: Sequence[Tensor],
    fanouts: Sequence[Sequence[int]],
    *,
    key: Sequence[Tensor],
    cum_weight: Sequence[Tensor | None] | None = None,
    edge_time: Sequence[Tensor | None] | None = None,
    seed_time: Sequence[Tensor] | None = None,
    **options: Any,
) -> HeteroHops:
    fields = indptr, indices, cum_weight, edge_time
    graph = make_graph(relations, num_nodes, *fields)
    hops = {k: options.pop(k) for k in _HOP_OPTIONS if k in options}
    out = ops.sample_layers(
        graph,
        seeds,
        fanouts,
        key,
        sampling=ops.Sampling(**options),
        seed_time=seed_time if graph.is_temporal else None,
        **hops,
    )
    none = [[node[:0] for node in of_hop] for of_hop in out.node]
    return HeteroHops(*out[:4], out.batch or none)


def _sample_hops(
    indptr: Tensor,
    indices: Tensor,
    seeds: Tensor,
    fanouts: Sequence[int],
    *,
    cum_weight: Tensor | None = None,
    **options: Any,
) -> Hops:
    out = _hetero_sample_hops(
        [indptr],
        [indices],
        [(0, 0)],
        [indptr.numel() - 1],
        [seeds],
        [fanouts],
        cum_weight=None if cum_weight is None else [cum_weight],
        **options,
    )
    return Hops(*([of_one for [of_one] in part] for part in out[:4]))


#: The replacement of each name in :mod:`torch_gsample.ops`, and its value.
NAMES: dict[str, tuple[str, Any]] = {
    'HeteroHops': ('Layers', HeteroHops),
    'Hops': ('Layers', Hops),
    'hetero_sample_hops': ('sample_layers', _hetero_sample_hops),
    'positive_weights_segments': (
        'formats.positive_weights(..., ptr=)',
        _positive_weights,
    ),
    'sample_frontier': ('sample_columns(..., start=)', _sample_frontier),
    'sample_hops': ('sample_layers', _sample_hops),
    'sample_nodes_segments': ('sample_nodes(..., ptr=)', _sample_nodes),
    'slice_rows_segments': (
        'slice_rows(..., row_ptr=, col_ptr=)',
        _slice_rows,
    ),
    'unique_nodes_segments': ('unique_nodes(..., ptr=)', _unique_nodes),
}
