"""Tests whether a layer's call can be fused, and shared parts of layers."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric import nn as pyg
from torch_geometric.nn.conv import MessagePassing

from torch_gsample.block import Block
from torch_gsample.sparse_sample import SparseSample
from torch_gsample.torch_private import (
    has_hooks,
    is_mapped,
    is_transformed,
    without_functorch,
)
from torch_gsample.vertex.frontend.precision import HALF, cast, is_autocast
from torch_gsample.vertex.kernels.layouts import read_graph

_PYG = 'torch_geometric.'
#: Elements of a slice whose gradient takes longer than Python code.
_SHARED = 1 << 16
_LINEAR = pyg.Linear, torch.nn.Linear
#: Dtypes that kernels compute in float32, with torch's type promotion.
_SINGLE = frozenset({torch.float32, *HALF})
#: The modules that aggregate as programs do.
_AGGREGATIONS = dict(
    sum=pyg.SumAggregation, mean=pyg.MeanAggregation, max=pyg.MaxAggregation
)
#: Methods whose override in a subclass changes a layer's result.
_METHODS = (
    *('message', 'aggregate', 'update', 'message_and_aggregate'),
    'edge_update',
)


def is_fusible(
    layer: MessagePassing, graph: Any, *features: Tensor | None, aggr: str
) -> bool:
    """Whether a layer's vertex program can compute a call.

    Only PyG supports features of more than two dimensions (a batch of them),
    dtypes that are promoted to float64, and autocast in half precision.

    Args:
        layer (MessagePassing): The layer.
        graph (Any): The argument ``edge_index``.
        *features (torch.Tensor, optional): Its features.
        aggr (str): The aggregation of the program.
    """
    plain = isinstance(graph, Tensor) and graph.layout == torch.strided
    names = {'add', 'sum'} if aggr == 'sum' else {aggr}
    hooks = (
        *(layer._propagate_forward_pre_hooks, layer._message_forward_hooks),
        *(layer._aggregate_forward_hooks, layer._propagate_forward_hooks),
        *(layer._message_forward_pre_hooks, layer._edge_update_forward_hooks),
        layer._aggregate_forward_pre_hooks,
        layer._edge_update_forward_pre_hooks,
    )
    return (
        (plain or isinstance(graph, (Block, SparseSample)))
        and layer.flow == 'source_to_target'
        and isinstance(layer.aggr, str)
        and layer.aggr in names
        and type(layer.aggr_module) is _AGGREGATIONS[aggr]
        and not has_hooks(layer.aggr_module)
        and not layer.explain
        and not any(hooks)
        and not torch.jit.is_tracing()
        and _has_methods_of_pyg(layer)
        and not (is_transformed() and _is_mapped(graph))
        and _are_fusible([x for x in features if x is not None])
        and _is_plain_autocast(layer, features)
    )


def _is_mapped(graph: Any) -> bool:
    """Whether ``torch.vmap`` maps a graph.

    It also fills the graph's caches with plain tensors, because tensors of a
    transform must not outlive it.
    """
    if isinstance(graph, Tensor):
        return is_mapped(graph)
    with without_functorch():
        read_graph(graph)
        ends_of(graph)
        if isinstance(graph, Block):
            ends_of(Block(graph.edges, len(graph.edges.num_edges)))
    return False


def _has_methods_of_pyg(layer: MessagePassing) -> bool:
    """Whether no subclass of PyG's layer overrides its computation."""
    own, kind = vars(layer), type(layer)
    pyg = next(k for k in kind.__mro__ if k.__module__.startswith(_PYG))
    for name in _METHODS:  # a generator would take twice the time
        if name in own or getattr(kind, name) is not getattr(pyg, name):
            return False
    return True


def _are_fusible(features: list[Any]) -> bool:
    """Whether vertex programs of layers support the features."""
    return all(
        isinstance(x, Tensor)
        and features[0].dim() == 2 >= x.dim()
        and x.device.type in ('cpu', 'cuda')
        and (x.dtype in _SINGLE or x.dtype == torch.float64)
        and (x.dtype in _SINGLE) == (features[0].dtype in _SINGLE)
        for x in features
    )


