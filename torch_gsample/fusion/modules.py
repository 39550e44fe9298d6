"""Classes of the modules in a fused model: same name, other forward."""

import threading
import warnings
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.compiler import is_dynamo_compiling

from torch_gsample.fusion.calls import (
    BATCH_NORMS,
    BlockCall,
    Layer,
    State,
    current,
    recomputed,
)
from torch_gsample.fusion.cells import TiledCell, TypedProduct
from torch_gsample.fusion.classes import (  # pickles of 0.2.0 read _restore
    ROLES,
    Fused,
    _restore,  # noqa: F401
)
from torch_gsample.fusion.forms import PlanError, UntestedError
from torch_gsample.fusion.made_edges import edges_of_call
from torch_gsample.fusion.record import make_plan
from torch_gsample.fusion.report import print_report
from torch_gsample.fusion.row_rules import tensors_of
from torch_gsample.fusion.rows import (
    FirstRows,
    UnseenRowsError,
    first_rows,
    plain,
    unseen,
)
from torch_gsample.loader.batch_edge_index import (
    edges_of_batches,
    marked_edges,
    plain_edges,
)
from torch_gsample.torch_private import is_in_backward
from torch_gsample.vertex.capture.propagate import (
    capture_of,
    keeps_weights,
    kept_weights,
)

_lock = threading.RLock()
#: Plans of a model, each tested on a batch that shows more.
_MOST_PLANS = 8


class FusedLayer(Fused):
    """A layer that computes a block in a call of its model."""

    _gsample_layer: tuple[State, Layer]
    #: The class of PyG's layer.
    layer_class: type

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the layer."""
        state, layer = self._gsample_layer
        call = current.call
        # Cheap tests first: with few vertices, Python dominates the time.
        if (
            call is None
            and len(args) > 1
            and type(args[0]) is type(args[1]) is Tensor
            and not _is_traced()
            and args[0].size(0) < state.min_nodes
        ):
            return self._call_pyg(args, kwargs)
        own: Any = super().forward  # type: ignore[misc]
        if _is_traced():
            if is_dynamo_compiling() and _has_edges_of_batches(args, kwargs):
                args, kwargs = _for_compiler(layer, state, args, kwargs)
            return own(*args, **kwargs)
        module = cast(nn.Module, self)
        if not keeps_weights() and layer.returns_weights(args, kwargs):
            with kept_weights():
                return self.forward(*args, **kwargs)
        if call is not None and call.state is state and not call.in_layer:
            return call.run_layer(module, layer, own, args, kwargs)
        if call is None and is_in_backward():
            again = recomputed(state, layer, module.training, args, kwargs)
            if again is not None:
                with again:
                    return again.run_layer(module, layer, own, args, kwargs)
        x: Any = args[0] if args else kwargs.get('x')
        partial = tensors_of(args, kwargs, FirstRows)
        if partial:
            raise unseen(f'{layer}, outside of its model,', partial[0])
        if call is None and not state.is_called:
            _warn_outside(state, layer, args, kwargs)
        # To PyG's layers, edges that know their batch are slower.
        args = tuple(map(plain_edges, args))
        kwargs = {name: plain_edges(x) for name, x in kwargs.items()}
        edges = args[1] if len(args) > 1 else kwargs.get('edge_index')
        if isinstance(edges, Tensor) and _are_few(x, state.min_nodes):
            return self._call_pyg(args, kwargs)
        return own(*args, **kwargs)

    def _call_pyg(self, args: Any, kwargs: Any) -> Any:
        """Calls PyG's layer, which is faster for few vertices."""
        pyg: Any = self.layer_class
        before, _left.layer = _left.layer, self
        try:
            return pyg.forward(self, *args, **kwargs)
        finally:
            _left.layer = before

    def propagate(self, edge_index: Any, **kwargs: Any) -> Any:
        """Computes messages in a kernel, if they were captured."""
        if _left.layer is self:
            pyg: Any = self.layer_class
            return pyg.propagate(self, edge_index, **kwargs)
        own: Any = super().propagate  # type: ignore[misc]
        call = current.call
        state, layer = self._gsample_layer
        hops = None
        if call is not None and call.state is state:
            call.num_propagations += 1
            hops = call.hops
        if hops is None:
            return self._captured('propagate', own, edge_index, kwargs)
        module: Any = self
        edge_index, kwargs = hops.destinations(module, edge_index, kwargs)
        out = self._captured('propagate', own, edge_index, kwargs)
        dim = module.node_dim % out.dim()
        return first_rows(out, hops.origin(layer), dim)

    def edge_updater(self, edge_index: Any, **kwargs: Any) -> Any:
        """Computes a feature of edges in a kernel, if it was captured."""
        if _left.layer is self:
            pyg: Any = self.layer_class
            return pyg.edge_updater(self, edge_index, **kwargs)
        own: Any = super().edge_updater  # type: ignore[misc]
        call = current.call
        if call is not None and call.hops is not None:
            edge_index, kwargs = call.hops.to_update(self, edge_index, kwargs)
        return self._captured('edge_updater', own, edge_index, kwargs)

    def _captured(
        self, method: str, own: Any, edge_index: Any, kwargs: dict[str, Any]
    ) -> Any:
        if _is_traced():
            return own(edge_index, **kwargs)
        (state, layer), module = self._gsample_layer, cast(nn.Module, self)
        capture = capture_of(module)
        out = capture.run(
            method, module, own, state.min_nodes, edge_index, kwargs
        )
        state.messages[layer.name] = capture.is_fused, capture.reason
        return out


