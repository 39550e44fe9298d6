"""Graph attention."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric import nn
from torch_geometric.typing import OptPairTensor, OptTensor

from torch_gsample.vertex.frontend.precision import without_autocast
from torch_gsample.vertex.kernels.layout import Loops
from torch_gsample.vertex.nn.fusible import (
    is_fusible,
    left_to_pyg,
    read_edges,
    read_ends,
    with_loops,
    with_product,
)
from torch_gsample.vertex.nn.matrices import read_pattern
from torch_gsample.vertex.nn.programs import layer_program, made_once
from torch_gsample.vertex.program import VertexProgram


@made_once
def attention(slope: float, edges: bool, dropout: float) -> VertexProgram:
    """Returns the program of attention.

    Args:
        slope (float): Negative slope of the leaky ReLU.
        edges (bool): Whether edge features enter the score.
        dropout (float): Dropout probability of a weight.
    """

    @layer_program('GATConv')
    def gat(v):  # type: ignore
        score = [e.src.score + v.score for e in v.inedges]
        if edges:
            score = [
                s + e.edge_score for s, e in zip(score, v.inedges, strict=True)
            ]
        score = [F.leaky_relu(s, slope) for s in score]
        # The softmax does not depend on the subtracted value.
        highest = max(score).detach()
        weight = [torch.exp(s - highest) for s in score]
        total: Any = sum(weight) + 1e-16
        weight = [F.dropout(w, dropout) for w in weight]
        out = sum(
            w.unsqueeze(-1) * u.x for w, u in zip(weight, v.innbs, strict=True)
        )
        return out / total.unsqueeze(-1)

    return gat


class GATConv(nn.GATConv):
    r"""PyG's :class:`~torch_geometric.nn.conv.GATConv`, fused.

    .. math::
        \mathbf{x}^{\prime}_v = \sum_{u \in \mathcal{N}(v) \cup \{ v \}}
        \alpha_{u,v}\mathbf{\Theta}\mathbf{x}_{u}, \quad \alpha_{u,v} =
        \mathrm{softmax}_u\left(\mathrm{LeakyReLU}\left(
        \mathbf{a}^{\top}_{s} \mathbf{\Theta}\mathbf{x}_u
        + \mathbf{a}^{\top}_{t} \mathbf{\Theta}\mathbf{x}_v\right)\right)

    of `"Graph Attention Networks" <https://arxiv.org/abs/1710.10903>`_.
    Neither attention weights nor dropout masks are stored. With
    ``return_attention_weights``, PyG's own code runs.

    Example:
        >>> import torch
        >>> edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> conv = GATConv(4, 2, heads=3)
        >>> conv(torch.ones(3, 4), edge_index).shape
        torch.Size([3, 6])
    """

    #: Not the template that PyG has made for its class: it cannot explain.
    propagate = nn.MessagePassing.propagate
    propagate_type = {'x': OptPairTensor, 'alpha': Tensor}
    edge_updater_type = {'alpha': OptPairTensor, 'edge_attr': OptTensor}

    def forward(
        self,
        x: Any,
        edge_index: Any,
        edge_attr: Tensor | None = None,
        size: Any = None,
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
            size (Tuple[int, int], optional): Sources and destinations.
            return_attention_weights (bool, optional): As in PyG.
        """
        pair = read_ends(x, edge_index)
        edge_attr = read_edges(edge_attr, edge_index)
        edges = read_pattern(edge_index, self, edge_attr, pair)
        if (
            return_attention_weights is not None
            or pair[1] is None
            or (size is not None and self.add_self_loops)
            or not is_fusible(self, edges, *pair, edge_attr, aggr='sum')
        ):
            return left_to_pyg(
                self,
                nn.GATConv,
                x,
                edge_index,
                edge_attr,
                size=size,
                return_attention_weights=return_attention_weights,
            )
        source, target = self._projected(x, pair)
        with without_autocast(source.device):
            source, (first, second) = self._scored(source, target)
        loops = min(pair[0].shape[0], pair[1].shape[0]) * self.add_self_loops
        shape = -1, self.heads, self.out_channels
        features: dict[str, Any] = {
            'x': (source.view(shape), None),
            'score': (first, second[: pair[1].shape[0]]),
        }
        if edge_attr is not None and self.lin_edge is not None:
            features['edge_score'] = self._edge_scores(edges, edge_attr, loops)
        dropout = self.dropout if self.training else 0.0
        program = attention(
            self.negative_slope, 'edge_score' in features, dropout
        )
        out = program(
            edges,
            size=size,
            loops=Loops.REPLACE if self.add_self_loops else Loops.KEEP,
            **features,
        )
        out = out.flatten(1) if self.concat else out.mean(dim=1)
        if self.res is not None:
            out = out + self.res(pair[1])
        return out if self.bias is None else out + self.bias

    def _scored(
        self, source: Tensor, target: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Returns the sources, and ``[num_nodes, heads]`` of both ends.

        Scores are products with matrices of one row per head, which has
        ``att`` in the columns of its head. So no temporary tensor is as large
        as the features.
        """
        both = torch.cat([self.att_src, self.att_dst]).transpose(1, 2)
        matrix = both.diag_embed().transpose(1, 3).flatten(0, 1).flatten(1)
        if source is target:
            source, scores = with_product(source, matrix)
            return source, scores.split(self.heads, dim=1)
        first, second = matrix.split(self.heads)
        source, of_source = with_product(source, first)
        return source, (of_source, with_product(target, second)[1])

    def _projected(self, x: Any, pair: Any) -> tuple[Tensor, Tensor]:
        """Returns ``[num_nodes, heads * out_channels]`` of both ends.

        Destinations that are the first sources share their projection.
        """
        if self.lin is None:
            return self.lin_src(pair[0]), self.lin_dst(pair[1])
        source = self.lin(pair[0])
        return source, source if isinstance(x, Tensor) else self.lin(pair[1])

    def _edge_scores(
        self, graph: Any, edge_attr: Tensor, loops: int
    ) -> Tensor:
        if edge_attr.dim() == 1:
            edge_attr = edge_attr.view(-1, 1)
        if self.add_self_loops:
            edge_attr = with_loops(graph, edge_attr, self.fill_value, loops)
        value = self.lin_edge(edge_attr)
        value = value.view(-1, self.heads, self.out_channels)
        return (value * self.att_edge).sum(-1)
