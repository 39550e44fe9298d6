"""Graph isomorphism networks."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric import nn
from torch_geometric.typing import OptPairTensor

from torch_gsample.vertex.nn.fusible import (
    is_fusible,
    left_to_pyg,
    read_ends,
)
from torch_gsample.vertex.nn.gcn_conv import neighbor_sum
from torch_gsample.vertex.nn.programs import layer_program


@layer_program('GINConv')
def gin(v, eps):  # type: ignore
    """Sums neighbours and the vertex itself."""
    return sum(u.x for u in v.innbs) + (1.0 + eps) * v.x


class GINConv(nn.GINConv):
    r"""PyG's :class:`~torch_geometric.nn.conv.GINConv`, fused.

    .. math::
        \mathbf{x}^{\prime}_v = h_{\mathbf{\Theta}} \left( (1 + \epsilon)
        \cdot \mathbf{x}_v + \sum_{u \in \mathcal{N}(v)} \mathbf{x}_u \right)

    of `"How Powerful are Graph Neural Networks?"
    <https://arxiv.org/abs/1810.00826>`_.

    Example:
        >>> import torch
        >>> edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> GINConv(torch.nn.Linear(4, 2))(torch.ones(3, 4), edge_index).shape
        torch.Size([3, 2])
    """

    #: Not the template that PyG has made for its class: it cannot explain.
    propagate = nn.MessagePassing.propagate
    propagate_type = {'x': OptPairTensor}

    def forward(self, x: Any, edge_index: Any, size: Any = None) -> Tensor:
        """Returns ``[num_destinations, out_channels]``, as in PyG.

        Args:
            x (torch.Tensor): ``[num_nodes, in_channels]``, or a pair of
                features of sources and destinations.
            edge_index (torch.Tensor): ``[2, num_edges]``, a
                :class:`~torch_gsample.SparseSample` or a
                :class:`~torch_gsample.Block`.
            size (Tuple[int, int], optional): Sources and destinations.
        """
        pair = read_ends(x, edge_index)
        if not is_fusible(self, edge_index, *pair, aggr='sum'):
            return left_to_pyg(self, nn.GINConv, x, edge_index, size=size)
        if pair[1] is None:
            out = neighbor_sum(edge_index, size=size, x=pair)
        else:
            eps = self.eps
            eps = eps.to(torch.promote_types(eps.dtype, pair[1].dtype))
            out = gin(edge_index, size=size, x=pair, eps=eps)
        return self.nn(out)
