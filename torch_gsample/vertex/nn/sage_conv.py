"""GraphSAGE."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor
from torch_geometric import nn
from torch_geometric.typing import OptPairTensor

from torch_gsample.vertex.nn.fusible import (
    add_product,
    is_fusible,
    left_to_pyg,
    read_ends,
    share_rows,
)
from torch_gsample.vertex.nn.gcn_conv import neighbor_sum
from torch_gsample.vertex.nn.programs import layer_program
from torch_gsample.vertex.program import mean


@layer_program('SAGEConv')
def neighbor_mean(v):  # type: ignore
    """Averages neighbours."""
    return mean(u.x for u in v.innbs)


@layer_program('SAGEConv')
def neighbor_max(v):  # type: ignore
    """Takes the maximum of neighbours."""
    return max(u.x for u in v.innbs)


AGGREGATIONS = {
    'mean': neighbor_mean,
    'max': neighbor_max,
    'sum': neighbor_sum,
    'add': neighbor_sum,
}


class SAGEConv(nn.SAGEConv):
    r"""PyG's :class:`~torch_geometric.nn.conv.SAGEConv`, fused.

    .. math::
        \mathbf{x}^{\prime}_v = \mathbf{W}_1 \mathbf{x}_v + \mathbf{W}_2 \cdot
        \mathrm{mean}_{u \in \mathcal{N(v)}} \mathbf{x}_u

    of `"Inductive Representation Learning on Large Graphs"
    <https://arxiv.org/abs/1706.02216>`_, with ``aggr`` one of ``'mean'``,
    ``'max'`` and ``'sum'``; for others, PyG's own code runs.

    Example:
        >>> import torch
        >>> edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> SAGEConv(4, 2)(torch.ones(3, 4), edge_index).shape
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
        program = None
        if isinstance(self.aggr, str):
            program = AGGREGATIONS.get(self.aggr)
        if program is None or not is_fusible(
            self,
            edge_index,
            *pair,
            aggr='sum' if self.aggr == 'add' else str(self.aggr),
        ):
            return left_to_pyg(self, nn.SAGEConv, x, edge_index, size=size)
        if self.root_weight:
            pair = share_rows(pair, x, edge_index)
        if self.project and hasattr(self, 'lin'):
            pair = self.lin(pair[0]).relu(), pair[1]
        out = self.lin_l(program(edge_index, size=size, x=pair))
        if self.root_weight and pair[1] is not None:
            out = add_product(out, pair[1], self.lin_l, self.lin_r)
        return F.normalize(out, p=2.0, dim=-1) if self.normalize else out
