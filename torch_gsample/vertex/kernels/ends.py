"""The ends of edges, for torch operators."""

import torch
from torch import Tensor

from torch_gsample.codegen.evaluate import aggregate
from torch_gsample.codegen.expression import Expression
from torch_gsample.codegen.unit import DESTINATION, EDGE, SOURCE, Leaf
from torch_gsample.vertex.kernels.layouts import Layouts


class GraphEnds:
    """The ends of the in-edges of a graph, in order.

    Args:
        graph (Layouts): The graph.
    """

    def __init__(self, graph: Layouts):
        self._graph = graph
        self._vertex = graph.incoming.col(torch.int64)
        self._source = graph.incoming.indices

    def read(self, leaf: Leaf, value: Tensor) -> Tensor:
        """Returns the rows of an operand in the order of edges."""
        edge_id = self._graph.incoming.edge_id
        if leaf.kind != EDGE or edge_id is None:
            return value
        return value.index_select(0, edge_id)

    def rows(self, kind: str) -> Tensor:
        """Returns the index of each edge or vertex, in order."""
        incoming = self._graph.incoming
        if kind == EDGE and incoming.edge_id is not None:
            return incoming.edge_id.long()
        count = incoming.indices.numel()
        if kind == DESTINATION:
            count = self._graph.num_destinations
        return torch.arange(count, device=self._source.device)

    def moved(self, value: Tensor, kind: str, to: str) -> Tensor:
        """Converts values from one graph type to another."""
        if to == EDGE and kind == SOURCE:
            return value.index_select(0, self._source)
        if to == EDGE and kind == DESTINATION:
            return value.index_select(0, self._vertex)
        return value

    def aggregated(self, node: Expression, value: Tensor) -> Tensor:
        """Returns an aggregate of edges."""
        if node.op == 'sum_out':
            return aggregate(
                node, value, self._source, self._graph.num_sources
            )
        return aggregate(
            node, value, self._vertex, self._graph.num_destinations
        )
