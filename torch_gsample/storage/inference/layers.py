"""The layers of a model, computed for a tile.

A model comes in; functions of a tile's rows and edges go out.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.nn.conv.hetero_conv import group
from torch_geometric.nn.models.basic_gnn import BasicGNN

from torch_gsample.storage.inference.ends import Ends
from torch_gsample.vertex import nn as fused

#: Fused layers that compute one hop of a block.
_FUSED = (
    fused.GATConv,
    fused.GATv2Conv,
    fused.GCNConv,
    fused.GINConv,
    fused.SAGEConv,
)
#: Layers that take no pair, and compute a node from its in-edges alone.
_SQUARE = pyg.PNAConv, pyg.AGNNConv
#: Norms that take the mean of all rows if they do not have it.
_BATCH_NORMS = (
    nn.BatchNorm1d,
    nn.BatchNorm2d,
    nn.BatchNorm3d,
    nn.SyncBatchNorm,
)
#: Modules that take statistics over rows, unless they are known.
_MIXING = (
    pyg.GraphNorm,
    pyg.GraphSizeNorm,
    pyg.InstanceNorm,
    pyg.MeanSubtractionNorm,
    pyg.PairNorm,
)


class Relations(dict[Any, Any]):
    """A value for each relation into a tile; others are an error."""

    def __init__(self, values: dict[Any, Any], missing: dict[Any, str]):
        super().__init__(values)
        self._missing = missing

    def __contains__(self, key: object) -> bool:
        if key in self._missing:
            self._refuse(key)
        return super().__contains__(key)

    def __missing__(self, key: Any) -> Any:
        if key in self._missing:
            self._refuse(key)
        raise KeyError(key)

    def _refuse(self, key: Any) -> None:
        raise ValueError(
            f'infer: a layer reads {key}, but no layer before it returned '
            f'rows of type {self._missing[key]!r}'
        )


@dataclass
class Layer:
    """One call of :func:`infer` for each tile.

    Args:
        name (str): Its name in errors.
        run (Callable): Takes a dictionary of :class:`Ends` by relation, the
            type of destinations, their rows, and their rows after earlier
            layers, where ``reads_all``; returns rows, or None for a type that
            the layer does not compute.
        degrees (Set[Tuple]): Which in-degrees it needs: a relation, and
            whether each node has one loop instead of its own ones.
        reads_all (bool): Whether it reads rows after all layers before it.
        convs (Dict[Any, Any]): PyG's layers, by relation.
        calls_convs (bool): Whether nothing but ``convs`` sees edges.
    """

    name: str
    run: Callable[[Any, Any, Tensor, list[Tensor]], Tensor | None]
    degrees: set[tuple[Any, bool]] = field(default_factory=set)
    reads_all: bool = False
    convs: dict[Any, Any] = field(default_factory=dict)
    calls_convs: bool = False


def call_conv(conv: Any, ends: Ends) -> Tensor:
    """Calls a layer of PyG, or a fused one, with a tile.

    Raises:
        ValueError: If the layer takes one type of nodes, and there are two.
    """
    if not ends.shared and isinstance(conv, (*_SQUARE, pyg.GCNConv)):
        raise ValueError(
            f'infer: {type(conv).__name__} must have sources and destinations '
            'of one type'
        )
    if isinstance(conv, _FUSED):
        return conv(ends.x, ends.block())
    if isinstance(conv, pyg.GCNConv):
        return _call_gcn(conv, ends)
    more, name = {}, _takes_features(conv)
    if ends.features is not None and name is not None:
        more[name] = ends.features
    if isinstance(conv, _SQUARE):
        return conv(ends.x[0], ends.edge_index, **more)[: ends.size[1]]
    return conv(ends.x, ends.edge_index, **more)


def _takes_features(conv: Any) -> str | None:
    """Returns by which name a layer of PyG takes features of edges."""
    known = inspect.signature(conv.forward).parameters
    names = (n for n in ('edge_attr', 'edge_weight') if n in known)
    return next(names, None)


def _call_gcn(conv: pyg.GCNConv, ends: Ends) -> Tensor:
    """Calls PyG's GCN, which takes no pair, with degrees of the graph.

    The weights are those of ``gcn_norm``, in the order in which it has edges:
    loops, one a node, are the last.
    """
    (src, _), weight, edge_index = ends.x, ends.features, ends.edge_index
    if conv.normalize:
        if conv.add_self_loops:
            loops = torch.arange(ends.size[1]).expand(2, -1)
            edge_index = edge_index[:, edge_index[0] != edge_index[1]]
            if ends.last:
                edge_index = torch.cat([edge_index, loops], 1)
        degree = ends.degree[bool(conv.add_self_loops)]
        norm = degree.to(src.dtype).pow(-0.5)
        norm = norm.masked_fill(norm == torch.inf, 0)
        weight = norm[edge_index[0]] * norm[edge_index[1]]
    x = conv.lin(src)
    out = conv.propagate(
        edge_index, x=(x, None), edge_weight=weight, size=ends.size
    )
    return out if conv.bias is None else out + conv.bias


def check_edge_features(layers: list['Layer'], relations: set[Any]) -> None:
    """Refuses layers that would leave features of edges alone.

    Args:
        layers (List[Layer]): The layers.
        relations (Set[Any]): The relations whose edges have features.

    Raises:
        ValueError: If a layer does not take them.
    """
    for layer in layers:
        for relation, conv in layer.convs.items():
            if relation not in relations:
                continue
            norms = isinstance(conv, pyg.GCNConv) and conv.normalize
            if isinstance(conv, _FUSED) or norms:
                raise ValueError(
                    f"infer: 'edge_features' must not be set for layer "
                    f'{layer.name}: {type(conv).__name__} needs them for '
                    'the whole graph'
                )
            if _takes_features(conv) is None:
                raise ValueError(
                    f"infer: 'edge_features' must not be set for layer "
                    f'{layer.name}: {type(conv).__name__} has no argument '
                    'for them'
                )


def layers_of(
    model: nn.Module, layers: Iterable[Any] | None, hetero: bool
) -> list[Layer]:
    """Returns the layers to compute.

    Args:
        model (torch.nn.Module): The model.
        layers (Iterable[Any], optional): See :func:`infer`.
        hetero (bool): Whether the graph has types.

    Raises:
        TypeError: If the layers of the model are not known.
        ValueError: If a part of it mixes rows, or it is in training mode.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(
            f"infer: 'model' must be a torch.nn.Module (got "
            f'{type(model).__name__})'
        )
    _check_model(model)
    kind = getattr(type(model), 'base', type(model))  # of a fused model
    known = isinstance(model, BasicGNN) and kind.forward is BasicGNN.forward
    if layers is None and known and not hetero:
        convs: Any = model.convs
        return [_basic_layer(model, i) for i in range(len(convs))]
    if layers is None and isinstance(model, (nn.ModuleList, nn.Sequential)):
        layers = model
    if layers is None:
        raise TypeError(
            "infer: 'layers' is required for a model that is not a "
            f'BasicGNN, ModuleList or Sequential (got {type(model).__name__})'
        )
    out = [_listed_layer(item, i) for i, item in enumerate(layers)]
    if not out:
        raise ValueError("infer: 'layers' must have at least one layer")
    return out