class _Left(threading.local):
    """The layer that runs PyG's code, because it has few vertices."""

    layer: Any = None


_left = _Left()


def _are_few(x: Any, min_nodes: int) -> bool:
    """Whether features, or a pair of them, have too few rows for a kernel."""
    if isinstance(x, Tensor):
        return len(x) < min_nodes
    pair = x if isinstance(x, (tuple, list)) else ()
    return bool(pair) and all(
        y is None or _are_few(y, min_nodes) for y in pair
    )


def _warn_outside(state: State, layer: Layer, args: Any, kwargs: Any) -> None:
    """Warns once that layers run without their model, on whole batches."""
    edges = next(marked_edges(*args, *kwargs.values()), None)
    if edges is None or edges.batch.num_nodes < state.min_nodes:
        return
    state.is_called = True
    warnings.warn(
        f'fuse: {layer} runs on whole batches, not on blocks: it was called '
        f"outside of {state.name}'s forward. Fuse the module that you call, "
        f'such as an encoder',
        stacklevel=4,
    )


def _is_traced() -> bool:
    """Whether the call is being traced; then PyG's own code runs."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing()


def _has_edges_of_batches(args: Any, kwargs: Any) -> bool:
    found = edges_of_batches(*args, *kwargs.values())
    return next(found, None) is not None


@torch.compiler.disable(reason='blocks are not compiled')
def _for_compiler(name: Any, state: State, args: Any, kwargs: Any) -> Any:
    """Returns the arguments of a compiled call, with plain edges.

    Torch refuses tensors of a subclass as arguments of compiled operators.
    """
    if not state.is_called:
        state.is_called = True
        warnings.warn(
            f'fuse: {name} runs on whole batches, not on blocks: it is '
            f'compiled by torch.compile. Compile other modules than the fused '
            f'one, or none',
            stacklevel=2,
        )
    return plain_edges(args), plain_edges(kwargs)


class FusedNorm(Fused):
    """A norm over all rows that optionally uses only computed rows."""

    _gsample_norm: State

    def forward(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls the norm."""
        own: Any = super().forward  # type: ignore[misc]
        call = current.call
        if call is not None and call.is_trial:
            return x  # statistics differ on purpose; compare all else
        if not isinstance(x, FirstRows) or x.row_dim:
            return own(x, *args, **kwargs)
        if not x.numel():  # of a node type that nobody reads
            return x
        out = own(plain(x), *args, **kwargs)
        return first_rows(out, x.origin)


class FusedCell(Fused, TiledCell):
    """A recurrent cell of a layer."""


class FusedProduct(Fused, TypedProduct):
    """A product of rows by the weight of their type."""


