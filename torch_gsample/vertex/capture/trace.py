"""Runs ``propagate`` of a layer on symbols."""

import copy
import inspect
from typing import Any

import torch
from torch import Tensor, nn

from torch_gsample.vertex.capture.arguments import Arguments
from torch_gsample.vertex.capture.ends import graph_node
from torch_gsample.vertex.capture.nodes import (
    AGGREGATE,
    EDGE,
    MIXED,
    PARAMETER,
    VERTEX,
    Node,
    NotCaptured,
    text_of,
)
from torch_gsample.vertex.capture.record import Recorder, Traced

#: Numbers of sources, destinations and edges of two captures. A value that
#: differs depends on a size, and is not fused.
SIZES = (1000003, 1000033, 1000037), (20011, 20021, 20023)
#: The attributes of PyG's layers for ``return_attention_weights``.
_WEIGHTS = '_alpha'


def traced_call(
    method: str,
    layer: Any,
    key: Arguments,
    device: torch.device,
    target: int,
    sizes: tuple[int, int, int],
    keeps: bool,
) -> tuple[Any, dict[str, Node | None], list[str]]:
    """Runs ``propagate`` or ``edge_updater`` on symbols.

    Args:
        method (str): Which of the two.
        layer (MessagePassing): The layer.
        key (Arguments): Its arguments.
        device (torch.device): Their device.
        target (int): The row of ``edge_index`` with destinations.
        sizes (Tuple[int, int, int]): The numbers of vertices at both ends,
            and of edges.
        keeps (bool): Whether attention weights are requested.

    Returns:
        Tuple[Node or Sequence[Node], Dict[str, Node, optional], List[str]]:
        The result, or the tuple or list of them; the attributes of the layer
        that a message sets, with their values if requested; and the recorded
        text.

    Raises:
        NotCaptured: If it cannot be captured.
    """
    first, second, edges = sizes
    ends = [first, first if key.is_square else second]
    recorder = Recorder(device, ends[1 - target], ends[target], edges, target)
    shapes = [n for item in key.tensors for n in item.shape]
    if set(sizes) & set(shapes):
        raise NotCaptured('a number of features is specific to a capture')
    clone, parts = _clone(layer, recorder)
    kwargs = _symbols(key, ends, edges, recorder)
    graph = recorder.tensor(graph_node(recorder))
    graph.has_alias = True
    size = tuple(
        n if known else None
        for n, known in zip(ends, key.has_size, strict=True)
    )
    with torch.enable_grad(), recorder:
        out = getattr(clone, method)(
            graph, size=size if any(key.has_size) else None, **kwargs
        )
    found = _results(method, out)
    kept = _kept(layer, parts, keeps)
    names = {ends[target]: 'D', ends[1 - target]: 'S', edges: 'E'}
    text = [line for node in found for line in text_of(node, names)]
    for name, node in kept.items():
        text += [name, *(text_of(node, names) if node else [])]
    return found if type(out) in (tuple, list) else found[0], kept, text


def _results(method: str, out: Any) -> Any:
    """Returns the nodes of a call's result, or of its tuple or list.

    Among several results of messages, some may have a row for each edge.
    """
    is_several = type(out) in (tuple, list) and method == 'propagate'
    found = out if is_several else (out,)
    nodes = [x.node for x in found if isinstance(x, Traced)]
    kinds = {x.kind for x in nodes}
    if method == 'edge_updater':
        allowed, rows = {MIXED}, 'both ends'
    else:
        allowed, rows = {AGGREGATE}, 'row for each vertex'
        if is_several and AGGREGATE in kinds:
            allowed |= {MIXED, EDGE}
    is_float = all(
        x.kind == AGGREGATE or x.dtype.is_floating_point for x in nodes
    )
    if len(nodes) < len(found) or not kinds <= allowed or not is_float:
        raise NotCaptured(f'its result has no {rows}')
    return tuple(nodes) if type(out) is tuple else nodes


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
        symbol.has_alias = True
        found.append((item.name, item.place, symbol))
    for name, place, value in found:
        if place is None:
            kwargs[name] = value
        else:
            kwargs[name][place] = value
    for name, kind_of in key.pairs:
        kwargs[name] = kind_of(kwargs[name])
    return kwargs


def _own_class(module: nn.Module) -> Any:
    """Returns the original class of a fused module."""
    kind: Any = type(module)
    while isinstance(getattr(kind, 'base', None), type):
        kind = kind.base
    return kind


def _clone(
    layer: Any, recorder: Recorder
) -> tuple[Any, list[tuple[nn.Module, nn.Module]]]:
    """Copies a layer and its parts, with symbols as parameters."""
    made: dict[nn.Module, nn.Module] = {}
    known: dict[Tensor, Traced] = {}
    for path, module in layer.named_modules(remove_duplicate=False):
        if module in made:
            continue
        copied = made[module] = object.__new__(_own_class(module))
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
                    known[x].has_alias = True
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
    layer: Any, parts: list[tuple[nn.Module, nn.Module]], keeps: bool
) -> dict[str, Node | None]:
    """Returns the attributes that a message sets, if they are weights."""
    names = inspect.signature(_own_class(layer).forward).parameters
    kept: dict[str, Node | None] = {}
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
            value = now.get(name)
            kept[name] = None
            if keeps:
                if not isinstance(value, Traced):
                    raise NotCaptured(f"'{name}' is not a value of edges")
                kept[name] = value.node
        for table in ('_parameters', '_buffers', '_modules'):
            if any(
                x is not y
                for x, y in zip(
                    now[table].values(), before[table].values(), strict=True
                )
            ):
                raise NotCaptured('a message changes a parameter or buffer')
    return kept
