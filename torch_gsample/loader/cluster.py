"""PyG's ``ClusterData`` with the METIS of pymetis."""

from typing import Literal

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.index import index2ptr
from torch_geometric.loader import cluster
from torch_geometric.utils import (
    index_sort,
    remove_self_loops,
    to_undirected,
)

from torch_gsample.loader.sharding import integer

_NAME = 'ClusterData'


class ClusterData(cluster.ClusterData):
    """PyG's ``ClusterData`` without pyg-lib and torch-sparse.

    `"Cluster-GCN" <https://arxiv.org/abs/1905.07953>`_ trains on the parts of
    a graph, between which METIS cuts few edges. Here
    `pymetis <https://pypi.org/project/pymetis>`_ computes the parts. It is
    METIS as well, but its parts may differ from those of PyG's builds. METIS
    takes undirected graphs without self-loops: an edge counts the same for
    any of its directions in the data. The rest is PyG's: a part has the edges
    of the data.

    Args:
        data (Data): The graph, with an ``edge_index``.
        num_parts (int): Number of parts, some of which may be empty.
        recursive (bool, optional): Whether METIS bisects recursively instead
            of computing all parts at once.
        save_dir (str, optional): Folder for the parts.
        filename (str, optional): Their file in it.
        log (bool, optional): Whether to print that METIS runs.
        keep_inter_cluster_edges (bool, optional): Whether a part has the
            edges to other parts.
        sparse_format (str, optional): ``'csr'`` or ``'csc'``: whether parts
            have the edges that leave their nodes, or that enter them.

    Raises:
        ImportError: If pymetis is not installed.
        TypeError: If ``num_parts`` is not an integer.
        ValueError: If there is no ``edge_index``, or ``num_parts`` is below 1.

    Example:
        >>> from torch_geometric.datasets import KarateClub
        >>> from torch_geometric.loader import ClusterLoader
        >>> data = ClusterData(KarateClub()[0], num_parts=4, log=False)
        >>> sum(part.num_nodes for part in data)
        34
        >>> len(ClusterLoader(data, batch_size=2))
        2
    """

    def __init__(
        self,
        data: Data,
        num_parts: int,
        recursive: bool = False,
        save_dir: str | None = None,
        filename: str | None = None,
        log: bool = True,
        keep_inter_cluster_edges: bool = False,
        sparse_format: Literal['csr', 'csc'] = 'csr',
    ):
        if integer(_NAME, 'num_parts', num_parts) < 1:
            raise ValueError(
                f"{_NAME}: 'num_parts' must be positive (got {num_parts})"
            )
        if getattr(data, 'edge_index', None) is None:
            raise ValueError(f"{_NAME}: 'data' must have an 'edge_index'")
        super().__init__(
            data,
            num_parts,
            recursive,
            save_dir,
            filename,
            log,
            keep_inter_cluster_edges,
            sparse_format,
        )

    def _metis(self, edge_index: Tensor, num_nodes: int) -> Tensor:
        """Returns the part of each node; PyG calls it."""
        try:
            from pymetis import CSRAdjacency, part_graph
        except ImportError as error:
            raise ImportError(
                f'{_NAME}: pymetis is needed; pip install '
                "'torch_gsample[cluster]'"
            ) from error
        if num_nodes == 0 or self.num_parts == 1:
            return edge_index.new_zeros(num_nodes)
        edges, _ = remove_self_loops(edge_index.cpu())
        edges = to_undirected(edges, num_nodes=num_nodes)
        row, perm = index_sort(edges[0], max_value=num_nodes)
        starts = index2ptr(row, num_nodes).numpy()
        adjacency = CSRAdjacency(starts, edges[1, perm].numpy())
        _, part = part_graph(
            self.num_parts, adjacency, recursive=self.recursive
        )
        return torch.tensor(part, device=edge_index.device)
