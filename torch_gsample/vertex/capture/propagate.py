"""Runs ``propagate`` of PyG's layers as fused kernels, where it can be."""

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
    tree_leaves,
    without_functorch,
    without_transforms,
)
from torch_gsample.vertex.capture.arguments import Reading
from torch_gsample.vertex.capture.lower import Program
from torch_gsample.vertex.capture.nodes import Node, NotCaptured
from torch_gsample.vertex.capture.run import Tensors, restored
from torch_gsample.vertex.capture.trace import SIZES, traced_call
from torch_gsample.vertex.frontend.precision import (
    HALF,
    is_autocast,
    without_autocast,
)
from torch_gsample.vertex.kernels.layouts import flipped
from torch_gsample.vertex.program import VertexProgram

_HOOKS = (
    *('_propagate_forward_pre_hooks', '_propagate_forward_hooks'),
    *('_message_forward_pre_hooks', '_message_forward_hooks'),
    *('_aggregate_forward_pre_hooks', '_aggregate_forward_hooks'),
    *('_message_and_aggregate_forward_pre_hooks',),
    *('_message_and_aggregate_forward_hooks',),
)
_SINGLE = frozenset({torch.float32, *HALF})
#: Forms of arguments of which a layer knows programs.
_FORMS = 64


class NotKept:
    """Attention weights that no kernel stores."""


class _Captured:
    """A program, and how it is called."""

    def __init__(self, layer: Any, root: Node, kept: list[str], device: Any):
        self.root, self.kept = root, kept
        self.program = Program(root)
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
    ) -> Tensor:
        """Computes ``propagate``; casts of autocast were recorded."""
        with without_autocast(graph.device):
            return self._run(layer, graph, reading, target)

    def _run(
        self, layer: Any, graph: Tensor, reading: Reading, target: int
    ) -> Tensor:
        sizes: Any = reading.sizes
        rows = sizes[1 - target], sizes[target], graph.shape[1]
        tensors = Tensors(layer, reading.inputs, rows)
        features = {
            name: tensors.operand(node, lost, name, self.program.dtype)
            for (node, lost), name in self.program.leaves.items()
        }
        if target == 0:
            with without_functorch():  # kept with the graph
                graph = flipped(graph)
        out = self.vertex(graph, size=rows[:2], **features)  # type: ignore[arg-type]
        found = out if isinstance(out, tuple) else (out,)
        for node, x in zip(self.program.outputs, found, strict=True):
            tensors.done[node] = restored(x, node)
        for name in self.kept:
            setattr(layer, name, NotKept())
        result = tensors.of(self.root)
        want = list(self.root.shape)
        want[self.root.row or 0] = rows[1]
        assert list(result.shape) == want, f'{list(result.shape)}, not {want}'
        return result.contiguous()  # as PyG's, of which users take views


class Capture:
    """What is known of the messages of a layer."""

    def __init__(self) -> None:
        self._known: dict[Any, _Captured | None] = {}
        self._lock = threading.RLock()
        #: Whether a call was fused.
        self.is_fused = False
        #: Why the last call that was not fused was not.
        self.reason = ''

    def propagate(
        self,
        layer: Any,
        own: Any,
        min_nodes: int,
        edge_index: Any,
        **kwargs: Any,
    ) -> Any:
        """Returns the result of a layer's ``propagate``.

        Args:
            layer (MessagePassing): The layer.
            own (Callable): PyG's ``propagate``.
            min_nodes (int): With fewer vertices, PyG's is faster.
            edge_index (Any): The graph.
            **kwargs (Any): ``size``, and the arguments of messages.
        """
        size = kwargs.pop('size', None)
        if _is_small(size, kwargs, min_nodes):
            return own(edge_index, size=size, **kwargs)
        reason = _why_not(layer, edge_index, kwargs)
        if reason:
            self.reason = reason
            return own(edge_index, size=size, **kwargs)
        graph = getattr(edge_index, 'as_tensor', lambda: edge_index)()
        if is_transformed():
            graph = without_transforms(graph)
        given = layer._check_input(edge_index, size)
        try:
            reading = Reading(layer, graph, given, kwargs)
        except NotCaptured as error:
            self.reason = str(error)
            return own(edge_index, size=size, **kwargs)
        if max(n or 0 for n in reading.sizes) < min_nodes:
            return own(edge_index, size=size, **kwargs)
        return self._run(layer, own, edge_index, graph, size, kwargs, reading)

    def _run(
        self,
        layer: Any,
        own: Any,
        edge_index: Any,
        graph: Tensor,
        size: Any,
        kwargs: Any,
        reading: Reading,
    ) -> Any:
        target = 1 if layer.flow == 'source_to_target' else 0
        key = (
            reading.key,
            _state_of(layer),
            graph.device,
            torch.is_grad_enabled(),
            _autocast(graph.device),
        )
        made = self._known.get(key)
        is_known = key in self._known
        if not is_known and len(self._known) >= _FORMS:
            self.reason = f'its arguments had {_FORMS} forms'
        elif not is_known or made is not None:
            try:
                return self._fused(layer, graph, reading, target, key, made)
            except IndexError:
                pass  # PyG's error says which vertex is out of range
            except Exception as error:
                if is_known:
                    raise
                if not is_transformed():  # else, it may be the transform's
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
        made: _Captured | None,
    ) -> Tensor:
        if made is not None:
            return made.run(layer, graph, reading, target)
        with self._lock:
            made = _captured(layer, reading, graph.device, target)
            out = made.run(layer, graph, reading, target)
            self._known[key] = made
            self.is_fused = True
            return out


