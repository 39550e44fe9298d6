"""A sample as plain tensors, without PyG's objects."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from torch_gsample.batch_edges import BatchEdges
from torch_gsample.block import Blocks

#: A tensor in a homogeneous graph, else a tensor for each type.
ByType = Tensor | dict[Any, Tensor]


class SampledTensors(NamedTuple):
    """A sampled subgraph. In a heterogeneous graph, fields are by type.

    Args:
        node (torch.Tensor): int64 ``[num_sampled_nodes]``, the nodes, seeds
            first.
        row (torch.Tensor): int64 ``[num_sampled_edges]``, the position of
            each edge's source in ``node``.
        col (torch.Tensor): int64 ``[num_sampled_edges]``, the position of
            each edge's destination.
        edge (torch.Tensor): ``[num_sampled_edges]``, the edges of the data.
        batch (torch.Tensor, optional): int64 ``[num_sampled_nodes]``, the
            seed of each node's tree, if trees are disjoint.
        num_sampled_nodes (List[int]): New nodes at each hop, seeds first.
        num_sampled_edges (List[int], optional): Edges at each hop; None if
            all edges between the nodes are induced.
    """

    node: ByType
    row: ByType
    col: ByType
    edge: ByType
    batch: ByType | None
    num_sampled_nodes: Any
    num_sampled_edges: Any

    def blocks(self) -> Blocks:
        """Returns the blocks of a model's layers.

        Raises:
            ValueError: If the edges are induced and belong to no hop.

        Example:
            >>> import torch
            >>> from torch_geometric.data import Data
            >>> from torch_gsample import NeighborSampler
            >>> edge_index = torch.tensor([[1, 2, 2], [0, 0, 1]])
            >>> data = Data(edge_index=edge_index, num_nodes=3)
            >>> sampler = NeighborSampler(data, [2, 1], seed=0)
            >>> list(sampler.tensors(torch.tensor([0])).blocks())
            [Block(num_src=3, num_dst=3, num_edges=3), \
Block(num_src=3, num_dst=1, num_edges=2)]
        """
        if self.num_sampled_edges is None:
            raise ValueError(
                "SampledTensors: 'blocks' needs the edges of hops "
                "(subgraph_type='directional')"
            )
        parts: Any = self[1:3] + self[5:]
        if not isinstance(self.row, dict):
            parts = ({None: part} for part in parts)
        row, col, nodes, edges = parts
        return Blocks(
            {
                t: BatchEdges(
                    torch.stack([row[t], col[t]]),
                    nodes[t and t[0]],
                    nodes[t and t[2]],
                    count,
                )
                for t, count in edges.items()
            },
            nodes,
        )


def to_tensors(out: Any, perm: Any) -> SampledTensors:
    """Returns a sample's tensors, with the edge ids of the data.

    Args:
        out (SamplerOutput or HeteroSamplerOutput): The sample.
        perm (torch.Tensor or Dict, optional): The edge at each position of
            the sampler's graph, if samples contain positions.
    """
    edge = out.edge
    if isinstance(edge, dict):
        edge = {t: _ids(e, perm and perm[t]) for t, e in edge.items()}
    else:
        edge = _ids(edge, perm)
    return SampledTensors(
        out.node,
        out.row,
        out.col,
        edge,
        out.batch,
        out.num_sampled_nodes,
        out.num_sampled_edges,
    )


def _ids(edge: Tensor, perm: Tensor | None) -> Tensor:
    return edge if perm is None else perm.index_select(0, edge)
