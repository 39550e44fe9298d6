"""Runs ``propagate`` and ``edge_updater`` of PyG's layers as fused kernels."""

import inspect
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from torch_gsample.torch_private import (
    has_hooks,
    is_mapped,
    is_transformed,
    without_functorch,
    without_transforms,
)
from torch_gsample.vertex.capture.arguments import Reading
from torch_gsample.vertex.capture.lower import Program
from torch_gsample.vertex.capture.nodes import AGGREGATE, Node, NotCaptured
from torch_gsample.vertex.capture.run import Tensors, restored
from torch_gsample.vertex.capture.state import state_of, tensors_in
from torch_gsample.vertex.capture.trace import SIZES, traced_call
from torch_gsample.vertex.frontend.precision import (
    HALF,
    is_autocast,
    without_autocast,
)
from torch_gsample.vertex.kernels.graph_cache import flipped
from torch_gsample.vertex.kernels.matrices import edges_of_matrix
from torch_gsample.vertex.program import VertexProgram

_HOOKS = {
    'propagate': (
        *('_propagate_forward_pre_hooks', '_propagate_forward_hooks'),
        *('_message_forward_pre_hooks', '_message_forward_hooks'),
        *('_aggregate_forward_pre_hooks', '_aggregate_forward_hooks'),
        *('_message_and_aggregate_forward_pre_hooks',),
        *('_message_and_aggregate_forward_hooks',),
    ),
    'edge_updater': (
        *('_edge_update_forward_pre_hooks', '_edge_update_forward_hooks'),
    ),
}
_SINGLE = frozenset({torch.float32, *HALF})
#: Maximum number of cached programs of a layer.
_FORMS = 64
#: Marks a form not seen yet; None marks one that could not be captured.
_UNKNOWN: Any = object()


class NotKept:
    """A placeholder for attention weights that no kernel stores."""


class _Captured:
    """A program and its calling convention."""

    def __init__(self, layer: Any, root: Any, kept: dict[str, Node | None]):
        #: The result, or a tuple or list of them.
        self.root, self.kept = root, kept
        roots = [root] if isinstance(root, Node) else root
        found = [*roots, *(node for node in kept.values() if node)]
        edges = [node for node in found if node.kind != AGGREGATE]
        self.program = Program(edges, roots)
        built = self.program

        def program(v: Any, **values: Any) -> Any:
            return built.run(v, values)

        names = ['v', *built.parameters]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        program.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter(name, kind) for name in names]
        )
        dtypes = [node.dtype for node in built.outputs]
        self.vertex = VertexProgram(program, _name_of(layer), dtypes)

    def run(
        self, layer: Any, graph: Tensor, reading: Reading, target: int
    ) -> Any:
        """Computes ``propagate``; casts of autocast were recorded."""
        with without_autocast(graph.device):
            return self._run(layer, graph, reading, target)

    def _run(
        self, layer: Any, graph: Tensor, reading: Reading, target: int
    ) -> Any:
        sizes: Any = reading.sizes
        rows = sizes[1 - target], sizes[target], graph.shape[1]
        tensors = Tensors(layer, reading.inputs, rows, graph, target)
        features = {
            name: tensors.operand(node, lost, name, self.program.dtype)
            for (node, lost), name in self.program.leaves.items()
        }
        if target == 0:
            with without_functorch():  # cached with the graph
                graph = flipped(graph)
        out = self.vertex(graph, size=rows[:2], **features)  # type: ignore[arg-type]
        found = out if isinstance(out, tuple) else (out,)
        for node, value in zip(self.program.outputs, found, strict=True):
            tensors.done[node] = restored(value, node)
        for name, weights in self.kept.items():
            kept: Any = NotKept()
            if weights is not None:
                kept = tensors.of(weights).contiguous()
            setattr(layer, name, kept)
        if isinstance(self.root, Node):
            return _result(self.root, tensors, rows)
        return type(self.root)(
            _result(node, tensors, rows) for node in self.root
        )


def _result(root: Node, tensors: Tensors, rows: tuple[int, int, int]) -> Any:
    result = tensors.of(root)
    want = list(root.shape)
    want[root.row or 0] = rows[1 if root.kind == AGGREGATE else 2]
    assert list(result.shape) == want, f'{list(result.shape)}, not {want}'
    return result.contiguous()  # as in PyG, where users take views of it


