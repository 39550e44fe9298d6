"""The part of a graph on disk that second-order walks have read.

Nodes come in, the local graph of their edges goes out.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.ops.has_edges import isin
from torch_gsample.storage.columns import concat_ranges
from torch_gsample.storage.matrices.edges import StoredEdges


class Visited:
    """The graph of all edges of visited nodes.

    Nodes have local ids, which ascend with them. Each step adds few, so that
    earlier ones are shifted instead of sorted again.

    Args:
        edges (StoredEdges): The rows of a graph.
        weighted (bool): Whether to read weights.
    """

    def __init__(self, edges: StoredEdges, weighted: bool):
        self._edges, self._weighted = edges, weighted
        none = torch.empty(0, dtype=torch.int64)
        self._ids = none  # nodes by local id
        # Of visited nodes, in the order of their reads:
        self._node, self._start = none, none  # local id, first edge
        self._degree, self._entries = none, none  # entries are local ids
        self._weight: Tensor | None = None

    def add(self, node: Tensor) -> None:
        """Reads the columns of new nodes."""
        new = node.unique()
        new = new[~isin(new, self._ids[self._node])]
        start = self._edges.pointers[new]
        degree = self._edges.pointers[new + 1] - start
        position = concat_ranges(start, degree)
        entries = self._edges.read('neighbor', position).long()
        local = self._local(torch.cat([new, entries]))
        self._node = torch.cat([self._node, local[: len(new)]])
        self._start = torch.cat([self._start, start])
        self._degree = torch.cat([self._degree, degree])
        self._entries = torch.cat([self._entries, local[len(new) :]])
        if self._weighted:
            weight = self._edges.read('weight', position)
            known = weight[:0] if self._weight is None else self._weight
            self._weight = torch.cat([known, weight])

    def _local(self, nodes: Tensor) -> Tensor:
        """Returns the local ids of nodes, and shifts those of earlier ones."""
        found, of_found = nodes.unique(return_inverse=True)
        rank = torch.searchsorted(self._ids, found)
        # A node after all is compared with one that no node is.
        is_new = torch.cat([self._ids, found[-1:] + 1])[rank] != found
        added = found[is_new]
        # A local id is a node's rank in its own part plus that in the other.
        old = torch.searchsorted(added, self._ids)
        old += torch.arange(len(old))
        new = rank[is_new] + torch.arange(len(added))
        ids = torch.empty(len(old) + len(new), dtype=torch.int64)
        ids[old], ids[new] = self._ids, added
        self._node, self._entries = old[self._node], old[self._entries]
        self._ids = ids
        rank[~is_new] = old[rank[~is_new]]
        rank[is_new] = new
        return rank[of_found]

    def walk(
        self, function: Callable[..., Sequence[Tensor]], seeds: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Calls a function of the graph with local node ids.

        Unread nodes have no edge.
        """
        ids, entries = self._ids, self._entries
        order = self._node.argsort()
        place = torch.zeros(len(ids), dtype=torch.int64)
        place[self._node] = self._degree
        indptr = torch.cat([place.new_zeros(1), place.cumsum(0)])
        begin = self._degree.cumsum(0) - self._degree
        index = concat_ranges(begin[order], self._degree[order])
        cum_weight = None
        if self._weighted:
            assert self._weight is not None
            cum_weight = ops.cumulate_weights(
                indptr, self._weight[index], 'probs'
            )
        starts = torch.searchsorted(ids, seeds)
        nodes, taken = function((indptr, entries[index]), starts, cum_weight)
        position = concat_ranges(self._start[order], self._degree[order])
        if len(position) == 0:
            return ids[nodes], taken
        return ids[nodes], torch.where(
            taken < 0, -1, position[taken.clamp(min=0)]
        )
