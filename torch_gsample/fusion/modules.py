"""Classes of the parts of a fused model: same name, other forward."""

import threading
import warnings
from typing import Any, cast

from torch import Tensor, nn
from torch.compiler import is_dynamo_compiling

from torch_gsample.fusion.calls import Layer, State, current
from torch_gsample.fusion.cells import TiledCell, TypedProduct
from torch_gsample.fusion.checkpoints import note_outside, recomputed
from torch_gsample.fusion.classes import (  # pickles of 0.2.0 read _restore
    ROLES,
    Fused,
    _restore,  # noqa: F401
)
from torch_gsample.fusion.row_rules import tensors_of
from torch_gsample.fusion.rows import FirstRows, first_rows, plain, unseen
from torch_gsample.fusion.traced import for_compiler, has_edges_of_batches
from torch_gsample.loader.batch_edge_index import marked_in, plain_edges
from torch_gsample.torch_private import is_in_backward, is_traced
from torch_gsample.vertex.capture.propagate import (
    capture_of,
    keeps_weights,
    kept_weights,
)


class FusedLayer(Fused):
    """A layer that computes a block in a call of its model."""

    #: For each model that it belongs to, its state and the layer in it.
    _gsample_layer: tuple[tuple[State, Layer], ...]
    #: The class of PyG's layer.
    layer_class: type

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the layer."""
        rows = plain_rows(args)
        if rows is not None:
            if rows < self._gsample_layer[0][0].min_nodes:
                return self.call_pyg(args, kwargs)
            if len(args) == 2 and not kwargs and not is_in_backward():
                return super().forward(*args)  # type: ignore[misc]
        call = current.call
        state, layer = self._part_of(call)
        own: Any = super().forward  # type: ignore[misc]
        if is_traced():
            if is_dynamo_compiling() and has_edges_of_batches(args, kwargs):
                args, kwargs = for_compiler(layer, state, args, kwargs)
            return own(*args, **kwargs)
        module = cast(nn.Module, self)
        if not keeps_weights() and layer.returns_weights(args, kwargs):
            with kept_weights():
                return self.forward(*args, **kwargs)
        if call is not None and call.state is state and not call.in_layer:
            return call.run_layer(module, layer, own, args, kwargs)
        if call is None and not current.is_whole and is_in_backward():
            models = self._gsample_layer
            again = recomputed(models, module.training, args, kwargs)
            if again is not None:
                _, layer = self._part_of(again)
                with again:
                    return again.run_layer(module, layer, own, args, kwargs)
        elif call is None and not current.is_whole:
            note_outside()
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
            return self.call_pyg(args, kwargs)
        return own(*args, **kwargs)

    def join(self, state: State, layer: Layer) -> None:
        """Makes it a layer of another model, too."""
        self._gsample_layer = *self._gsample_layer, (state, layer)

    def _part_of(self, call: Any) -> tuple[State, Layer]:
        """Returns the state of the model that runs, and the layer in it."""
        models = self._gsample_layer
        if call is not None:
            for model in models:
                if model[0] is call.state:
                    return model
        return models[0]

    def call_pyg(self, args: Any, kwargs: Any) -> Any:
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
        state, layer = self._part_of(call)
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

    #: PyG calls it again after it has explained a model.
    _jinja_propagate = propagate

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
        if is_traced():
            return own(edge_index, **kwargs)
        state, layer = self._part_of(current.call)
        module = cast(nn.Module, self)
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


def plain_rows(args: Any) -> int | None:
    """Returns the most rows of features of a layer's call on a whole graph.

    None if it may be another call. Cheap tests: with few vertices, Python
    dominates the time.

    Args:
        args (Tuple): The positional arguments of the call.
    """
    if (
        len(args) < 2
        or type(args[1]) is not Tensor
        or current.call is not None
        or is_traced()
    ):
        return None
    x = args[0]
    if type(x) is Tensor:
        return x.size(0)
    if type(x) is not tuple or len(x) != 2 or type(x[0]) is not Tensor:
        return None
    if x[1] is None:
        return x[0].size(0)
    return max(map(len, x)) if type(x[1]) is Tensor else None


def _are_few(x: Any, min_nodes: int) -> bool:
    """Whether features, or a pair of them, have too few rows for a kernel."""
    if isinstance(x, Tensor):
        return x.size(0) < min_nodes
    pair = x if isinstance(x, (tuple, list)) else ()
    return bool(pair) and all(
        y is None or _are_few(y, min_nodes) for y in pair
    )


def _warn_outside(state: State, layer: Layer, args: Any, kwargs: Any) -> None:
    """Warns once that layers run without their model, on whole batches."""
    edges = marked_in(args, kwargs)
    if edges is None or edges.batch.num_nodes < state.min_nodes:
        return
    state.is_called = True
    warnings.warn(
        f'fuse: {layer} runs on whole batches, not on blocks: it was called '
        f"outside of {state.name}'s forward. Fuse the module that you call, "
        f'such as an encoder',
        stacklevel=4,
    )


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


ROLES.update(
    layer=FusedLayer,
    norm=FusedNorm,
    cell=FusedCell,
    product=FusedProduct,
)
