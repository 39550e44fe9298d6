"""Graph convolution."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric import nn
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.typing import OptTensor

from torch_gsample.block import Block
from torch_gsample.vertex.frontend.precision import cast, kernel_dtype
from torch_gsample.vertex.kernels.layout import Loops
from torch_gsample.vertex.nn.fusible import (
    ends_of,
    is_fusible,
    left_to_pyg,
    read_edges,
)
from torch_gsample.vertex.nn.matrices import read_weights
from torch_gsample.vertex.nn.programs import layer_program, made_once
from torch_gsample.vertex.program import VertexProgram


@layer_program('GCNConv or APPNP')
def degree(v):  # type: ignore
    """Counts the in-edges of a vertex, in the dtype of features."""
    return sum(1.0 for u in v.innbs) * v.one


@layer_program('GCNConv or APPNP')
def weighted_degree(v):  # type: ignore
    """Sums the weights of the in-edges of a vertex."""
    return sum(e.w for e in v.inedges)


@layer_program('GINConv or SAGEConv')
def neighbor_sum(v):  # type: ignore
    """Sums neighbours."""
    return sum(u.x for u in v.innbs)


@made_once
def propagation(
    weighted: bool, normalized: bool, alpha: float
) -> VertexProgram:
    """Returns the program of one step.

    Args:
        weighted (bool): Whether edges have weights.
        normalized (bool): Whether vertices have factors ``norm``.
        alpha (float): Share of ``restart`` in the result.
    """

    @layer_program('GCNConv or APPNP')
    def gcn(v):  # type: ignore
        out = [e.src.x for e in v.inedges]
        if normalized:
            out = [x * e.src.norm for x, e in zip(out, v.inedges, strict=True)]
        if weighted:
            out = [x * e.w for x, e in zip(out, v.inedges, strict=True)]
        total: Any = sum(out)
        if normalized:
            total = total * v.norm
        if alpha:
            total = total * (1 - alpha) + v.restart * alpha
        return total

    return gcn


class Propagation:
    """Multiplies features by the normalised adjacency of GCN.

    Loops are ordinary edges, so only sources have gradients.

    Args:
        graph (Any): The graph.
        weight (torch.Tensor, optional): ``[num_edges]``.
        x (torch.Tensor): Features, for the number of nodes.
        dtype (torch.dtype): Dtype of vertex factors, without weights.
        normalize (bool): Whether to normalise.
        loop (float): The weight of added loops; 0 for none, 1 for edges
            without weights.
    """

    def __init__(
        self,
        graph: Any,
        weight: Tensor | None,
        x: Tensor,
        dtype: torch.dtype,
        normalize: bool,
        loop: float,
    ):
        # Factors have the dtype of weights, and are rounded only once.
        self._dtype = dtype if weight is None else weight.dtype
        self._graph = graph
        self._norm: Any = None
        self._size = x.shape[0], x.shape[0]
        if isinstance(graph, Block):
            self._size = graph.size
        self._loops = Loops.KEEP
        if loop and (normalize or weight is not None):
            self._loops = Loops.REPLACE
        if normalize and isinstance(graph, Block):
            wide = None if weight is None else self._widened(weight)
            total = graph.in_degree(wide, loop or None)
            norm = self._inverse_root(total)
            self._norm = norm, norm[: graph.num_dst]
        if weight is not None:
            weight = read_edges(weight, graph)
            if loop:
                weight = _with_loops(graph, weight, loop, self._size[1])
        self._weight = weight
        if normalize and self._norm is None:
            self._norm = self._factors(x)

    def _run(self, program: Any, **features: Any) -> Tensor:
        return program(
            self._graph, size=self._size, loops=self._loops, **features
        )

    def _factors(self, x: Tensor) -> Tensor:
        if self._weight is None:
            dtype = kernel_dtype(self._dtype)
            one = x.new_ones(x.shape[0], dtype=dtype)
            total = self._run(degree, one=one)
        else:
            weight = self._widened(self._weight)
            total = self._run(weighted_degree, w=weight)
        return self._inverse_root(total)

    def _widened(self, weight: Tensor) -> Tensor:
        return cast(weight, kernel_dtype(weight.dtype))

    def _inverse_root(self, total: Tensor) -> Tensor:
        total = cast(total, kernel_dtype(self._dtype))
        factor = total.pow(-0.5)
        factor = factor.masked_fill(factor == torch.inf, 0.0)
        return cast(factor, self._dtype)

    def __call__(
        self, x: Tensor, restart: Tensor | None = None, alpha: float = 0.0
    ) -> Tensor:
        """Returns the product with features, mixed with other features.

        Args:
            x (torch.Tensor): The features.
            restart (torch.Tensor, optional): The other features.
            alpha (float, optional): Their share.
        """
        features: dict[str, Any] = {'x': (x, None)}
        if self._weight is not None:
            features['w'] = self._weight
        if self._norm is not None:
            features['norm'] = self._norm
        if alpha:
            features['restart'] = None, restart
        program = propagation(
            self._weight is not None, self._norm is not None, alpha
        )
        return self._run(program, **features)


def _with_loops(graph: Any, weight: Tensor, fill: float, size: int) -> Tensor:
    """Returns weights of edges, then of loops: the last loop's, if any."""
    row, col = ends_of(graph)
    loops = weight.new_full((size,), fill)
    own = row == col
    loops = loops.index_put((row[own].long(),), weight[own])
    return torch.cat([weight, loops])