def _is_plain_autocast(
    layer: MessagePassing, features: tuple[Tensor | None, ...]
) -> bool:
    """Whether autocast is off, or the parameters of a layer are float32.

    CUDA's rules compute a half-precision layer in float32. While Dynamo
    captures, autocast is left to PyG.
    """
    device = next((x.device for x in features if x is not None), None)
    if device is None or not is_autocast(device):
        return True
    if torch.compiler.is_compiling():
        return False  # Dynamo does not follow it
    floats = {p.dtype for p in layer.parameters() if p.is_floating_point()}
    return floats <= {torch.float32} and all(
        x is None or x.dtype in _SINGLE for x in features
    )


def read_ends(x: Any, graph: Any) -> tuple[Any, Any]:
    """Returns the features of sources and of destinations.

    Args:
        x (torch.Tensor or Tuple): Features of vertices, or a pair of them.
        graph (Any): The argument ``edge_index``; a :class:`Block` takes the
            first rows.
    """
    if isinstance(graph, Block):
        return graph.pair(x)
    return (x, x) if isinstance(x, Tensor) else tuple(x)


class _SharedRows(torch.autograd.Function):
    """The rows of sources, and the first of them as rows of destinations.

    The gradient of a slice would be padded with zeros and added. Instead, the
    gradient of destinations is added in place if the gradient of sources is
    owned: nobody else refers to it, as for results of kernels and products.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, num_dst: int, is_owned: bool
    ) -> tuple[Tensor, Tensor]:
        ctx.num_dst, ctx.is_owned, ctx.shape = num_dst, is_owned, x.shape
        ctx.set_materialize_grads(False)
        return x.view_as(x), x[:num_dst]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        of_src, of_dst = grads
        if of_dst is None:
            return of_src, None, None
        if of_src is None:
            of_src = of_dst.new_zeros(ctx.shape)
        elif torch.is_grad_enabled() or not of_src.is_contiguous():
            of_src = of_src.clone()
        elif not ctx.is_owned:
            out = torch.empty_like(of_src)
            torch.add(of_src[: ctx.num_dst], of_dst, out=out[: ctx.num_dst])
            out[ctx.num_dst :] = of_src[ctx.num_dst :]
            return out, None, None
        of_src[: ctx.num_dst] += of_dst
        return of_src, None, None


def both_ends(x: Tensor, num_dst: int) -> tuple[Tensor, Tensor]:
    """Returns rows and the first of them, with gradients in shared memory.

    Args:
        x (torch.Tensor): The features of sources.
        num_dst (int): Number of destinations.
    """
    if num_dst < x.shape[0] and _is_shared(x):
        return _SharedRows.apply(x, num_dst, False)
    return x, x if num_dst == x.shape[0] else x[:num_dst]


def share_rows(pair: tuple[Any, Any], x: Any, graph: Any) -> tuple[Any, Any]:
    """Returns the features of both ends, with gradients in shared memory.

    Args:
        pair (Tuple): The features of sources and of destinations.
        x (torch.Tensor or Tuple): The features from which they were read.
        graph (Any): The argument ``edge_index``.
    """
    if isinstance(graph, Block) and isinstance(x, Tensor) and _is_shared(x):
        return _SharedRows.apply(pair[0], graph.num_dst, True)
    return pair


def _is_shared(x: Tensor) -> bool:
    """Whether the gradients of a tensor may be accumulated in place."""
    return (
        x.requires_grad
        and x.numel() >= _SHARED
        and torch.is_grad_enabled()
        and not torch.compiler.is_compiling()
        and not is_transformed()
    )


class _SharedProduct(torch.autograd.Function):
    """Rows, and their product with the transpose of a matrix of few rows.

    The gradient of the product is added to that of the rows in place, as in
    :class:`_SharedRows`.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(x, matrix)
        return x.view_as(x), F.linear(x, matrix)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, matrix = ctx.saved_tensors
        of_x, of_product = grads
        of_matrix = None
        if ctx.needs_input_grad[1]:
            of_matrix = of_product.t() @ x
        if torch.is_grad_enabled() or not of_x.is_contiguous():
            return of_x + of_product @ matrix, of_matrix
        return of_x.addmm_(of_product, matrix), of_matrix