class Capture:
    """Properties of a layer's messages."""

    def __init__(self) -> None:
        self._known: dict[Any, _Captured | None] = {}
        self._lock = threading.RLock()
        #: Whether a call was fused.
        self.is_fused = False
        #: Why the last unfused call was not fused.
        self.reason = ''

    def run(
        self,
        method: str,
        layer: Any,
        own: Any,
        min_nodes: int,
        edge_index: Any,
        kwargs: dict[str, Any],
    ) -> Any:
        """Returns the result of ``propagate`` or ``edge_updater``.

        Args:
            method (str): Its name.
            layer (MessagePassing): The layer.
            own (Callable): PyG's method.
            min_nodes (int): With fewer vertices, PyG's is faster.
            edge_index (Any): The graph.
            kwargs (Dict[str, Any]): ``size``, and the arguments of messages.
        """
        size = kwargs.pop('size', None)
        if _is_small(size, kwargs, min_nodes):
            return own(edge_index, size=size, **kwargs)
        modules = list(layer.modules())
        graph, read = _edges_read(method, layer, edge_index, kwargs)
        reason = _why_not(method, modules, graph, read)
        if reason:
            self.reason = reason
            return own(edge_index, size=size, **kwargs)
        graph = getattr(graph, 'as_tensor', lambda: graph)()
        if is_transformed():
            graph = without_transforms(graph)
        given = layer._check_input(edge_index, size)
        try:
            reading = Reading(method, layer, graph, given, read)
        except NotCaptured as error:
            self.reason = str(error)
            return own(edge_index, size=size, **kwargs)
        if max(n or 0 for n in reading.sizes) < min_nodes:
            return own(edge_index, size=size, **kwargs)
        return self._run(
            *(method, modules, own, edge_index, graph, size, kwargs, reading)
        )

    def _run(
        self,
        method: str,
        modules: list[Any],
        own: Any,
        edge_index: Any,
        graph: Tensor,
        size: Any,
        kwargs: Any,
        reading: Reading,
    ) -> Any:
        layer = modules[0]
        target = 1 if layer.flow == 'source_to_target' else 0
        key = (
            *(method, reading.key, _thread.keeps),
            state_of(modules),
            graph.device,
            torch.is_grad_enabled(),
            _autocast(graph.device),
        )
        made = self._known.get(key, _UNKNOWN)
        is_known = made is not _UNKNOWN
        if not is_known and len(self._known) >= _FORMS:
            self.reason = f'its arguments had {_FORMS} forms'
        elif not is_known or made is not None:
            try:
                if is_known:
                    return made.run(layer, graph, reading, target)
                return self._fused(layer, graph, reading, target, key)
            except IndexError:
                pass  # PyG's error names the vertex out of range
            except Exception as error:
                if is_known:
                    raise
                if not is_transformed():  # otherwise it may be the transform's
                    self._known[key] = None
                self.reason = _said(error)
        return own(edge_index, size=size, **kwargs)

    def _fused(
        self,
        layer: Any,
        graph: Tensor,
        reading: Reading,
        target: int,
        key: Any,
    ) -> Any:
        with self._lock:
            made = self._known.get(key)  # another thread may have captured it
            if made is None:
                made = _captured(key[0], layer, reading, graph.device, target)
            out = made.run(layer, graph, reading, target)
            self._known[key] = made
            self.is_fused = True
            return out


class _Thread(threading.local):
    """Whether kernels of a thread write attention weights."""

    keeps = False


_thread = _Thread()


def keeps_weights() -> bool:
    """Whether kernels write attention weights in this thread."""
    return _thread.keeps


@contextmanager
def kept_weights() -> Iterator[None]:
    """Makes kernels write the attention weights that a call returns."""
    before, _thread.keeps = _thread.keeps, True
    try:
        yield
    finally:
        _thread.keeps = before


_captures: WeakKeyDictionary[nn.Module, Capture] = WeakKeyDictionary()


def capture_of(layer: nn.Module) -> Capture:
    """Returns the properties of a layer's messages."""
    found = _captures.get(layer)
    if found is None:
        found = _captures.setdefault(layer, Capture())
    return found


def share_capture(layer: nn.Module, other: nn.Module) -> None:
    """Shares the properties of a layer with another of the same class."""
    _captures[other] = capture_of(layer)


def _name_of(layer: Any) -> str:
    return type(layer).__name__


