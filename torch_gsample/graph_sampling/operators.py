"""Four ways to sample a graph: those of Gradoop.

They are those of "Graph Sampling with Distributed In-Memory Dataflow Systems"
(Gomez et al., BTW 2021). ``docs/spark.md`` compares them with `Gradoop
<https://github.com/dbs-leipzig/gradoop>`_, one by one.
"""

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.loader.utils import filter_data

from torch_gsample.graph_sampling import draws
from torch_gsample.graph_sampling.walkers import visited_vertices
from torch_gsample.ops._check import count, in_range, int64_vector


def random_vertex(
    data: Data,
    fraction: float,
    *,
    seed: int | None = None,
    keep_isolated: bool = False,
) -> Data:
    """Keeps each vertex with a probability, and the edges between them.

    Args:
        data (Data): The graph; attributes of nodes and edges are sampled with
            them.
        fraction (float): The probability, in [0, 1].
        seed (int, optional): Seed of all draws; drawn from torch's default
            generator if not given.
        keep_isolated (bool, optional): Whether vertices stay of which no edge
            does.

    Returns:
        Data: The sampled graph, with the original ids of its vertices
        (``n_id``) and edges (``e_id``) in ascending order.

    Raises:
        IndexError: If an edge has a vertex that does not exist.
        TypeError: If ``fraction`` is not a number.
        ValueError: If ``fraction`` is outside [0, 1].

    Example:
        >>> edge_index = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
        >>> data = Data(edge_index=edge_index, num_nodes=4)
        >>> random_vertex(data, 0.6, seed=4).n_id
        tensor([1, 2, 3])
    """
    op = 'random_vertex'
    src, dst, size = _graph(op, data)
    kept = _kept_vertices(op, size, fraction, draws.checked_seed(op, seed))
    return _sampled(data, kept, kept[src] & kept[dst], keep_isolated)


def random_edge(
    data: Data,
    fraction: float,
    *,
    seed: int | None = None,
    edge_id: Tensor | None = None,
) -> Data:
    """Keeps each edge with a probability, and its two ends.

    Args:
        data (Data): See :func:`random_vertex`.
        fraction (float): The probability, in [0, 1].
        seed (int, optional): See :func:`random_vertex`.
        edge_id (torch.Tensor, optional): int64 ``[num_edges]``, whose draw an
            edge gets. If not given it is a hash of the two ends, so that
            parallel edges are kept or dropped together.

    Returns:
        Data: See :func:`random_vertex`.

    Raises:
        IndexError: If an edge has a vertex that does not exist.
        TypeError: If ``fraction`` is not a number.
        ValueError: If ``fraction`` is outside [0, 1].

    Example:
        >>> edge_index = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
        >>> data = Data(edge_index=edge_index, num_nodes=4)
        >>> random_edge(data, 0.5, seed=5).e_id
        tensor([2, 3])
    """
    op = 'random_edge'
    src, dst, size = _graph(op, data)
    fraction = draws.checked_fraction(op, 'fraction', fraction)
    ids = _edge_ids(op, src, dst, edge_id)
    number = draws.uniform(ids, draws.checked_seed(op, seed), draws.KEEP)
    kept = torch.zeros(size, dtype=torch.bool)
    kept_edges = number < fraction
    return _sampled(data, kept, kept_edges, keep_isolated=False)


def random_vertex_neighborhood(
    data: Data,
    fraction: float,
    direction: str = 'both',
    *,
    seed: int | None = None,
    keep_edges: str = 'incident',
    keep_isolated: bool = False,
) -> Data:
    """Keeps random vertices, their neighbours, and the edges that join them.

    Args:
        data (Data): See :func:`random_vertex`.
        fraction (float): The probability that a vertex is drawn, in [0, 1].
        direction (str, optional): ``'out'`` adds vertices that an edge from a
            drawn one leads to, ``'in'`` those with an edge to a drawn one,
            ``'both'`` adds both.
        seed (int, optional): See :func:`random_vertex`.
        keep_edges (str, optional): ``'incident'`` keeps the edges that leave
            a drawn vertex, enter one, or both, as ``direction`` says.
            ``'induced'`` keeps all edges between drawn vertices and their
            neighbours: most of a graph with hubs, even for a small
            ``fraction``.
        keep_isolated (bool, optional): See :func:`random_vertex`.

    Returns:
        Data: See :func:`random_vertex`.

    Raises:
        IndexError: If an edge has a vertex that does not exist.
        TypeError: If ``fraction`` is not a number.
        ValueError: If ``fraction`` is outside [0, 1], or ``direction`` or
            ``keep_edges`` is not known.

    Example:
        >>> edge_index = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
        >>> data = Data(edge_index=edge_index, num_nodes=4)
        >>> random_vertex_neighborhood(data, 0.3, 'out', seed=3).n_id
        tensor([0, 2, 3])
    """
    op = 'random_vertex_neighborhood'
    src, dst, size = _graph(op, data)
    direction = draws.checked_direction(op, direction)
    keep_edges = draws.checked_keep_edges(op, keep_edges)
    kept = _kept_vertices(op, size, fraction, draws.checked_seed(op, seed))
    leave, enter = kept[src], kept[dst]
    touched = {'out': leave, 'in': enter, 'both': leave | enter}[direction]
    if keep_edges == 'induced':
        kept[src[touched]] = True
        kept[dst[touched]] = True
        touched = kept[src] & kept[dst]
    return _sampled(data, kept, touched, keep_isolated)


