"""Fusion of models written with PyG's layers."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch_geometric import nn as pyg_nn
from torch_geometric.nn.conv import MessagePassing

from torch_gsample.fusion.calls import (
    BATCH_NORMS,
    State,
    layer_of,
)
from torch_gsample.fusion.cells import cells_of, typed_products_of
from torch_gsample.fusion.classes import (
    change_class,
    known_of,
    restore_class,
)
from torch_gsample.fusion.fused_model import FusedModel
from torch_gsample.fusion.modules import FusedLayer
from torch_gsample.fusion.report import text_of
from torch_gsample.fusion.trimming import leave_trimming_to_blocks
from torch_gsample.torch_private import is_compiled
from torch_gsample.vertex import nn as vertex_nn

#: With fewer nodes, Python costs more than the cheapest layers save.
MIN_NODES = 1536
#: Our layer for each of PyG's.
_FUSED = {
    getattr(pyg_nn, name): getattr(vertex_nn, name)
    for name in vertex_nn.__all__
}
_PARALLEL = (
    'DataParallel',
    'DistributedDataParallel',
    'FullyShardedDataParallel',
)
_IN_PLACE = "fuse: 'model' is changed in place: use it, not the result"


class Fusion:
    """The result of :func:`fuse` for a model.

    Args:
        model (torch.nn.Module): The model.
        state (State): Its state.
    """

    def __init__(self, model: nn.Module, state: State):
        #: The model, changed in place.
        self.model = model
        self._state = state

    def report(self) -> str:
        """Returns the change of each layer, or why it is not fused."""
        states = self._state, *self._state.others.values()
        return '\n'.join(map(text_of, states))

    def undo(self) -> None:
        """Restores the model's own classes."""
        unfuse(self.model)

    def __repr__(self) -> str:
        return self.report()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raises an error: the model is called, not its report."""
        raise TypeError(_IN_PLACE)

    def __getattr__(self, name: str) -> Any:
        mistaken = hasattr(nn.Module, name)
        raise AttributeError(
            f"{_IN_PLACE} (got '{name}')" if mistaken else name
        )


def fuse(
    model: nn.Module,
    min_nodes: int = MIN_NODES,
    statistics: str = 'all',
    verbose: bool = True,
) -> Fusion:
    """Fuses a model written with PyG's layers, in place.

    PyG's layers are replaced by those of :mod:`torch_gsample.vertex.nn` if
    these exist, with the same parameters and keys of ``state_dict``. Messages
    of other layers, including your own, are captured as vertex programs at
    their first call; PyG runs layers that cannot be captured. Each layer
    computes only the block of a batch that later layers read: see
    ``docs/fuse.md``. Results are those of the unchanged model for the seeds,
    which are the first rows; reading other rows raises an error.

    Edges must come from one of our loaders after the call. The first batch
    determines which rows each layer needs, and whether results are the same;
    if not, layers run on whole batches, with one warning that gives the
    reason.

    Args:
        model (torch.nn.Module): The model: a stack of layers, one from
            ``to_hetero``, or any other that calls PyG's layers.
        min_nodes (int, optional): Smaller batches and graphs run unchanged.
        statistics (str, optional): With ``'all'``, a model whose norms need
            all rows (``BatchNorm`` in training, ``LayerNorm`` of graphs) runs
            on whole batches. With ``'computed'``, these norms use only the
            computed rows, which changes the results.
        verbose (bool, optional): Whether to print the report to stderr, once
            it is known.

    Returns:
        Fusion: ``report()`` describes the changes, ``undo()`` reverts them.

    Raises:
        TypeError: If ``model`` is not a module.
        ValueError: If it has no PyG layers, or is compiled, scripted,
            quantized, data-parallel, or a part of a fused model.

    Example:
        >>> from torch_geometric.nn import GraphSAGE
        >>> fuse(GraphSAGE(4, 8, num_layers=2))
        GraphSAGE: 2 of 2 layers fused, blocks from the first batch of 1536 \