def _check_model(model: nn.Module) -> None:
    for name, module in model.named_modules():
        where = f'{type(module).__name__} {name!r} of the model'
        if module.training:
            raise ValueError(
                f'infer: {where} must be in evaluation mode (call '
                'model.eval())'
            )
        if isinstance(module, _BATCH_NORMS):
            mixes = module.running_mean is None
        elif isinstance(module, pyg.LayerNorm):
            mixes = module.mode != 'node'
        else:
            mixes = isinstance(module, _MIXING)
        if mixes:
            raise ValueError(
                f'infer: {where} must compute each row by itself: it takes '
                'statistics over all rows'
            )
    for key, value in model.named_parameters():
        if nn.parameter.is_lazy(value):
            raise ValueError(f'infer: parameter {key!r} has no values yet')
        if value.device.type != 'cpu':
            raise ValueError(
                f"infer: 'model' must be on the CPU (parameter {key!r} is on "
                f'{value.device})'
            )


def _check_conv(conv: Any, name: str) -> None:
    """Refuses layers of PyG that must see more than the in-edges of a node.

    Raises:
        ValueError: If the layer takes no pair of rows.
    """
    if not isinstance(conv, MessagePassing):
        return
    if conv.flow != 'source_to_target':
        raise ValueError(
            f"infer: layer {name} must have flow 'source_to_target' (got "
            f'{conv.flow!r})'
        )
    known = isinstance(conv, (*_FUSED, *_SQUARE, pyg.GCNConv))
    x, *_ = inspect.signature(conv.forward).parameters.values()
    if not known and x.annotation in (Tensor, 'Tensor'):
        raise ValueError(
            f'infer: layer {name} must take a pair (x_src, x_dst) of rows: '
            f'{type(conv).__name__} takes the rows of all nodes'
        )