class GCNConv(nn.GCNConv):
    r"""PyG's :class:`~torch_geometric.nn.conv.GCNConv`, fused.

    .. math::
        \mathbf{x}^{\prime}_v = \mathbf{\Theta}^{\top} \sum_{u \in
        \mathcal{N}(v) \cup \{ v \}} \frac{e_{u,v}}{\sqrt{\hat{d}_u
        \hat{d}_v}} \mathbf{x}_u

    of `"Semi-supervised Classification with Graph Convolutional Networks"
    <https://arxiv.org/abs/1609.02907>`_. Arguments, results and
    ``state_dict`` are PyG's.

    Example:
        >>> import torch
        >>> edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> GCNConv(4, 2)(torch.ones(3, 4), edge_index).shape
        torch.Size([3, 2])
    """

    #: Not the template that PyG has made for its class: it cannot explain.
    propagate = nn.MessagePassing.propagate
    propagate_type = {'x': Tensor, 'edge_weight': OptTensor}

    def forward(
        self, x: Tensor, edge_index: Any, edge_weight: Tensor | None = None
    ) -> Tensor:
        """Returns ``[num_nodes, out_channels]``, as in PyG.

        Args:
            x (torch.Tensor): ``[num_nodes, in_channels]``.
            edge_index (torch.Tensor): ``[2, num_edges]``, a
                :class:`~torch_gsample.SparseSample` or a
                :class:`~torch_gsample.Block`.
            edge_weight (torch.Tensor, optional): ``[num_edges]``; for a block,
                the weights of the whole batch, which determine degrees.
        """
        if isinstance(edge_index, Block):
            x, _ = edge_index.pair(x)
        loop = (2.0 if self.improved else 1.0) * self.add_self_loops
        edges, weight, loop = read_weights(edge_index, edge_weight, x, loop)
        if (
            self.cached
            or (weight is not None and weight.dim() != 1)
            or not is_fusible(self, edges, x, weight, aggr='sum')
        ):
            if isinstance(edge_index, Block):
                return self._left_to_pyg(x, edge_index, edge_weight)
            return left_to_pyg(self, nn.GCNConv, x, edge_index, edge_weight)
        if weight is None:  # only loops among weights count twice
            loop = float(self.add_self_loops)
        dtype = x.dtype  # under autocast, the product has another one
        x = self.lin(x)
        propagate = Propagation(edges, weight, x, dtype, self.normalize, loop)
        out = propagate(x)
        return out if self.bias is None else out + self.bias

    def _left_to_pyg(
        self, x: Tensor, block: Block, edge_weight: Tensor | None
    ) -> Tensor:
        """Returns the output of a block by PyG's own propagation."""
        edge_index = block.edges.edge_index
        if self.normalize:
            edge_index, edge_weight = gcn_norm(
                *(edge_index, edge_weight, block.edges.num_dst[-1]),
                *(self.improved, self.add_self_loops, self.flow, x.dtype),
            )
        kept = edge_index[1] < block.num_dst
        if edge_weight is not None:
            edge_weight = edge_weight[kept]
        x = self.lin(x)
        out = self.propagate(
            edge_index[:, kept],
            x=(x, x[: block.num_dst]),
            edge_weight=edge_weight,
            size=block.size,
        )
        return out if self.bias is None else out + self.bias
