"""Calls of models and layers that activation checkpoints repeat in backward.

A repeated call must store the tensors of the first one, so it computes the
same rows, and repeats attempts that failed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from torch import Tensor

from torch_gsample.fusion.calls import BlockCall, Layer, State
from torch_gsample.fusion.forms import block_at, edges_of
from torch_gsample.fusion.made_edges import with_blocks
from torch_gsample.loader.batch_edge_index import BatchBlocks, marked_edges
from torch_gsample.torch_private import checkpoint_frame


@dataclass
class Repeatable:
    """The last call of a model on one batch.

    Args:
        mode (str): How it ran last: on blocks (``'own'``), or as a part of
            another model, on its blocks (``'part'``) or on the whole batch
            (``'whole'``).
        failed (List[List[Step]]): The plans that failed in the last call.
    """

    mode: str = 'own'
    failed: list[Any] = field(default_factory=list)


#: By batch, state, method, and whether in training.
_calls: WeakKeyDictionary[
    BatchBlocks, WeakKeyDictionary[State, dict[Any, Repeatable]]
] = WeakKeyDictionary()


def calls_of(
    state: State, method: str, training: bool, batch: BatchBlocks
) -> Repeatable:
    """Returns the last call of a model on a batch.

    Args:
        state (State): The state of the model.
        method (str): The method of the calls.
        training (bool): Whether the model is in training.
        batch (BatchBlocks): The batch.
    """
    models = _calls.setdefault(batch, WeakKeyDictionary())
    calls = models.setdefault(state, {})
    return calls.setdefault((method, training), Repeatable())


#: Checkpoints in which a layer ran outside of its model, on the whole batch.
_outside: WeakSet[Any] = WeakSet()


def note_outside() -> None:
    """Notes that a layer runs outside of its model, if in a checkpoint."""
    frame = checkpoint_frame()
    if frame is not None:
        _outside.add(frame)


def recomputed(
    models: Sequence[tuple[State, Layer]],
    training: bool,
    args: Any,
    kwargs: Any,
) -> BlockCall | None:
    """Returns the call of a layer that an activation checkpoint repeats.

    None if it is ambiguous, or ran on the whole batch or outside of its model.

    Args:
        models (Sequence[Tuple[State, Layer]]): For each model that may have
            called the layer, its state and the layer in it.
        training (bool): Whether the layer is in training.
        args (Tuple): The positional arguments of the call.
        kwargs (Dict[str, Any]): Its keyword arguments.
    """
    if checkpoint_frame() in _outside:
        return None
    values: Any = models[0][1].bind(args, kwargs)
    values = with_blocks(values) or values
    edges = edges_of(values)
    if edges is None:
        return None
    num_nodes = next(marked_edges(edges)).batch.num_nodes
    found: dict[Any, BlockCall] = {}
    for state, layer in models:
        if training in state.refused or num_nodes < state.min_nodes:
            continue
        for step in state.steps or []:
            if step.layer == layer.name:
                call = BlockCall(state, steps=[step])
                found.setdefault(step._replace(layer=''), call)
    rows = _rows_of(values)
    if len(found) > 1 and rows is not None:
        found = {
            step: call
            for step, call in found.items()
            if step.level is not None
            and block_at(edges, step.level + step.num_hops - 1).num_src == rows
        }
    return next(iter(found.values())) if len(found) == 1 else None


def _rows_of(values: Any) -> Any:
    """The rows of a layer's input: a number, or one for each node type."""
    x = values.get('x', values.get('x_dict'))
    if isinstance(x, dict):
        return {key: y.shape[0] for key, y in x.items()}
    return x.shape[0] if isinstance(x, Tensor) else None
