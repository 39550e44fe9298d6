"""Dynamic graph attention."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric import nn
from torch_geometric.typing import OptTensor, PairTensor

from torch_gsample.vertex.kernels.layout import Loops
from torch_gsample.vertex.nn.fusible import (
    is_fusible,
    left_to_pyg,
    read_edges,
    read_ends,
    share_rows,
    with_loops,
)
from torch_gsample.vertex.nn.matrices import read_pattern
from torch_gsample.vertex.nn.programs import layer_program, made_once
from torch_gsample.vertex.program import VertexProgram


@made_once
def attention(slope: float, edges: bool, dropout: float) -> VertexProgram:
    """Returns the program of dynamic attention.

    Args:
        slope (float): Negative slope of the leaky ReLU.
        edges (bool): Whether edges have features.
        dropout (float): Dropout probability of a weight.
    """

    @layer_program('GATv2Conv')
    def gatv2(v, att):  # type: ignore
        x = [e.src.left + v.right for e in v.inedges]
        if edges:
            x = [y + e.x for y, e in zip(x, v.inedges, strict=True)]
        score = [(F.leaky_relu(y, slope) * att).sum(-1) for y in x]
        # The softmax does not depend on the subtracted value.
        highest = max(score).detach()
        weight = [torch.exp(s - highest) for s in score]
        total: Any = sum(weight) + 1e-16
        weight = [F.dropout(w, dropout) for w in weight]
        out = sum(
            w.unsqueeze(-1) * u.left
            for w, u in zip(weight, v.innbs, strict=True)
        )
        return out / total.unsqueeze(-1)

    return gatv2


class GATv2Conv(nn.GATv2Conv):
    r"""PyG's :class:`~torch_geometric.nn.conv.GATv2Conv`, fused.

    .. math::
        \alpha_{u,v} = \mathrm{softmax}_u\left(\mathbf{a}^{\top}
        \mathrm{LeakyReLU}\left(\mathbf{\Theta}_{s} \mathbf{x}_u +
        \mathbf{\Theta}_{t} \mathbf{x}_v\right)\right)

    of `"How Attentive are Graph Attention Networks?"
    <https://arxiv.org/abs/2105.14491>`_. With ``return_attention_weights``,
    PyG's own code runs.

    Example:
        >>> import torch
        >>> edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> GATv2Conv(4, 2, heads=3)(torch.ones(3, 4), edge_index).shape
        torch.Size([3, 6])
    """

    #: Not the template that PyG has made for its class: it cannot explain.
    propagate = nn.MessagePassing.propagate
    propagate_type = {'x': PairTensor, 'alpha': Tensor}
    edge_updater_type = {'x': PairTensor, 'edge_attr': OptTensor}

    def forward(
        self,
        x: Any,
        edge_index: Any,
        edge_attr: Tensor | None = None,
        return_attention_weights: bool | None = None,
    ) -> Any:
        """Returns ``[num_destinations, heads * out_channels]``.

        Args:
            x (torch.Tensor): ``[num_nodes, in_channels]``, or a pair of
                features of sources and destinations.
            edge_index (torch.Tensor): ``[2, num_edges]``, a
                :class:`~torch_gsample.SparseSample` or a
                :class:`~torch_gsample.Block`.
            edge_attr (torch.Tensor, optional): ``[num_edges, edge_dim]``.
            return_attention_weights (bool, optional): As in PyG.
        """
        pair = read_ends(x, edge_index)
        edge_attr = read_edges(edge_attr, edge_index)
        edges = read_pattern(edge_index, self, edge_attr, pair)
        if (
            return_attention_weights is not None
            or pair[1] is None
            or not is_fusible(self, edges, *pair, edge_attr, aggr='sum')
        ):
            return left_to_pyg(
                self,
                nn.GATv2Conv,
                x,
                edge_index,
                edge_attr,
                return_attention_weights,
            )
        if not self.share_weights:
            pair = share_rows(pair, x, edges)
        shape = -1, self.heads, self.out_channels
        left = self.lin_l(pair[0]).view(shape)
        if self.share_weights and isinstance(x, Tensor):
            right = left[: pair[1].shape[0]]
        else:
            right = self.lin_r(pair[1]).view(shape)
        loops = min(left.shape[0], right.shape[0]) * self.add_self_loops
        features: dict[str, Any] = {
            'left': (left, None),
            'right': (None, right),
        }
        if edge_attr is not None:
            features['x'] = self._edges(edges, edge_attr, loops)
        dropout = self.dropout if self.training else 0.0
        program = attention(
            self.negative_slope, edge_attr is not None, dropout
        )
        out = program(
            edges,
            loops=Loops.REPLACE if self.add_self_loops else Loops.KEEP,
            att=self.att.squeeze(0),
            **features,
        )
        out = out.flatten(1) if self.concat else out.mean(dim=1)
        if self.res is not None:
            out = out + self.res(pair[1])
        return out if self.bias is None else out + self.bias

    def _edges(self, graph: Any, edge_attr: Tensor, loops: int) -> Tensor:
        if edge_attr.dim() == 1:
            edge_attr = edge_attr.view(-1, 1)
        if self.add_self_loops:
            edge_attr = with_loops(graph, edge_attr, self.fill_value, loops)
        value = self.lin_edge(edge_attr)
        return value.view(-1, self.heads, self.out_channels)