def _degrees(conv: Any) -> set[tuple[Any, bool]]:
    """Which in-degrees a layer reads: relations, and whether with loops."""
    convs = {None: conv}
    if isinstance(conv, pyg.HeteroConv):
        convs = dict(conv.convs.items())
    return {
        (relation, bool(c.add_self_loops))
        for relation, c in convs.items()
        if isinstance(c, pyg.GCNConv) and c.normalize
    }


def _basic_layer(model: BasicGNN, i: int) -> Layer:
    """Returns a layer of PyG's basic models, as their ``forward`` has it."""
    conv, norm = model.convs[i], model.norms[i]
    last = i == model.num_layers - 1
    joins = last and hasattr(model, 'jk')

    def run(
        ends: dict[Any, Ends], target: Any, x: Tensor, before: list[Tensor]
    ) -> Tensor:
        (own,) = ends.values()
        out = call_conv(conv, own)
        if not last or model.jk_mode is not None:
            if model.act is not None and model.act_first:
                out = model.act(out)
            extra = (None, None) if model.supports_norm_batch else ()
            out = norm(out, *extra)
            if model.act is not None and not model.act_first:
                out = model.act(out)
        if joins:
            out = model.jk([*before, out])
        if last and hasattr(model, 'lin'):
            out = model.lin(out)
        return out

    name = f'convs.{i} {type(conv).__name__}'
    _check_conv(conv, name)
    return Layer(name, run, _degrees(conv), joins, {None: conv}, True)


def _listed_layer(item: Any, i: int) -> Layer:
    """Returns a layer of a list that a user gave."""
    first, *after = item if isinstance(item, (tuple, list)) else (item,)
    for function in (first, *after):
        if not callable(function):
            raise TypeError(
                f"infer: 'layers' must hold callables, or tuples of them (got "
                f'{type(function).__name__} in layer {i})'
            )

    def run(
        ends: Any, target: Any, x: Tensor, before: list[Tensor]
    ) -> Tensor | None:
        if isinstance(first, pyg.HeteroConv):
            out = _call_hetero(first, ends)
        elif target is None:
            (own,) = ends.values()
            graph_layer = isinstance(first, MessagePassing)
            if graph_layer:
                out = call_conv(first, own)
            else:
                more = [] if own.features is None else [own.features]
                out = first(own.x, own.edge_index, *more)
        else:
            arguments = [
                _mapped(ends, lambda e: e.x),
                _mapped(ends, lambda e: e.edge_index),
            ]
            if any(e.features is not None for e in ends.values()):
                arguments.append(_mapped(ends, lambda e: e.features))
            out = first(*arguments).get(target)
        for function in after:
            out = None if out is None else function(out)
        return out

    name = f'{i} {getattr(first, "__qualname__", type(first).__name__)}'
    convs = {None: first}
    if isinstance(first, pyg.HeteroConv):
        convs = dict(first.convs.items())
    for conv in convs.values():
        _check_conv(conv, name)
    known = {k: c for k, c in convs.items() if isinstance(c, MessagePassing)}
    same = len(known) == len(convs)
    return Layer(name, run, _degrees(first), convs=known, calls_convs=same)


def _mapped(ends: Relations, function: Callable[[Ends], Any]) -> Relations:
    return Relations({k: function(e) for k, e in ends.items()}, ends._missing)


def _call_hetero(conv: pyg.HeteroConv, ends: Any) -> Tensor | None:
    """Computes one type of destinations, as ``HeteroConv.forward`` does."""
    outs = [
        call_conv(layer, ends[key])
        for key, layer in conv.convs.items()
        if key in ends
    ]
    return group(outs, conv.aggr) if outs else None
