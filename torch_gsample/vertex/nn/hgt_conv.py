"""Heterogeneous graph transformer."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric import nn

from torch_gsample.block import Block, HeteroBlock
from torch_gsample.torch_private import has_hooks, is_transformed
from torch_gsample.vertex.frontend.precision import is_autocast
from torch_gsample.vertex.kernels.merged import Merged, merged_relations
from torch_gsample.vertex.nn.fusible import is_fusible
from torch_gsample.vertex.nn.programs import layer_program

_LINEAR = nn.Linear, torch.nn.Linear


@layer_program('HGTConv')
def hgt_attention(v):  # type: ignore
    """Attention over the neighbours of all relations."""
    score = [(e.src.key * v.query).sum(-1) for e in v.inedges]
    # The softmax does not depend on the subtracted value.
    highest = max(score).detach()
    weight = [torch.exp(s - highest) for s in score]
    total: Any = sum(weight) + 1e-16
    out = sum(
        w.unsqueeze(-1) * u.value for w, u in zip(weight, v.innbs, strict=True)
    )
    return out / total.unsqueeze(-1)


class HGTConv(nn.HGTConv):
    r"""PyG's :class:`~torch_geometric.nn.conv.HGTConv`, fused.

    Attention of `"Heterogeneous Graph Transformer"
    <https://arxiv.org/abs/2003.01332>`_: keys and values of a source are
    multiplied by matrices of the relation,

    .. math::
        \alpha_{u,v} = \mathrm{softmax}_u\left(\frac{p_r}{\sqrt{d}}
        \left(\mathbf{K}_{\tau(u)} \mathbf{x}_u \mathbf{W}_r\right)^{\top}
        \mathbf{Q}_{\tau(v)} \mathbf{x}_v\right).

    Here :math:`\mathbf{K}_{\tau(u)} \mathbf{W}_r p_r / \sqrt{d}` is one matrix
    for each relation, which projects only the nodes that are sources in this
    relation; queries are those of destinations. Adjacency matrices, autocast
    and transforms of ``torch.func`` run PyG's own code.

    Example:
        >>> import torch
        >>> metadata = ['a'], [('a', 'to', 'a')]
        >>> edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> conv = HGTConv(4, 8, metadata, heads=2)
        >>> conv({'a': torch.ones(3, 4)}, {metadata[1][0]: edge_index})[
        ...     'a'
        ... ].shape
        torch.Size([3, 8])
    """

    #: Not the template that PyG has made for its class: it cannot explain.
    propagate = nn.MessagePassing.propagate
    propagate_type = {
        'k': Tensor,
        'q': Tensor,
        'v': Tensor,
        'edge_attr': Tensor,
    }

    def forward(self, x_dict: Any, edge_index_dict: Any) -> Any:
        """Returns ``[num_nodes, out_channels]`` for each node type.

        Args:
            x_dict (Dict[str, torch.Tensor]): ``[num_nodes, in_channels]`` of
                each node type.
            edge_index_dict (Dict[Tuple[str, str, str], torch.Tensor]): ``[2,
                num_edges]`` of each relation, or a
                ``HeteroBlock`` (an item of ``batch.blocks``), of whose batch
                ``x_dict`` has the first nodes or all; results are then of its
                destinations.
        """
        num_src = num_dst = {key: x.shape[0] for key, x in x_dict.items()}
        if isinstance(edge_index_dict, HeteroBlock):
            num_src, num_dst = edge_index_dict.num_src, edge_index_dict.num_dst
            x_dict = {key: x[: num_src[key]] for key, x in x_dict.items()}
        if not self._is_fusible(x_dict, edge_index_dict):
            return self._of_pyg(x_dict, edge_index_dict, num_dst)
        kinds = [key for key in x_dict if key in self.dst_node_types]
        graph = merged_relations(
            'HGTConv',
            edge_index_dict,
            {key: num_src[key] for key in x_dict},
            {key: num_dst[key] for key in kinds},
        )
        if not graph.size[0]:
            return self._of_pyg(x_dict, edge_index_dict, num_dst)
        queries = [self._queries(key, x_dict, num_dst[key]) for key in kinds]
        key, value = self._sources(x_dict, graph)
        shape = -1, self.heads, self.out_channels // self.heads
        out: Any = hgt_attention(
            graph.edge_index,
            size=graph.size,
            key=(key.view(shape), None),
            value=(value.view(shape), None),
            query=(None, torch.cat(queries).view(shape)),
        )
        parts = out.flatten(1).split([num_dst[key] for key in kinds])
        return self._updated(dict(zip(kinds, parts, strict=True)), x_dict)

    def _is_fusible(self, x_dict: Any, edge_index_dict: Any) -> bool:
        features = list(x_dict.values())
        linear = self.kqv_lin.lins
        kinds = {key[0] for key in edge_index_dict} | self.dst_node_types
        return (
            bool(edge_index_dict)
            and kinds <= x_dict.keys() <= {*linear.keys()}
            and len({x.dtype for x in features}) == 1
            and features[0].dtype in (torch.float32, torch.float64)
            and not is_autocast(features[0].device)
            and not is_transformed()
            and not torch.compiler.is_compiling()
            and all(type(linear[key]) in _LINEAR for key in kinds)
            and not any(
                has_hooks(m)
                for part in (self.kqv_lin, self.k_rel, self.v_rel)
                for m in part.modules()
            )
            and all(
                is_fusible(self, graph, *features, aggr='sum')
                and (isinstance(graph, Block) or not graph.is_floating_point())
                for graph in edge_index_dict.values()
            )
        )

    def _of_pyg(self, x_dict: Any, edge_index_dict: Any, num_dst: Any) -> Any:
        """Returns the result of PyG's own code."""
        if not isinstance(edge_index_dict, HeteroBlock):
            return nn.HGTConv.forward(self, x_dict, edge_index_dict)
        edges = edge_index_dict.edge_index_dict
        out = nn.HGTConv.forward(self, x_dict, edges)
        return {key: x[: num_dst[key]] for key, x in out.items()}

    def _queries(self, key: str, x_dict: Any, count: int) -> Tensor:
        lin, x = self.kqv_lin.lins[key], x_dict[key]
        width = self.out_channels
        middle = slice(width, 2 * width)
        bias = None if lin.bias is None else lin.bias[middle]
        return F.linear(x[:count], lin.weight[middle], bias)

    def _sources(self, x_dict: Any, graph: Merged) -> tuple[Tensor, Tensor]:
        """Returns keys and values of the sources of each relation."""
        keys: list[Tensor] = []
        values: list[Tensor] = []
        for edge_type, x in graph.rows_of(x_dict):
            scale = self.p_rel['__'.join(edge_type)].view(-1, 1, 1)
            scale = scale / math.sqrt(self.out_channels // self.heads)
            for out, rel, part, factor in (
                (keys, self.k_rel, 0, scale),
                (values, self.v_rel, 2, 1.0),
            ):
                weight, bias = self._matrix(edge_type, rel, part, factor)
                out.append(F.linear(x, weight, bias))
        return torch.cat(keys), torch.cat(values)

    def _matrix(
        self, edge_type: Any, rel: Any, part: int, scale: Any
    ) -> tuple[Tensor, Tensor | None]:
        """Returns the matrix and bias of keys or values in a relation."""
        heads, width = self.heads, self.out_channels
        lin = self.kqv_lin.lins[edge_type[0]]
        rows = slice(part * width, (part + 1) * width)
        index = self.edge_types_map[edge_type]
        # Type h * num_relations + r is head h of relation r.
        typed = rel.weight.view(
            heads, len(self.edge_types), *rel.weight.shape[1:]
        )
        typed = (typed[:, index] * scale).transpose(1, 2)
        weight = typed @ lin.weight[rows].view(heads, -1, lin.in_channels)
        bias = None
        if lin.bias is not None:
            bias = typed @ lin.bias[rows].view(heads, -1, 1)
            bias = bias.flatten()
        return weight.flatten(0, 1), bias

    def _updated(self, out: Any, x_dict: Any) -> Any:
        """Returns the new features of each node type."""
        found = self.out_lin({key: F.gelu(x) for key, x in out.items()})
        for key, x in out.items():
            new, old = found[key], x_dict[key][: x.shape[0]]
            if new.shape[-1] == old.shape[-1]:
                alpha = self.skip[key].sigmoid()
                new = alpha * new + (1 - alpha) * old
            out[key] = new
        return out