def _said(error: Exception) -> str:
    text = str(error).split('\n')[0]
    if isinstance(error, (NotCaptured, ValueError)):
        return text
    return f'{type(error).__name__}: {text}'


def _is_small(size: Any, kwargs: Any, min_nodes: int) -> bool:
    """Whether all arguments have too few rows for a gain."""
    if size is not None and max(n or 0 for n in size) >= min_nodes:
        return False
    for value in kwargs.values():
        for x in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(x, Tensor) and max(x.shape, default=0) >= min_nodes:
                return False
    return min_nodes > 0


def _edges_read(
    method: str, layer: Any, graph: Any, kwargs: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Returns the edges of messages, and the arguments of these.

    PyG computes messages at the elements of a sparse matrix if the layer does
    not multiply the matrix. Its values are the argument of this name that the
    layer has, unless the call passes another.
    """
    if method == 'propagate' and layer.fuse:
        return graph, kwargs
    found = edges_of_matrix(graph)
    if found is None or layer.flow != 'source_to_target':
        return graph, kwargs
    edges, values = found
    is_update = method == 'edge_updater'
    used = layer._edge_user_args if is_update else layer._user_args
    name = next((x for x in _VALUES if x in used), None)
    if values is not None and values.dim() == 1 and name == 'edge_attr':
        values = None  # PyG takes them for weights
    if name is not None and kwargs.get(name) is None:
        kwargs = {**kwargs, name: values}
    return edges, kwargs


#: The arguments that may be the values of a matrix, in PyG's order.
_VALUES = 'edge_weight', 'edge_attr', 'edge_type'


def _why_not(method: str, modules: list[Any], graph: Any, kwargs: Any) -> str:
    """Returns why PyG computes a call; empty if it may be fused."""
    layer, *inner = modules
    if any(getattr(layer, name) for name in _HOOKS[method]) or any(
        map(has_hooks, inner)
    ):
        return 'it has hooks of messages'
    if layer.explain or layer.decomposed_layers != 1:
        return 'it explains or decomposes its messages'
    if torch.jit.is_tracing():
        return 'it is traced'
    if not isinstance(graph, Tensor) or graph.layout != torch.strided:
        return 'PyG multiplies its sparse matrix'
    if is_transformed() and is_mapped(graph):
        return 'torch.vmap maps its graph'
    is_sorted = getattr(graph, 'is_sorted_by_col', False)
    if layer.fuse and layer.SUPPORTS_FUSED_EDGE_INDEX and is_sorted:
        return 'PyG multiplies its EdgeIndex'
    if graph.dim() != 2 or len(graph) != 2 or not graph.shape[1]:
        return 'there are no edges'
    if graph.dtype not in (torch.int32, torch.int64):
        return f'the dtype of its edges is {graph.dtype}'
    tensors = tensors_in(kwargs.values())
    floats = {x.dtype for x in tensors if x.is_floating_point()}
    if not floats or not floats <= {*_SINGLE, torch.float64}:
        return f'the dtype of its features is {_names(floats)}'
    if torch.float64 in floats and floats & set(HALF):
        return f'its features are {_names(floats)}: kernels compute with one'
    if any(x.device != graph.device for x in tensors):
        return 'its tensors are on several devices'
    if graph.device.type not in ('cpu', 'cuda'):
        return f'its tensors are on {graph.device}'
    return ''


def _names(dtypes: set[torch.dtype]) -> str:
    return ' and '.join(sorted(map(str, dtypes))) or 'no number'


def _autocast(device: torch.device) -> torch.dtype | None:
    """Returns the dtype of autocast, if it is on."""
    if not is_autocast(device):
        return None
    return torch.get_autocast_dtype(device.type)


def _captured(
    method: str,
    layer: Any,
    reading: Reading,
    device: torch.device,
    target: int,
) -> _Captured:
    """Captures a call twice, and creates its program."""
    # In inference mode, operators decompose differently.
    with torch.inference_mode(False), without_functorch():
        found = [
            traced_call(
                *(method, layer, reading.key, device, target, sizes),
                _thread.keeps,
            )
            for sizes in SIZES
        ]
    texts = [text for _, _, text in found]
    if texts[0] != texts[1]:
        raise NotCaptured('its result depends on the number of vertices')
    root, kept, _ = found[0]
    return _Captured(layer, root, kept)