class _Thread(threading.local):
    """Whether a thread leaves messages to PyG."""

    is_left = False


_thread = _Thread()


def is_left_to_pyg() -> bool:
    """Whether messages are computed by PyG in this thread."""
    return _thread.is_left


@contextmanager
def left_to_pyg() -> Iterator[None]:
    """Leaves messages to PyG, which keeps attention weights."""
    before, _thread.is_left = _thread.is_left, True
    try:
        yield
    finally:
        _thread.is_left = before


_captures: WeakKeyDictionary[nn.Module, Capture] = WeakKeyDictionary()


def capture_of(layer: nn.Module) -> Capture:
    """Returns what is known of the messages of a layer."""
    found = _captures.get(layer)
    if found is None:
        found = _captures.setdefault(layer, Capture())
    return found


def share_capture(layer: nn.Module, other: nn.Module) -> None:
    """Lets another layer of the same class use what is known of one."""
    _captures[other] = capture_of(layer)


def _name_of(layer: Any) -> str:
    return type(layer).__name__


def _said(error: Exception) -> str:
    text = str(error).split('\n')[0]
    if isinstance(error, (NotCaptured, ValueError)):
        return text
    return f'{type(error).__name__}: {text}'


def _is_small(size: Any, kwargs: Any, min_nodes: int) -> bool:
    """Whether no argument has as many rows as would pay."""
    if size is not None and max(n or 0 for n in size) >= min_nodes:
        return False
    for value in kwargs.values():
        for x in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(x, Tensor) and max(x.shape, default=0) >= min_nodes:
                return False
    return min_nodes > 0


def _why_not(layer: Any, graph: Any, kwargs: Any) -> str:
    """Says why a call is PyG's; empty if it may be fused."""
    if any(getattr(layer, name) for name in _HOOKS) or any(
        has_hooks(module) for module in layer.modules() if module is not layer
    ):
        return 'hooks see its messages'
    if layer.explain or layer.decomposed_layers != 1:
        return 'it explains its messages, or decomposes them'
    if torch.jit.is_tracing():
        return 'it is traced'
    if not isinstance(graph, Tensor) or graph.layout != torch.strided:
        return 'a sparse matrix is multiplied by PyG'
    if is_transformed() and is_mapped(graph):
        return 'torch.vmap maps its graph'
    is_sorted = getattr(graph, 'is_sorted_by_col', False)
    if layer.fuse and layer.SUPPORTS_FUSED_EDGE_INDEX and is_sorted:
        return 'an EdgeIndex is multiplied by PyG'
    if graph.dim() != 2 or len(graph) != 2 or not graph.shape[1]:
        return 'there are no edges'
    if graph.dtype not in (torch.int32, torch.int64):
        return f'the dtype of its edges is {graph.dtype}'
    given = tree_leaves(list(kwargs.values()))
    tensors = [x for x in given if isinstance(x, Tensor)]
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


def _state_of(layer: nn.Module) -> tuple:
    """Returns what messages may depend on, other than tensors."""
    out: list[Any] = []
    for module in layer.modules():
        for name, value in vars(module).items():
            kind = type(value)
            if kind in (int, float, bool, str):
                out.append((name, kind, value))
            elif kind in (list, tuple) and all(
                type(x) in (int, float, bool, str) for x in value
            ):
                out.append((name, kind, tuple(value)))
            elif name == '_parameters':
                out += [
                    (k, None if p is None else (p.shape, p.dtype))
                    for k, p in value.items()
                ]
            elif callable(value) and not isinstance(value, type):
                out.append((name, value))
    return tuple(out)


def _captured(
    layer: Any, reading: Reading, device: torch.device, target: int
) -> _Captured:
    """Captures a call twice, and makes its program."""
    # In inference mode, operators come in other pieces.
    with torch.inference_mode(False), without_functorch():
        found = [
            traced_call(layer, reading.key, device, target, sizes)
            for sizes in SIZES
        ]
    texts = [text for _, _, text in found]
    if texts[0] != texts[1]:
        raise NotCaptured('what it computes depends on numbers of vertices')
    root, kept, _ = found[0]
    return _Captured(layer, root, kept, device)
