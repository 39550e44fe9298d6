"""PyG's ``ShaDowKHopSampler`` without torch-sparse."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from typing_extensions import Unpack

from torch_gsample.algorithms.shadow import shadow_nodes
from torch_gsample.loader.options import SubgraphOptions
from torch_gsample.loader.subgraph_loader import (
    SubgraphData,
    SubgraphLoader,
    check_data,
)
from torch_gsample.ops import _check
from torch_gsample.options import checked_names
from torch_gsample.samplers.arguments import flag
from torch_gsample.samplers.seeds import read_nodes


class ShaDowKHopSampler(SubgraphLoader):
    r"""Loads a bounded subgraph for each node of a batch.

    The counterpart of PyG's loader of this name, with its arguments and the
    fields of its batches. ``batch`` and ``ptr`` assign nodes to subgraphs,
    ``root_n_id`` has the positions of the seeds, and ``y`` the labels of the
    seeds. All other attributes are those of the nodes and edges. From
    `"Decoupling the Depth and Scope of Graph Neural Networks"
    <https://arxiv.org/abs/2201.07858>`_ (NeurIPS 2021).

    Differences from PyG's:

    * samples are a function of (``seed``, epoch, batch), for any number of
      workers and threads;
    * the first node of a subgraph is its seed;
    * edges are sorted by destination, and ``adj_t`` becomes an
      ``edge_index``;
    * node and edge attributes are told apart as in
      :class:`torch_geometric.data.Data`, not by their length alone.

    Args:
        data (Data or ChunkedGraph or Tuple[Data, ChunkedGraph]): The graph;
            its edges may be on disk, with attributes in memory.
        depth (int): Number of hops.
        num_neighbors (int): In-neighbours of each node to sample at each hop;
            -1 takes all.
        node_idx (torch.Tensor, optional): The seeds, int64 indices or a bool
            mask; default: all nodes.
        replace (bool, optional): Whether to sample with replacement.
        **options (optional): ``seed``; default: drawn from torch's generator;
            ``prefetch``, ``rank`` and ``world_size`` of
            :class:`NeighborLoader`; and those of
            :class:`torch.utils.data.DataLoader`.

    Raises:
        IndexError: If a node of ``node_idx`` is not in the graph.
        TypeError: If ``data`` is not a homogeneous graph, or a number is not
            an integer.
        ValueError: If a number is out of range.

    Example:
        >>> edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> y = torch.tensor([5, 6, 7])
        >>> data = Data(edge_index=edge_index, y=y, num_nodes=3)
        >>> loader = ShaDowKHopSampler(
        ...     data, depth=1, num_neighbors=2, batch_size=2, seed=0
        ... )
        >>> batch = next(iter(loader))
        >>> batch.batch, batch.root_n_id, batch.y
        (tensor([0, 0, 1, 1]), tensor([0, 2]), tensor([5, 6]))
    """

    @checked_names
    def __init__(
        self,
        data: SubgraphData,
        depth: int,
        num_neighbors: int,
        node_idx: Tensor | None = None,
        replace: bool = False,
        **options: Unpack[SubgraphOptions],
    ):
        name = type(self).__name__
        self.depth = _check.count(name, 'depth', depth)
        self.num_neighbors = _check.fanouts(
            name, 'num_neighbors', [num_neighbors]
        )[0]
        self.replace = flag(name, 'replace', replace)
        self.node_idx = _seeds(name, data, node_idx)
        super().__init__(data, self.node_idx.numel(), **options)

    def _make_batch(self, index: Tensor) -> Data:
        seeds = self.node_idx[index]
        fanouts = [self.num_neighbors] * self.depth
        nodes, batch, root = shadow_nodes(
            self.matrix, seeds, fanouts, self.replace
        )
        # A block begins with its root.
        ptr = torch.cat([root, torch.tensor([batch.numel()])])
        out = Batch(batch=batch, ptr=ptr)
        out.root_n_id = root
        skip: tuple[str, ...] = ('batch', 'ptr')
        if 'y' in self.data and self.data.is_node_attr('y'):
            skip += ('y',)
            out.y = self.data.y[seeds]
        self._induce(out, nodes, batch, skip)
        return out


def _seeds(name: str, data: Any, node_idx: Any) -> Tensor:
    size = check_data(name, data).num_nodes or 0
    if node_idx is None:
        return torch.arange(size)
    seeds = read_nodes(name, 'node_idx', node_idx, size)
    if seeds.dtype == torch.bool:
        return seeds.nonzero().view(-1)
    return seeds.long()
