"""Relational graph convolution."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric import nn
from torch_geometric.typing import OptTensor

from torch_gsample.block import Block
from torch_gsample.torch_private import is_mapped, is_transformed
from torch_gsample.vertex.frontend.precision import cast
from torch_gsample.vertex.nn.fusible import (
    is_fusible,
    left_to_pyg,
    read_edges,
    share_rows,
)
from torch_gsample.vertex.nn.programs import layer_program
from torch_gsample.vertex.program import mean


@layer_program('RGCNConv')
def rgcn_mean(v, weight):  # type: ignore
    """Averages the neighbours of each relation, and projects them."""
    return sum(
        mean(e.src.x for e in es) @ weight[es.type] for es in v.inedges.by_type
    )


@layer_program('RGCNConv')
def rgcn_sum(v, weight):  # type: ignore
    """Sums the neighbours of each relation, and projects them."""
    return sum(
        sum(e.src.x for e in es) @ weight[es.type] for es in v.inedges.by_type
    )


class RGCNConv(nn.RGCNConv):
    r"""PyG's :class:`~torch_geometric.nn.conv.RGCNConv`, fused.

    .. math::
        \mathbf{x}^{\prime}_v = \mathbf{\Theta}_{\textrm{root}} \cdot
        \mathbf{x}_v + \sum_{r \in \mathcal{R}} \frac{1}{|\mathcal{N}_r(v)|}
        \sum_{u \in \mathcal{N}_r(v)} \mathbf{\Theta}_r \cdot \mathbf{x}_u

    of `"Modeling Relational Data with Graph Convolutional Networks"
    <https://arxiv.org/abs/1703.06103>`_. Each matrix projects only vertices
    with edges of its relation. With ``num_blocks``, without features, and with
    ``aggr='max'``, PyG's own code runs.

    Example:
        >>> import torch
        >>> edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> conv = RGCNConv(4, 2, num_relations=2)
        >>> conv(torch.ones(3, 4), edge_index, torch.tensor([0, 1, 0])).shape
        torch.Size([3, 2])
    """

    #: Not the template that PyG has made for its class: it cannot explain.
    propagate = nn.MessagePassing.propagate
    propagate_type = {'x': Tensor, 'edge_type_ptr': OptTensor}

    def forward(
        self, x: Any, edge_index: Any, edge_type: Tensor | None = None
    ) -> Tensor:
        """Returns ``[num_destinations, out_channels]``, as in PyG.

        Args:
            x (torch.Tensor): ``[num_nodes, in_channels]``, or a pair of
                features of sources and destinations.
            edge_index (torch.Tensor): ``[2, num_edges]``, a
                :class:`~torch_gsample.SparseSample` or a
                :class:`~torch_gsample.Block`.
            edge_type (torch.Tensor): ``[num_edges]``, the relations.
        """
        pair = x if isinstance(x, tuple) else (x, x)
        if isinstance(edge_index, Block):
            pair = edge_index.pair(x)
        edge_type = read_edges(edge_type, edge_index)
        programs = {'mean': rgcn_mean, 'add': rgcn_sum, 'sum': rgcn_sum}
        name = str(self.aggr)
        aggr = 'mean' if name == 'mean' else 'sum'
        if (
            name not in programs
            or edge_type is None
            or None in [y if y is None else 0 for y in pair]
            or self.num_blocks is not None
            or (is_transformed() and is_mapped(edge_type))
            or not is_fusible(self, edge_index, *pair, aggr=aggr)
        ):
            return left_to_pyg(self, nn.RGCNConv, x, edge_index, edge_type)
        if self.root is not None:
            pair = share_rows(pair, x, edge_index)
        weight = self.weight
        if self.num_bases is not None:
            weight = self.comp @ weight.view(self.num_bases, -1)
            weight = weight.view(
                self.num_relations, self.in_channels_l, self.out_channels
            )
        out = programs[name](
            edge_index,
            size=(pair[0].shape[0], pair[1].shape[0]),
            x=(pair[0], None),
            weight=weight,
            type=edge_type,
        )
        # PyG adds to zeros of the default dtype.
        zero = torch.get_default_dtype()
        out = cast(out, torch.promote_types(out.dtype, zero))
        if self.root is None:
            return out if self.bias is None else out + self.bias
        if self.bias is None:
            root = pair[1] @ self.root
        else:
            root = torch.addmm(self.bias, pair[1], self.root)
        # In place, as no gradient reads a product. vmap may map one of them.
        in_place = root.dtype == out.dtype and not is_transformed()
        return root.add_(out) if in_place else root + out