def with_product(x: Tensor, matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Returns rows, and their product with the transpose of a matrix.

    The first result must only be used by a vertex program, whose gradient
    nobody else refers to.

    Args:
        x (torch.Tensor): ``[rows, width]``.
        matrix (torch.Tensor): ``[few, width]``.
    """
    if x.dtype == matrix.dtype and _is_shared(x):
        return _SharedProduct.apply(x, matrix)
    # Under autocast, features are products in half precision.
    dtype = torch.promote_types(x.dtype, matrix.dtype)
    return x, F.linear(cast(x, dtype), cast(matrix, dtype))


def add_product(out: Tensor, x: Tensor, first: Any, second: Any) -> Tensor:
    """Adds a product to another one, in place if possible.

    Args:
        out (torch.Tensor): The result of ``first``.
        x (torch.Tensor): The operand of ``second``.
        first (torch.nn.Module): A linear layer, or its substitute.
        second (torch.nn.Module): Another one.
    """
    if (
        all(_is_plain_linear(module) for module in (first, second))
        and second.bias is None
        and len({out.dtype, x.dtype, second.weight.dtype}) == 1
    ):
        # In place: products are what no gradient reads.
        return out.addmm_(x, second.weight.t())
    return out + second(x)


def _is_plain_linear(module: Any) -> bool:
    """Whether a module is a product that nobody sees or maps."""
    return (
        type(module) in _LINEAR
        and not has_hooks(module)
        and not is_transformed()  # vmap may map an operand alone
    )


def read_edges(value: Any, graph: Any) -> Any:
    """Returns edge features; for a :class:`Block`, the first rows."""
    if isinstance(graph, Block) and isinstance(value, Tensor):
        return value[: graph.num_edges]
    return value


def left_to_pyg(
    layer: MessagePassing,
    kind: type[MessagePassing],
    x: Any,
    graph: Any,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Returns the result of PyG's own code.

    PyG generates a class's ``propagate`` from its source, which it finds by
    the class's name, and our classes have the same names. The attributes
    ``propagate_type`` and ``edge_updater_type`` replace what PyG reads from
    its own source.

    Args:
        layer (MessagePassing): The layer.
        kind (Type): Its base class in PyG.
        x (Any): The features.
        graph (Any): The argument ``edge_index``.
        *args (Any): Further arguments of the call.
        **kwargs (Any): Further keyword arguments of the call.
    """
    if isinstance(graph, (Block, SparseSample)):
        if 'size' in kwargs and kwargs['size'] is None:
            kwargs['size'] = _shape(graph)
        if isinstance(graph, Block):
            x = graph.pair(x)
        graph = torch.stack(ends_of(graph))
    return kind.forward(layer, x, graph, *args, **kwargs)


def _shape(graph: Any) -> tuple[int, int]:
    return graph.size if isinstance(graph, Block) else graph.shape


def edges_of(graph: Any) -> int:
    """Returns the number of edges."""
    if isinstance(graph, (Block, SparseSample)):
        return graph.num_edges
    return graph.shape[1]


def ends_of(graph: Any) -> tuple[Tensor, Tensor]:
    """Returns the source and the destination of each edge."""
    if isinstance(graph, SparseSample):
        return graph.coo()
    if isinstance(graph, Block):
        graph = graph.edge_index
    return graph[0], graph[1]


def with_loops(
    graph: Any, feature: Tensor, fill: float | Tensor | str, num_nodes: int
) -> Tensor:
    """Returns features of edges, followed by those of loops.

    Args:
        graph (Any): The graph.
        feature (torch.Tensor): ``[num_edges, channels]``.
        fill (float, torch.Tensor or str): As PyG's ``fill_value``.
        num_nodes (int): Number of loops.
    """
    shape = num_nodes, *feature.shape[1:]
    if isinstance(fill, str):
        from torch_geometric.utils import scatter

        row, col = ends_of(graph)
        kept = row != col
        loops = scatter(feature[kept], col[kept], 0, num_nodes, fill)
    elif isinstance(fill, Tensor):
        value = fill.to(feature)
        value = value if value.dim() == feature.dim() else value.unsqueeze(0)
        loops = value.expand(shape)
    else:
        loops = feature.new_full(shape, fill)
    return torch.cat([feature, loops])
