"""Personalised propagation."""

from typing import Any

from torch import Tensor
from torch_geometric import nn
from torch_geometric.typing import OptTensor

from torch_gsample.block import Block
from torch_gsample.vertex.nn.fusible import is_fusible, left_to_pyg
from torch_gsample.vertex.nn.gcn_conv import Propagation


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

    propagate_type = {'x': Tensor, 'edge_weight': OptTensor}

    def forward(
        self, x: Tensor, edge_index: Any, edge_weight: Tensor | None = None
    ) -> Tensor:
        """Returns ``[num_nodes, channels]``, as in PyG.

        Args:
            x (torch.Tensor): ``[num_nodes, channels]``.
            edge_index (torch.Tensor): ``[2, num_edges]``, or a
                :class:`~torch_gsample.SparseSample`.
            edge_weight (torch.Tensor, optional): ``[num_edges]``.

        Raises:
            TypeError: If ``edge_index`` is a :class:`~torch_gsample.Block`,
                which has the edges of one step only.
        """
        if isinstance(edge_index, Block):
            raise TypeError(
                f"APPNP: 'edge_index' must be that of the batch, for its "
                f'{self.K} steps (got a Block)'
            )
        dropout = self.dropout > 0 and self.training
        if (
            dropout
            or self.cached
            or (edge_weight is not None and edge_weight.dim() != 1)
            or not is_fusible(self, edge_index, x, edge_weight, aggr='sum')
        ):
            return left_to_pyg(self, nn.APPNP, x, edge_index, edge_weight)
        loop = float(self.add_self_loops and self.normalize)
        propagate = Propagation(
            edge_index, edge_weight, x, x.dtype, self.normalize, loop
        )
        out = x
        for _ in range(self.K):
            out = propagate(out, x, self.alpha)
        return out