nodes
          convs.0  SAGEConv: fused
          convs.1  SAGEConv: fused
    """
    _check(model, min_nodes, statistics)
    if isinstance(model, FusedModel) and type(model).role == 'model':
        return Fusion(model, known_of(model))
    state = State(min_nodes, statistics, verbose, type(model).__name__)
    unfuse(model)
    fuse_layers(model, state)
    fuse_blocks(model, state)
    return Fusion(model, state)


def fuse_layers(model: nn.Module, state: State) -> None:
    """Fuses the layers of a model, which computes no blocks by itself.

    Layers that are fused already, as those of a part of the model, belong to
    both: other threads may run them.

    Args:
        model (torch.nn.Module): A model.
        state (State): Its state, to which the layers are added.
    """
    for name, module in list(_layers(model)):
        if isinstance(module, FusedLayer):
            layer = replace(module._gsample_layer[0][1], name=name or 'model')
            state.layers.append(layer)
            module.join(state, layer)
            continue
        ours = _ours(module)
        note = '' if ours is not None else 'no messages were captured yet'
        layer = layer_of(name or 'model', module, note)
        state.layers.append(layer)
        for cell in cells_of(module):
            change_class(cell, 'cell', state)
        change_class(module, 'layer', ((state, layer),), ours, type(module))
    for product in typed_products_of(model):
        change_class(product, 'product', state)


def fuse_blocks(model: nn.Module, state: State) -> None:
    """Makes a model with fused layers compute the blocks of its batches.

    Other threads may run these layers meanwhile.

    Args:
        model (torch.nn.Module): A model whose layers are fused.
        state (State): The state that it shares with them.
    """
    if state.statistics == 'computed':
        for norm in list(_norms(model)):
            change_class(norm, 'norm', state)
    leave_trimming_to_blocks()
    change_class(model, 'model', state)


def unfuse(model: nn.Module) -> None:
    """Reverts :func:`fuse`; other models do not change.

    Args:
        model (torch.nn.Module): A fused model, or a module with fused models.

    Raises:
        TypeError: If it is not a module.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(
            f"unfuse: 'model' must be a module (got {type(model).__name__})"
        )
    for module in list(model.modules()):
        restore_class(module)


def _ours(module: nn.Module) -> Any:
    """Returns our class for a layer, if it computes all of the layer."""
    if isinstance(module, pyg_nn.APPNP) and module.dropout:
        return None  # with dropout of edges, messages alone are fused
    return _FUSED.get(type(module))


def _layers(model: nn.Module) -> Iterator[tuple[str, Any]]:
    """Yields the layers of a model that are not inside other layers."""
    inner: set[nn.Module] = set()
    for name, module in model.named_modules():
        if isinstance(module, MessagePassing) and module not in inner:
            inner.update(module.modules())
            yield name, module


def _norms(model: nn.Module) -> Iterator[nn.Module]:
    for module in model.modules():
        graph = isinstance(module, pyg_nn.LayerNorm) and module.mode == 'graph'
        if graph or isinstance(module, BATCH_NORMS):
            yield module


def _check(model: Any, min_nodes: Any, statistics: Any) -> None:
    if not isinstance(model, nn.Module):
        raise TypeError(
            f"fuse: 'model' must be a module (got {type(model).__name__})"
        )
    if type(min_nodes) is not int or min_nodes < 0:
        raise ValueError(
            f"fuse: 'min_nodes' must be a number of nodes (got {min_nodes!r})"
        )
    if statistics not in ('all', 'computed'):
        raise ValueError(
            f"fuse: 'statistics' must be 'all' or 'computed' (got "
            f'{statistics!r})'
        )
    name = type(model).__name__
    for path, module in model.named_modules():
        reason = why_not(module)
        if reason:
            where = f"'{path}' of {name}" if path else name
            raise ValueError(
                f"fuse: 'model' must not be {reason} (got {where})"
            )
    if not any(isinstance(m, MessagePassing) for m in model.modules()):
        raise ValueError(
            f"fuse: 'model' must have layers derived from PyG's "
            f'MessagePassing (got {name})'
        )
    if not isinstance(model, FusedModel) and any(
        isinstance(m, FusedLayer) for m in model.modules()
    ):
        _check_parts(model)


def _check_parts(model: nn.Module) -> None:
    """Checks that no layer belongs to an outer fused model."""
    whole = [m for m in model.modules() if isinstance(m, FusedModel)]
    inside = {inner for m in whole for inner in m.modules()}
    for path, module in model.named_modules():
        if isinstance(module, FusedLayer) and module not in inside:
            raise ValueError(
                f"fuse: 'model' must not be a part of a fused model (got "
                f"{type(model).__name__} with the fused layer '{path}')"
            )


def why_not(module: nn.Module) -> str:
    """Returns why a module cannot be fused; empty if it can."""
    if isinstance(module, torch.jit.ScriptModule):
        return 'scripted: script it without fusing'
    if is_compiled(module):
        return 'compiled: fuse it without compiling'
    if type(module).__name__ in _PARALLEL:
        return 'data-parallel: fuse it before it is wrapped'
    if '.quantized' in type(module).__module__:
        return 'quantized: fuse the model of which it was made'
    return ''
