"""Runs ``propagate`` of PyG's layers as fused kernels, where it can be."""

import copy
import inspect
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from torch_gsample.torch_private import has_hooks, is_transformed, tree_leaves
from torch_gsample.vertex.capture.arguments import Arguments, Reading
from torch_gsample.vertex.capture.ends import graph_node
from torch_gsample.vertex.capture.lower import Program
from torch_gsample.vertex.capture.nodes import (
    AGGREGATE,
    EDGE,
    PARAMETER,
    VERTEX,
    Node,
    NotCaptured,
    text_of,
)
from torch_gsample.vertex.capture.record import Recorder, Traced
from torch_gsample.vertex.capture.run import Tensors, restored
from torch_gsample.vertex.kernels.layouts import flipped
from torch_gsample.vertex.program import VertexProgram

#: Numbers of sources, destinations and edges of two captures. What differs
#: between them depends on a size, and is not fused.
_SIZES = (1000003, 1000033, 1000037), (20011, 20021, 20023)
_HOOKS = (
    *('_propagate_forward_pre_hooks', '_propagate_forward_hooks'),
    *('_message_forward_pre_hooks', '_message_forward_hooks'),
    *('_aggregate_forward_pre_hooks', '_aggregate_forward_hooks'),
    *('_message_and_aggregate_forward_pre_hooks',),
    *('_message_and_aggregate_forward_hooks',),
)
_DTYPES = torch.float32, torch.float64
#: Forms of arguments of which a layer knows programs.
_FORMS = 64
#: What PyG's layers keep for ``return_attention_weights``.
_WEIGHTS = '_alpha'


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
        self.vertex = VertexProgram(program, _name_of(layer))

    def run(
        self, layer: Any, graph: Tensor, reading: Reading, target: int
    ) -> Tensor:
        """Computes ``propagate``."""
        sizes: Any = reading.sizes
        rows = sizes[1 - target], sizes[target], graph.shape[1]
        tensors = Tensors(layer, reading.inputs, rows)
        features = {
            name: tensors.operand(node, lost, name, self.program.dtype)
            for (node, lost), name in self.program.leaves.items()
        }
        if target == 0:
            graph = flipped(graph)
        out = self.vertex(graph, size=rows[:2], **features)
        found = out if isinstance(out, tuple) else (out,)
        for node, x in zip(self.program.outputs, found, strict=True):
            tensors.done[node] = restored(x, node)
        for name in self.kept:
            setattr(layer, name, NotKept())
        result = tensors.of(self.root)
        want = list(self.root.shape)
        want[self.root.row or 0] = rows[1]
        assert list(result.shape) == want, f'{list(result.shape)}, not {want}'
        return result


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
        self, layer: Any, own: Any, min_nodes: int, edge_index: Any, **kwargs: Any
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
        reason = _why_not(layer, edge_index, kwargs)
        if reason:
            self.reason = reason
            return own(edge_index, size=size, **kwargs)
        graph = getattr(edge_index, 'as_tensor', lambda: edge_index)()
        given = layer._check_input(edge_index, size)
        try:
            reading = Reading(layer, graph, given, kwargs)
        except NotCaptured as error:
            self.reason = str(error)
            return own(edge_index, size=size, **kwargs)
        if max(reading.sizes) < min_nodes:  # type: ignore[type-var]
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
        key = reading.key, _state_of(layer), graph.device, _grads(reading)
        if key in self._known:
            made = self._known[key]
            if made is None:
                return own(edge_index, size=size, **kwargs)
            return made.run(layer, graph, reading, target)
        if len(self._known) >= _FORMS:
            self.reason = f'its arguments had {_FORMS} forms'
            return own(edge_index, size=size, **kwargs)
        with self._lock:
            try:
                made = _captured(layer, reading, graph.device, target)
                out = made.run(layer, graph, reading, target)
            except IndexError:  # PyG's says which vertex is out of range
                return own(edge_index, size=size, **kwargs)
            except Exception as error:
                self._known[key] = None
                self.reason = _said(error)
            else:
                self._known[key] = made
                self.is_fused = True
                return out
        return own(edge_index, size=size, **kwargs)


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


def _name_of(layer: Any) -> str:
    return type(layer).__name__


def _said(error: Exception) -> str:
    text = str(error).split('\n')[0]
    if isinstance(error, NotCaptured):
        return text
    return f'{type(error).__name__}: {text}'


def _grads(reading: Reading) -> bool:
    """Whether gradients are wanted, of which some may have no derivative."""
    return torch.is_grad_enabled()


def _why_not(layer: Any, graph: Any, kwargs: Any) -> str:
    """Says why a call is PyG's; empty if it may be fused."""
    if any(getattr(layer, name) for name in _HOOKS) or any(
        has_hooks(module) for module in layer.modules() if module is not layer
    ):
        return 'hooks see its messages'
    if layer.explain or layer.decomposed_layers != 1:
        return 'it explains its messages, or decomposes them'
    if torch.jit.is_tracing() or is_transformed():
        return 'it is traced or transformed'
    if not isinstance(graph, Tensor) or graph.layout != torch.strided:
        return 'a sparse matrix is multiplied by PyG'
    if layer.fuse and layer.SUPPORTS_FUSED_EDGE_INDEX and (
        getattr(graph, 'is_sorted_by_col', False)
    ):
        return 'an EdgeIndex is multiplied by PyG'
    if graph.dim() != 2 or len(graph) != 2 or not graph.shape[1]:
        return 'there are no edges'
    if graph.dtype not in (torch.int32, torch.int64):
        return f'the dtype of its edges is {graph.dtype}'
    given = tree_leaves(list(kwargs.values()))
    tensors = [x for x in given if isinstance(x, Tensor)]
    floats = {x.dtype for x in tensors if x.is_floating_point()}
    if not floats or not floats <= set(_DTYPES):
        return 'its features are not in float32 or float64'
    if any(x.device != graph.device for x in tensors):
        return 'its tensors are on several devices'
    if graph.device.type not in ('cpu', 'cuda'):
        return f'its tensors are on {graph.device}'
    if torch.is_autocast_enabled(graph.device.type):
        return 'autocast is on'
    return ''


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


