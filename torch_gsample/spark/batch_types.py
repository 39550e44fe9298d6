"""The types of a sampled graph, and the options that readers need."""

from dataclasses import asdict, dataclass, replace
from typing import Any

EdgeType = tuple[str, str, str]


@dataclass(frozen=True)
class BatchTypes:
    """The types of a graph, and the options of its sample; see :meth:`of`.

    It has all metadata that readers need.
    """

    nodes: list[str | None]
    edges: list[Any]
    ends: list[tuple[int, int]]
    hops: int = 0
    disjoint: bool = False
    timed: bool = False
    input_type: int = 0
    num_seeds: int = 0
    batch_size: int = 0

    @classmethod
    def of(cls, edge_types: list[tuple[str, str, str]] | None) -> 'BatchTypes':
        """Returns the types of a graph, node types by first occurrence."""
        if edge_types is None:
            return cls([None], [None], [(0, 0)])
        ends = [t for edge in edge_types for t in (edge[0], edge[2])]
        nodes: list[str | None] = list(dict.fromkeys(ends))
        places = [(nodes.index(e[0]), nodes.index(e[2])) for e in edge_types]
        return cls(nodes, list(edge_types), places)

    @property
    def num_nodes(self) -> int:
        """Number of node types."""
        return len(self.nodes)

    def sampled(self, **facts: Any) -> 'BatchTypes':
        """Returns these types with the options of a sample."""
        return replace(self, **facts)

    def facts(self, widths: dict[str, int]) -> dict[str, Any]:
        """Returns all metadata as plain values.

        Args:
            widths (Dict[str, int]): Number of elements of a feature, by
                column; -1 if it is not an array.
        """
        return {**asdict(self), 'widths': widths}
