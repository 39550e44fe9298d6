"""Personalised propagation."""

from typing import Any

from torch import Tensor
from torch_geometric import nn
from torch_geometric.typing import OptTensor

from torch_gsample.block import Block
from torch_gsample.vertex.nn.fusible import is_fusible, left_to_pyg
from torch_gsample.vertex.nn.gcn_conv import Propagation
from torch_gsample.vertex.nn.matrices import read_weights


class APPNP(nn.APPNP):
    r"""PyG's :class:`~torch_geometric.nn.conv.APPNP`, fused.

    .. math::
        \mathbf{X}^{(k)} = (1 - \alpha) \mathbf{\hat{D}}^{-1/2}
        \mathbf{\hat{A}} \mathbf{\hat{D}}^{-1/2} \mathbf{X}^{(k-1)} + \alpha
        \mathbf{X}^{(0)}

    of `"Predict then Propagate: Graph Neural Networks meet Personalized
    PageRank" <https://arxiv.org/abs/1810.05997>`_. With dropout of edges,
    PyG's own code runs.

    Example:
        >>> import torch
        >>> edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> APPNP(K=2, alpha=0.1)(torch.ones(3, 4), edge_index).shape
        torch.Size([3, 4])
    """

    #: Not the template that PyG has made for its class: it cannot explain.
    propagate = nn.MessagePassing.propagate
    propagate_type = {'x': Tensor, 'edge_weight': OptTensor}

    def forward(
        self, x: Tensor, edge_index: Any, edge_weight: Tensor | None = None
    ) -> Tensor:
        """Returns ``[num_nodes, channels]``, as in PyG.

        Args:
            x (torch.Tensor): ``[num_nodes, channels]``.
            edge_index (torch.Tensor): ``[2, num_edges]``, a
                :class:`~torch_gsample.SparseSample`, or the
                :class:`~torch_gsample.Block` of the last step, whose edges
                are those of a batch; ``x`` then has the sources of the first.
            edge_weight (torch.Tensor, optional): ``[num_edges]``; for a block,
                the weights of the whole batch, which determine degrees.

        Raises:
            TypeError: If edges of a :class:`~torch_gsample.Block` cannot be
                fused, as with dropout of edges in training.
        """
        dropout = self.dropout > 0 and self.training
        loop = float(self.add_self_loops and self.normalize)
        edges, weight, loop = read_weights(edge_index, edge_weight, x, loop)
        if (
            dropout
            or self.cached
            or (weight is not None and weight.dim() != 1)
            or not is_fusible(self, edges, x, weight, aggr='sum')
        ):
            if isinstance(edge_index, Block):
                raise TypeError(
                    "APPNP: 'edge_index' must be that of the whole batch with "
                    'dropout, a cache, weights of several columns or other '
                    'messages (got a Block)'
                )
            return left_to_pyg(self, nn.APPNP, x, edge_index, edge_weight)
        out = x
        for graph in self._graphs(edges):
            if isinstance(graph, Block):
                out, _ = graph.pair(out)
            if out is x or isinstance(graph, Block):
                propagate = Propagation(
                    graph, weight, out, x.dtype, self.normalize, loop
                )
            restart = x[: graph.num_dst] if isinstance(graph, Block) else x
            out = propagate(out, restart, self.alpha)
        return out

    @property
    def num_hops(self) -> int:
        """Number of hops that it reads."""
        return self.K

    def _graphs(self, graph: Any) -> list[Any]:
        """Returns the graph of each step."""
        if not isinstance(graph, Block):
            return [graph] * self.K
        levels = reversed(range(graph.level, graph.level + self.K))
        return [Block(graph.edges, level) for level in levels]