# Captures ####################################################################


def _captured(
    layer: Any, reading: Reading, device: torch.device, target: int
) -> _Captured:
    """Captures a call twice, and makes its program."""
    found = [
        _recorded(layer, reading.key, device, target, sizes)
        for sizes in _SIZES
    ]
    texts = [text for _, _, text in found]
    if texts[0] != texts[1]:
        raise NotCaptured('what it computes depends on numbers of vertices')
    root, kept, _ = found[0]
    return _Captured(layer, root, kept, device)


def _recorded(
    layer: Any,
    key: Arguments,
    device: torch.device,
    target: int,
    sizes: tuple[int, int, int],
) -> tuple[Node, list[str], list[str]]:
    """Runs ``propagate`` on symbols."""
    first, second, edges = sizes
    ends = [first, first if key.is_square else second]
    recorder = Recorder(device, ends[1 - target], ends[target], edges, target)
    shapes = [n for item in key.tensors for n in item.shape]
    if set(sizes) & set(shapes):
        raise NotCaptured('a number of features is that of a capture')
    clone, parts = _clone(layer, recorder)
    kwargs = _symbols(key, ends, edges, recorder)
    graph = recorder.tensor(graph_node(recorder))
    graph.is_shared = True
    size = tuple(
        n if known else None
        for n, known in zip(ends, key.has_size, strict=True)
    )
    with torch.enable_grad(), recorder:
        out = clone.propagate(
            graph, size=size if any(key.has_size) else None, **kwargs
        )
    if not isinstance(out, Traced) or out.node.kind != AGGREGATE:
        raise NotCaptured('it returns something else than a row for each vertex')
    kept = _kept(layer, parts)
    names = {ends[target]: 'D', ends[1 - target]: 'S', edges: 'E'}
    return out.node, kept, text_of(out.node, names)


def _symbols(
    key: Arguments, ends: list[int], edges: int, recorder: Recorder
) -> dict[str, Any]:
    kwargs: dict[str, Any] = {name: [None, None] for name, _ in key.pairs}
    found: list[tuple[str, int | None, Any]] = list(key.plain)
    for item in key.tensors:
        shape = list(item.shape)
        kind = PARAMETER
        if item.row is not None:
            of_edges = item.rows == 'E'
            kind = EDGE if of_edges else VERTEX
            shape[item.row] = edges if of_edges else ends[int(item.rows[-1])]
        node = Node(
            *('input', kind, tuple(shape), item.dtype, item.row),
            ((item.name, item.place),),
        )
        symbol = recorder.tensor(node)
        symbol.is_shared = True
        found.append((item.name, item.place, symbol))
    for name, place, value in found:
        if place is None:
            kwargs[name] = value
        else:
            kwargs[name][place] = value
    for name, kind_of in key.pairs:
        kwargs[name] = kind_of(kwargs[name])
    return kwargs


def _clone(
    layer: Any, recorder: Recorder
) -> tuple[Any, list[tuple[nn.Module, nn.Module]]]:
    """Returns a layer whose parameters are symbols, and all its parts."""
    made: dict[nn.Module, nn.Module] = {}
    known: dict[Tensor, Traced] = {}
    for path, module in layer.named_modules(remove_duplicate=False):
        if module in made:
            continue
        kind = getattr(type(module), 'base', type(module))
        copied = made[module] = object.__new__(kind)
        copied.__dict__.update(vars(module))
        for table in ('_parameters', '_buffers'):
            symbols: dict[str, Any] = {}
            for name, x in vars(module)[table].items():
                if x is not None and x not in known:
                    node = Node(
                        *('parameter', PARAMETER, tuple(x.shape), x.dtype),
                        *(None, (path, name)),
                    )
                    known[x] = recorder.tensor(node)
                    known[x].is_shared = True
                symbols[name] = None if x is None else known[x]
            copied.__dict__[table] = symbols
    for module, copied in made.items():
        copied.__dict__['_modules'] = {
            name: None if part is None else made[part]
            for name, part in module._modules.items()
        }
    parts = [(module, copied) for module, copied in made.items()]
    for _, copied in parts:
        copied.__dict__['_gsample_before'] = copy.copy(vars(copied))
    return made[layer], parts


def _kept(
    layer: Any, parts: list[tuple[nn.Module, nn.Module]]
) -> list[str]:
    """Returns the attributes that a message sets, if nobody reads them."""
    names = inspect.signature(
        getattr(type(layer), 'base', type(layer)).forward
    ).parameters
    kept = []
    for module, copied in parts:
        now = vars(copied)
        before = now.pop('_gsample_before')
        for name in now.keys() | before.keys():
            if now.get(name) is before.get(name):
                continue
            if (
                module is not layer
                or name != _WEIGHTS
                or 'return_attention_weights' not in names
            ):
                raise NotCaptured(f"a message sets the attribute '{name}'")
            kept.append(name)
        for table in ('_parameters', '_buffers', '_modules'):
            if any(
                x is not y
                for x, y in zip(
                    now[table].values(), before[table].values(), strict=True
                )
            ):
                raise NotCaptured('a message changes a parameter or buffer')
    return kept