def random_walk(
    data: Data,
    fraction: float,
    walkers: int = 1,
    jump_probability: float = 0.1,
    *,
    seed: int | None = None,
    edge_id: Tensor | None = None,
    keep_isolated: bool = False,
) -> Data:
    """Keeps the vertices that walkers visit, and the edges between them.

    At each step a walker follows a random out-edge that no walker has followed
    before. With ``jump_probability``, or if no such edge is left, it jumps to
    a random vertex.

    Args:
        data (Data): See :func:`random_vertex`.
        fraction (float): The share of vertices to visit, in [0, 1]; rounded
            up to a whole number of vertices.
        walkers (int, optional): How many walkers start, at random vertices.
        jump_probability (float, optional): In [0, 1].
        seed (int, optional): See :func:`random_vertex`.
        edge_id (torch.Tensor, optional): See :func:`random_edge`.
        keep_isolated (bool, optional): See :func:`random_vertex`.

    Returns:
        Data: See :func:`random_vertex`.

    Raises:
        IndexError: If an edge has a vertex that does not exist.
        TypeError: If an argument has the wrong type.
        ValueError: If an argument is out of range.

    Example:
        >>> edge_index = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
        >>> data = Data(edge_index=edge_index, num_nodes=4)
        >>> random_walk(data, 0.75, seed=0).num_nodes
        3
    """
    op = 'random_walk'
    src, dst, size = _graph(op, data)
    graph = _LocalWalkGraph(
        src,
        dst,
        _edge_ids(op, src, dst, edge_id),
        size,
        draws.checked_seed(op, seed),
    )
    visited = visited_vertices(
        graph,
        draws.checked_fraction(op, 'fraction', fraction),
        count(op, 'walkers', walkers),
        draws.checked_fraction(op, 'jump_probability', jump_probability),
        graph.seed,
    )
    kept = torch.zeros(size, dtype=torch.bool)
    kept[torch.tensor(visited, dtype=torch.int64)] = True
    return _sampled(data, kept, kept[src] & kept[dst], keep_isolated)


class _LocalWalkGraph:
    """A graph in memory, for walkers."""

    def __init__(
        self, src: Tensor, dst: Tensor, ids: Tensor, size: int, seed: int
    ):
        self.num_vertices, self.seed = size, seed
        self._jumps = draws.uniform(
            torch.arange(size), seed, draws.JUMP_ORDER
        ).argsort(stable=True)
        # By source, then in random order; equal draws go by destination.
        order = dst.argsort(stable=True)
        number = draws.uniform(ids, seed, draws.EDGE_ORDER)
        order = order[number[order].argsort(stable=True)]
        order = order[src[order].argsort(stable=True)]
        self._dst = dst[order]
        self._degree = torch.bincount(src, minlength=size)
        self._first = self._degree.cumsum(0) - self._degree

    def follow(self, vertices: list[int], ranks: list[int]) -> list[int]:
        vertex, rank = torch.tensor([vertices, ranks], dtype=torch.int64)
        left = rank < self._degree[vertex]
        reached = torch.full_like(vertex, -1)
        reached[left] = self._dst[(self._first[vertex] + rank)[left]]
        return reached.tolist()

    def jump_targets(self, first: int, last: int) -> list[int]:
        return self._jumps[first:last].tolist()


def _graph(op: str, data: Data) -> tuple[Tensor, Tensor, int]:
    if not isinstance(data, Data) or data.edge_index is None:
        raise TypeError(
            f"{op}: 'data' must be a 'Data' with an 'edge_index' (got "
            f'{type(data).__name__})'
        )
    src, dst = (
        in_range(
            op,
            'edge_index',
            int64_vector(op, 'edge_index', ends),
            data.num_nodes or 0,
        )
        for ends in data.edge_index
    )
    return src, dst, data.num_nodes or 0


def _edge_ids(
    op: str, src: Tensor, dst: Tensor, edge_id: Tensor | None
) -> Tensor:
    if edge_id is None:
        return draws.edge_ids(src, dst)
    return int64_vector(op, 'edge_id', edge_id, src.numel())


def _kept_vertices(op: str, size: int, fraction: float, seed: int) -> Tensor:
    fraction = draws.checked_fraction(op, 'fraction', fraction)
    return draws.uniform(torch.arange(size), seed, draws.KEEP) < fraction


def _sampled(
    data: Data, kept: Tensor, kept_edges: Tensor, keep_isolated: bool
) -> Data:
    """Cuts out what was kept; the ends of kept edges are always kept."""
    edge = kept_edges.nonzero().view(-1)
    src, dst = data.edge_index[:, edge]
    if not keep_isolated:
        kept = torch.zeros_like(kept)
    kept[src] = True
    kept[dst] = True
    node = kept.nonzero().view(-1)
    local = kept.cumsum(0) - 1
    out = filter_data(data, node, local[src], local[dst], edge)
    out.num_nodes = node.numel()
    out.n_id, out.e_id = node, edge
    return out