class FusedModel(Fused):
    """A model whose layers compute blocks of a batch."""

    _gsample_model: State

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the model."""
        return self._gsample_run('forward', args, kwargs)

    def _gsample_run(self, method: str, args: Any, kwargs: Any) -> Any:
        own: Any = getattr(super(), method)
        state = self._gsample_model
        if is_dynamo_compiling() and _has_edges_of_batches(args, kwargs):
            args, kwargs = _for_compiler(state.name, state, args, kwargs)
        if _is_traced() or current.call is not None:
            return own(*args, **kwargs)
        state.is_called = True
        model: Any = self
        if not _is_served(model, state, method, args, kwargs):
            return own(*args, **kwargs)
        edges = edges_of_call(args, kwargs)
        if is_in_backward():  # a checkpoint ends its calls by exceptions
            with BlockCall(state, edges):
                return own(*args, **kwargs)
        statistics = _statistics(model)
        try:
            if state.steps is None:
                _plan(model, state, method, args, kwargs)
            with BlockCall(state, edges):
                return own(*args, **kwargs)
        except Exception as error:
            failure = error
        for buffer, before in statistics:  # the next call updates them again
            buffer.copy_(before)
        if isinstance(failure, UntestedError) and _can_replan(state):
            state.outdated, state.steps = state.steps, None
            return self._gsample_run(method, args, kwargs)
        # An error of the model or the batch is raised again here.
        out = own(*args, **kwargs)
        _refuse(state, model.training, failure)
        return out


def _is_served(
    model: nn.Module, state: State, method: str, args: Any, kwargs: Any
) -> bool:
    """Whether a call can use blocks."""
    if model.training in state.refused or state.method not in ('', method):
        return False
    if state.steps is None and is_in_backward():
        return False
    edges = next(marked_edges(*args, *kwargs.values()), None)
    if edges is None or edges.batch.num_nodes < state.min_nodes:
        return False
    if state.steps is not None:
        return True
    # Recording needs gradients and a tensor that is not empty.
    return (
        not torch.is_inference_mode_enabled()
        and edges.shape[1] > 0
        and not any(nn.parameter.is_lazy(p) for p in model.parameters())
    )


def _statistics(model: nn.Module) -> list[tuple[Tensor, Tensor]]:
    """Returns the statistics that a call updates, and copies of them."""
    if not model.training:
        return []
    norms = (m for m in model.modules() if isinstance(m, BATCH_NORMS))
    return [(x, x.clone()) for m in norms for x in m.buffers()]


def _can_replan(state: State) -> bool:
    """Whether a plan of another batch can be made in this call."""
    enabled = not torch.is_inference_mode_enabled()
    return enabled and state.num_plans < _MOST_PLANS


def _plan(
    model: Any, state: State, method: str, args: Any, kwargs: Any
) -> None:
    with _lock:
        if model.training in state.refused:  # refused by another thread
            raise PlanError(state.refused[model.training])
        if state.steps is None:
            try:
                state.num_plans += 1
                state.method = method
                forward = getattr(type(model).base, method)
                make_plan(model, state, forward, args, kwargs)
            except Exception as error:
                # Recorded under the lock, before another thread plans.
                _refuse(state, model.training, error, stacklevel=6)
                raise
            if state.verbose:
                print_report(state)


def _refuse(
    state: State, training: bool, error: Exception, stacklevel: int = 5
) -> None:
    if isinstance(error, UnseenRowsError):
        reason = str(error).split(': take these')[0].removeprefix('fuse: ')
    elif isinstance(error, PlanError):
        reason = str(error)
    else:
        text = str(error).split('\n')[0]
        reason = f'{type(error).__name__}: {text}'
    with _lock:
        if training in state.refused:
            return
        state.refused[training] = reason
        if state.steps is None:
            state.refused[not training] = reason
    mode = 'training' if training else 'evaluation'
    when = '' if state.steps is None else f' in {mode}'
    warnings.warn(
        f'fuse: {state.name} runs on whole batches{when}, not on blocks: '
        f'{reason}',
        stacklevel=stacklevel,
    )


ROLES.update(
    layer=FusedLayer,
    model=FusedModel,
    norm=FusedNorm,
    cell=FusedCell,
    product=FusedProduct,
)
