"""The number of nodes and edges of a batch, or of its slots, at each hop."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch_geometric.sampler import HeteroSamplerOutput, SamplerOutput

#: Padding nodes among the seeds, the ends of padding edges: two, because an
#: edge between different nodes is not a self-loop.
SPARE = 2
#: Sizes are multiples of it.
_STEP = 8
#: Growth factor of a size that is too small for a batch.
_GROWTH = 1.5

Counts = Mapping[Any, tuple[int, ...]]


@dataclass(frozen=True)
class BatchShape:
    """Numbers of nodes and edges at each hop.

    Args:
        nodes (Dict[NodeType, Tuple[int]]): For each node type (:obj:`None` in
            a homogeneous graph) the seeds, and the nodes of each hop.
        edges (Dict[EdgeType, Tuple[int]]): For each edge type the edges of
            each hop; a single number if a sample has no separate hops.

    Raises:
        TypeError: If one is not a dictionary.

    Example:
        >>> shape = BatchShape({None: (2, 3)}, {None: (4,)})
        >>> shape.num_nodes, shape.num_edges
        (5, 4)
    """

    nodes: Counts
    edges: Counts

    def __post_init__(self) -> None:
        for name, value in (('nodes', self.nodes), ('edges', self.edges)):
            if not isinstance(value, Mapping):
                raise TypeError(
                    f"BatchShape: '{name}' must be a dictionary by type, such "
                    f'as {{None: (2, 3)}} (got {value!r})'
                )

    def __hash__(self) -> int:
        return hash((tuple(self.nodes.items()), tuple(self.edges.items())))

    @property
    def num_nodes(self) -> int:
        """The number of all nodes."""
        return sum(map(sum, self.nodes.values()))

    @property
    def num_edges(self) -> int:
        """The number of all edges."""
        return sum(map(sum, self.edges.values()))

    @classmethod
    def of(cls, out: SamplerOutput | HeteroSamplerOutput) -> 'BatchShape':
        """Returns the shape of a sample."""
        hetero = isinstance(out, HeteroSamplerOutput)

        def counts(values: Any, parts: Any) -> Counts:
            if not hetero:
                values, parts = {None: values}, {None: parts}
            return {
                t: _parts(int(v.numel()), (parts or {}).get(t))
                for t, v in values.items()
            }

        return cls(
            counts(out.node, out.num_sampled_nodes),
            counts(out.row, out.num_sampled_edges),
        )

    def with_spare(self) -> 'BatchShape':
        """Returns the shape with :data:`SPARE` more seeds of used types."""
        nodes = {
            t: (c[0] + SPARE, *c[1:]) if any(c) else c
            for t, c in self.nodes.items()
        }
        return BatchShape(nodes, self.edges)

    def same_parts(self, other: 'BatchShape') -> bool:
        """Whether both have the same types and numbers of hops."""
        return all(
            {t: len(c) for t, c in a.items()}
            == {t: len(c) for t, c in b.items()}
            for a, b in ((self.nodes, other.nodes), (self.edges, other.edges))
        )

    def fits(self, room: 'BatchShape') -> bool:
        """Whether it fits."""
        return all(size <= most for size, most in self._beside(room))

    def grown(self, needed: 'BatchShape') -> 'BatchShape':
        """Returns the shape with sizes grown where too small.

        It depends only on both shapes, so all workers agree, and has few
        values: sizes grow in steps of a half.
        """

        def grow(counts: Counts, others: Counts) -> Counts:
            return {
                t: tuple(map(_grown, c, others[t])) for t, c in counts.items()
            }

        return BatchShape(
            grow(self.nodes, needed.nodes), grow(self.edges, needed.edges)
        )

    def sizes(self) -> list[int]:
        """Returns all sizes in one list, nodes first."""
        every = (*self.nodes.values(), *self.edges.values())
        return [size for counts in every for size in counts]

    def with_sizes(self, sizes: list[float]) -> 'BatchShape':
        """Returns the shape with other :meth:`sizes`, rounded up."""
        rest = iter(sizes)

        def take(counts: Counts) -> Counts:
            return {
                t: tuple(rounded_up(next(rest)) for _ in c)
                for t, c in counts.items()
            }

        return BatchShape(take(self.nodes), take(self.edges))

    def _beside(self, other: 'BatchShape') -> Iterator[tuple[int, int]]:
        return zip(self.sizes(), other.sizes(), strict=True)


def rounded_up(size: float) -> int:
    """Rounds a number of nodes or edges up to a size."""
    return math.ceil(size / _STEP) * _STEP


def _grown(size: int, needed: int) -> int:
    while size < needed:
        size = rounded_up(_GROWTH * max(size, _STEP))
    return size


def _parts(total: int, parts: Any) -> tuple[int, ...]:
    """Returns the sizes of hops; a single size if unknown."""
    if parts is None or sum(parts) != total:
        return (total,)
    return tuple(int(part) for part in parts)
