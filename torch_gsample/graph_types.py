"""Metadata of a graph: types and numbers of nodes."""

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

from torch import Tensor


@dataclass(frozen=True, eq=False)
class GraphTypes:
    """The node types and the relations of a graph.

    A homogeneous graph has one node type and one edge type, :obj:`None`.

    Args:
        node_types (Tuple[str, ...]): The node types.
        edge_types (Tuple[Tuple[str, str, str], ...]): The relations.
        num_nodes (Tuple[int, ...]): Number of nodes of each type.
        is_transposed (bool, optional): Whether columns are the sources of a
            relation and rows its destinations.

    Attributes:
        ends (Tuple[int, ...]): For each relation, the positions of the types
            of its rows and of its columns in :attr:`node_types`.

    Raises:
        TypeError: If a number is not an integer.
        ValueError: If a number is missing, or a relation connects nodes of a
            type that the graph does not have.
    """

    node_types: tuple[Any, ...]
    edge_types: tuple[Any, ...]
    num_nodes: tuple[int, ...]
    is_transposed: bool = field(default=False, kw_only=True)
    ends: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        for key in ('node_types', 'edge_types', 'num_nodes'):
            self._set(key, tuple(getattr(self, key)))
        if len(self.num_nodes) != len(self.node_types):
            raise ValueError(
                f"Graph: 'num_nodes' must have one item for each of "
                f'{len(self.node_types)} node types (got '
                f'{len(self.num_nodes)})'
            )
        for size in self.num_nodes:
            if not isinstance(size, (Integral, Tensor)):
                raise TypeError(
                    f"Graph: 'num_nodes' must be integers (got {size!r})"
                )
        ends: list[int] = []
        for edge_type in self.edge_types:
            for node_type in self.row_and_column_type(edge_type):
                if node_type not in self.node_types:
                    raise ValueError(
                        f'Graph: edge type {edge_type} connects nodes of type '
                        f'{node_type!r}, which the graph does not have'
                    )
                ends.append(self.node_types.index(node_type))
        self._set('ends', tuple(ends))

    def _set(self, key: str, value: Any) -> None:
        object.__setattr__(self, key, value)

    @property
    def is_hetero(self) -> bool:
        """Whether there are node and edge types."""
        return self.edge_types != (None,)

    @property
    def counts(self) -> dict[Any, int]:
        """The number of nodes of each type."""
        return dict(zip(self.node_types, self.num_nodes, strict=True))

    def end_types(self, edge_type: Any) -> tuple[Any, Any]:
        """Returns the node types of the sources and of the destinations."""
        if edge_type is None:
            return None, None
        return edge_type[0], edge_type[2]

    def row_and_column_type(self, edge_type: Any) -> tuple[Any, Any]:
        """Returns the node types of the rows and of the columns."""
        src, dst = self.end_types(edge_type)
        return (dst, src) if self.is_transposed else (src, dst)
