"""Splits the in-edges of a hub, so that no layer sees them at once.

Of a layer that takes the sum, mean, maximum or minimum of its messages, the
aggregate of all edges follows from those of some edges each. Hooks take these
aggregates from PyG's layers, and put the joined one in the place of the last.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import Tensor
from torch_geometric import nn as pyg
from torch_geometric.nn import aggr

from torch_gsample.storage.inference.ends import Ends
from torch_gsample.storage.inference.layers import Layer, call_conv

#: Layers that aggregate once, and whose messages know one edge alone.
_SPLIT = (
    pyg.EdgeConv,
    pyg.GCNConv,
    pyg.GINConv,
    pyg.GINEConv,
    pyg.GraphConv,
    pyg.NNConv,
    pyg.ResGatedGraphConv,
    pyg.SAGEConv,
)
_AGGREGATIONS = (
    aggr.MaxAggregation,
    aggr.MeanAggregation,
    aggr.MinAggregation,
    aggr.SumAggregation,
)

#: An aggregate ``[1, *]`` by relation, and of how many messages it is.
Aggregates = dict[Any, tuple[Tensor, int]]


class _Found(Exception):
    """Ends a layer when its aggregate is known."""


class _State(threading.local):
    """The state of hooks in this thread."""

    taking = False
    found: tuple[Tensor, int] | None = None
    given: dict[int, Tensor] | None = None


_state = _State()


def splits(layer: Layer) -> bool:
    """Whether hubs of a layer may be split.

    Args:
        layer (Layer): The layer, which calls its ``convs`` and nothing else
            with edges.
    """
    convs = list(layer.convs.values())
    return (
        layer.calls_convs
        and len({id(conv) for conv in convs}) == len(convs)
        and all(
            type(conv) in _SPLIT and type(conv.aggr_module) in _AGGREGATIONS
            for conv in convs
        )
    )


@contextmanager
def hooked(layer: Layer) -> Iterator[None]:
    """Puts hooks on the layers of PyG, if its hubs may be split."""
    convs = layer.convs.values() if splits(layer) else ()
    handles = [conv.register_aggregate_forward_hook(_hook) for conv in convs]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _hook(conv: Any, inputs: Any, out: Tensor) -> Tensor | None:
    if _state.taking:
        _state.found = out, inputs[0]['index'].numel()
        raise _Found
    if _state.given is None:
        return None
    return _state.given.get(id(conv))


def take(layer: Layer, ends: dict[Any, Ends]) -> Aggregates:
    """Returns the aggregates of a part of a hub's edges."""
    out: Aggregates = {}
    _state.taking = True
    try:
        for relation, conv in layer.convs.items():
            if relation not in ends:
                continue
            _state.found = None
            with suppress(_Found):
                call_conv(conv, ends[relation])
            found = _state.found
            if found is not None and found[1]:  # of no edge it is zero
                out[relation] = found
    finally:
        _state.taking, _state.found = False, None
    return out


def join(layer: Layer, parts: list[Aggregates]) -> dict[int, Tensor]:
    """Joins the aggregates of all edges of a hub, by layer of PyG."""
    out = {}
    for relation, conv in layer.convs.items():
        found = [part[relation] for part in parts if relation in part]
        if found:
            out[id(conv)] = _joined(conv.aggr_module, found)
    return out


def _joined(kind: Any, found: list[tuple[Tensor, int]]) -> Tensor:
    values = torch.cat([value for value, _ in found])
    if isinstance(kind, aggr.MaxAggregation):
        return values.amax(0, keepdim=True)
    if isinstance(kind, aggr.MinAggregation):
        return values.amin(0, keepdim=True)
    if isinstance(kind, aggr.SumAggregation):
        return values.sum(0, keepdim=True)
    # The mean of n messages is sum_p (n_p / n) mean_p.
    counts = torch.tensor([n for _, n in found], dtype=torch.float64)
    share = (counts / counts.sum()).to(values.dtype)
    share = share.view(-1, *[1] * (values.dim() - 1))
    return (values * share).sum(0, keepdim=True)


@contextmanager
def giving(values: dict[int, Tensor]) -> Iterator[None]:
    """Lets layers of PyG take these aggregates, in this thread."""
    _state.given = values
    try:
        yield
    finally:
        _state.given = None
