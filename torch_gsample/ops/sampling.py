"""Options and results of neighbour sampling."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from torch import Tensor

from torch_gsample.ops import _check

OP = 'sample_neighbors'
_FAULTS = {
    1: "'seeds' must be in the graph (got {value} at position {where} of "
    'node type {of})',
    2: "'indptr' must ascend to the edges (it does not at column {where} of "
    'relation {of})',
    3: "'indices' must be nodes (it is not at edge {where} of relation {of})",
    4: "a sample has more edges than 'max_edges' (at least {value} of "
    'relation {of})',
}


class PreparedGraph(Protocol):
    """The parts of a :class:`torch_gsample.Graph` that operators read."""

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors of each relation."""

    @property
    def ends(self) -> tuple[int, ...]:
        """The node types of rows and of columns of each relation."""

    @property
    def num_nodes(self) -> tuple[int, ...]:
        """Number of nodes of each type."""

    @property
    def columns(self) -> tuple[Any, ...]:
        """The edges of each relation."""

    @property
    def is_temporal(self) -> bool:
        """Whether a relation has times."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Options of neighbour sampling.

    Args:
        replace (bool, optional): Whether to sample with replacement.
        disjoint (bool, optional): Whether to sample a separate tree for each
            seed; required for temporal sampling.
        temporal_strategy (str, optional): ``'uniform'``, or ``'last'`` for
            the latest edges.
        time_window (int, optional): Width of the window, in units of time.
        return_edge_id (bool, optional): Whether to return edge ids.
        num_threads (int, optional): Maximum number of threads; 0 for torch's
            number of threads.

    Raises:
        ValueError: If a value is out of range.
    """

    replace: bool = False
    disjoint: bool = False
    temporal_strategy: str = 'uniform'
    time_window: int | None = None
    return_edge_id: bool = True
    num_threads: int = 0

    def __post_init__(self) -> None:
        _check.strategy('Sampling', self.temporal_strategy)
        _check.time_window('Sampling', self.time_window)


class Sample(NamedTuple):
    """A sampled subgraph; ``L`` is the number of hops.

    Edges are sorted by relation, hop, column and slot, and nodes by type and
    local id. A padded sample has -1 after the edges of each relation and the
    nodes of each type.
    """

    row: Tensor  # [num_sampled_edges] local id of each edge's source
    col: Tensor  # [num_sampled_edges] local id of its destination
    node: Tensor  # [num_sampled_nodes] node of each local id, seeds first
    edge: Tensor  # [num_sampled_edges] position in indices, or empty
    batch: Tensor  # [num_sampled_nodes] seed of each node's tree, or empty
    counts: Tensor  # num_nodes, num_edges and, if padded, the fault
    num_types: int
    num_relations: int
    padded_sizes: tuple[list[int], list[int]] | None  # edges, nodes

    @property
    def num_hops(self) -> int:
        """Number of hops, if the graph has node types."""
        fault = 0 if self.padded_sizes is None else 4
        size = self.counts.shape[0] - fault - self.num_types
        return size // max(self.num_types + self.num_relations, 1)

    @property
    def num_nodes(self) -> Tensor:
        """Number of new nodes per hop, ``[num_types, L + 1]``."""
        shape = self.num_types, self.num_hops + 1
        return self.counts.narrow(0, 0, shape[0] * shape[1]).view(shape)

    @property
    def num_edges(self) -> Tensor:
        """Number of edges per hop, ``[num_relations, L]``."""
        first = self.num_types * (self.num_hops + 1)
        shape = self.num_relations, self.num_hops
        return self.counts.narrow(0, first, shape[0] * shape[1]).view(shape)

    def hop_counts(self) -> tuple[list[list[int]], list[list[int]]]:
        """Returns the new nodes of each type and the edges of each relation.

        Each is a list of one number per hop, for a sample without padding.
        """
        counts = self.counts.tolist()
        types, relations = self.num_types, self.num_relations
        if types == relations == 1:
            ends = len(counts) // 2 + 1
            return [counts[:ends]], [counts[ends:]]
        hops = (len(counts) - types) // max(types + relations, 1)
        ends = types * (hops + 1)
        return (
            [counts[i : i + hops + 1] for i in range(0, ends, hops + 1)],
            [
                counts[ends + r * hops : ends + (r + 1) * hops]
                for r in range(relations)
            ],
        )

    def by_relation(self, *values: Tensor) -> list[list[Tensor]]:
        """Splits any of ``row``, ``col`` and ``edge`` by relation."""
        if self.num_relations == 1:
            return [[value] for value in values]
        if self.padded_sizes is None:
            return _split(values, self.num_edges.sum(1).tolist())
        return _split(values, self.padded_sizes[0])

    def by_type(self, *values: Tensor) -> list[list[Tensor]]:
        """Splits ``node`` or ``batch``, or both, by node type."""
        if self.num_types == 1:
            return [[value] for value in values]
        if self.padded_sizes is None:
            return _split(values, self.num_nodes.sum(1).tolist())
        return _split(values, self.padded_sizes[1])

    def check(self) -> 'Sample':
        """Waits for a padded sample, checks and returns it.

        Raises:
            IndexError: If a seed was not in the graph.
            RuntimeError: If a relation had more edges than its ``max_edges``,
                or the sample read a malformed part of the graph.
        """
        check_fault(self.counts[-4:].tolist())
        return self


def check_fault(fault: list[int]) -> None:
    """Raises the error of a padded sample's fault, if there is one.

    Args:
        fault (List[int]): 0, or the kind of fault, then position, value, and
            relation or node type.

    Raises:
        IndexError: If a seed was not in the graph.
        RuntimeError: If there was another fault.
    """
    kind, where, value, of = fault
    if kind != 0:
        error = IndexError if kind == 1 else RuntimeError
        rule = _FAULTS[kind].format(where=where, value=value, of=of)
        raise error(f'{OP}: {rule}')


def _split(values: tuple[Tensor, ...], sizes: list[int]) -> list[list[Tensor]]:
    """Splits vectors; an omitted vector has empty parts."""
    return [
        list(value.split(sizes))
        if _check.is_known(value.shape[0] > 0)
        else [value] * len(sizes)
        for value in values
    ]
