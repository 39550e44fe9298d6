"""Common parts of samplers' tests: small graphs, dtypes, and validity.

Plain loops over Python integers, to be obviously right: meant for samples of
at most some ten thousand edges. :mod:`pytest` is needed for
:func:`with_index_dtypes` only.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from torch_gsample.csc import CSC

#: The supported dtypes of ``indptr`` and ``indices``.
INDEX_DTYPES = (
    (torch.int32, torch.int32),
    (torch.int64, torch.int32),
    (torch.int64, torch.int64),
)

#: The names that :func:`small_graph` knows.
SMALL_GRAPHS = (
    'empty',
    'isolated',
    'self_loop',
    'path',
    'star',
    'hub',
    'multi_edge',
    'random',
)


class Sample(Protocol):
    """The fields of a sample that :func:`assert_valid_sample` reads."""

    row: Tensor
    col: Tensor
    node: Tensor
    edge: Tensor
    batch: Tensor
    num_nodes: Tensor
    num_edges: Tensor


def with_index_dtypes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Runs a test for each of :obj:`INDEX_DTYPES`, as ``index_dtypes``.

    .. code-block:: python

        @with_index_dtypes
        def test_paths_are_walked(index_dtypes):
            graph = to_dtypes(small_graph('path'), index_dtypes)
    """
    import pytest

    ids = [
        '-'.join(str(dtype).removeprefix('torch.') for dtype in pair)
        for pair in INDEX_DTYPES
    ]
    return pytest.mark.parametrize('index_dtypes', INDEX_DTYPES, ids=ids)(
        function
    )


def to_dtypes(
    graph: CSC, index_dtypes: tuple[torch.dtype, torch.dtype]
) -> CSC:
    """Converts ``indptr`` and ``indices`` of a graph to two dtypes."""
    return CSC(
        graph.indptr.to(index_dtypes[0]),
        graph.indices.to(index_dtypes[1]),
        graph.num_rows,
        graph.edge_id,
    )


def small_graph(name: str) -> CSC:
    """Returns one of :obj:`SMALL_GRAPHS`, in int64.

    Args:
        name (str): ``'empty'`` (no nodes), ``'isolated'`` (4 nodes without
            edges), ``'self_loop'`` (1 node), ``'path'`` (0 → 1 → … → 5),
            ``'star'`` (1 … 9 → 0), ``'hub'`` (a node with an edge from and to
            each of 300 others), ``'multi_edge'`` (parallel edges and
            self-loops) or ``'random'`` (40 nodes, 400 edges).

    Example:
        >>> small_graph('path').indices
        tensor([0, 1, 2, 3, 4])
    """
    if name == 'random':
        return random_graph(40, 400, seed=0)
    others = list(range(1, 301))
    columns: dict[str, list[list[int]]] = {
        'empty': [],
        'isolated': [[], [], [], []],
        'self_loop': [[0]],
        'path': [[], [0], [1], [2], [3], [4]],
        'star': [list(range(1, 10))] + [[] for _ in range(9)],
        'hub': [others] + [[0] for _ in others],
        'multi_edge': [[1, 1, 1, 2], [0, 0, 1, 1], [2, 2, 0, 0, 0]],
    }
    if name not in columns:
        raise ValueError(
            f"small_graph: 'name' must be one of {', '.join(SMALL_GRAPHS)} "
            f'(got {name!r})'
        )
    return from_columns(columns[name])


def from_columns(
    columns: Sequence[Sequence[int]], num_rows: int | None = None
) -> CSC:
    """Returns the graph of in-neighbour lists.

    Args:
        columns (List[List[int]]): The rows of each column's edges.
        num_rows (int, optional): Number of rows; default: the number of
            columns.

    Example:
        >>> from_columns([[1, 1], []]).indptr
        tensor([0, 2, 2])
    """
    indptr = [0]
    for column in columns:
        indptr.append(indptr[-1] + len(column))
    indices = [row for column in columns for row in column]
    return CSC(
        torch.tensor(indptr),
        torch.tensor(indices, dtype=torch.int64),
        len(columns) if num_rows is None else num_rows,
    )


def random_graph(
    num_nodes: int,
    num_edges: int,
    *,
    num_rows: int | None = None,
    seed: int,
) -> CSC:
    """Returns a graph of uniform edges, including parallel ones and loops.

    Args:
        num_nodes (int): Number of columns.
        num_edges (int): Number of edges.
        num_rows (int, optional): Number of rows; default: the number of
            columns.
        seed (int): Seed of the draws.
    """
    generator = torch.Generator().manual_seed(seed)
    num_rows = num_nodes if num_rows is None else num_rows
    size = (num_edges,)
    col = torch.randint(num_nodes, size, generator=generator)
    indptr = torch.zeros(num_nodes + 1, dtype=torch.int64)
    torch.cumsum(torch.bincount(col, minlength=num_nodes), 0, out=indptr[1:])
    indices = torch.randint(num_rows, size, generator=generator)
    return CSC(indptr, indices, num_rows)


def random_edge_time(graph: CSC, num_times: int, *, seed: int) -> Tensor:
    """Returns nonnegative times, ascending in each column."""
    generator = torch.Generator().manual_seed(seed)
    time = torch.randint(num_times, (graph.num_edges,), generator=generator)
    order = torch.argsort(graph.col() * num_times + time, stable=True)
    return time[order]


def assert_valid_sample(
    out: Sample,
    indptr: Tensor,
    indices: Tensor,
    seeds: Tensor,
    fanouts: Sequence[int],
    *,
    replace: bool = False,
    disjoint: bool = False,
    weight: Tensor | None = None,
    edge_time: Tensor | None = None,
    seed_time: Tensor | None = None,
    time_window: int | None = None,
    temporal_strategy: str = 'uniform',
) -> None:
    """Asserts all properties of a valid sample.

    Seeds come first. Every edge exists, with its row and column. A column is
    sampled at the hop after the one that reached it, with as many candidates
    as the fan-out allows, distinct without replacement. Local ids follow the
    first occurrence. Nodes are distinct, except for duplicate seeds. Hop
    counts add up, and edges are in canonical order.

    Args:
        out (Sample): A result of :func:`~torch_gsample.ops.sample_neighbors`
            for a homogeneous graph, or a similar one. Without ``edge``, only
            the ends of edges are checked.
        indptr (torch.Tensor): ``[num_nodes + 1]``.
        indices (torch.Tensor): ``[num_edges]``.
        seeds (torch.Tensor): ``[num_seeds]``.
        fanouts (List[int]): Fan-out at each hop; -1 takes all.
        replace (bool, optional): As in the call.
        disjoint (bool, optional): As in the call.
        weight (torch.Tensor, optional): ``[num_edges]``, the weights, not
            cumulated.
        edge_time (torch.Tensor, optional): As in the call.
        seed_time (torch.Tensor, optional): As in the call.
        time_window (int, optional): As in the call.
        temporal_strategy (str, optional): As in the call.

    Raises:
        AssertionError: If a property does not hold.

    Example:
        >>> from torch_gsample import Graph, ops
        >>> from torch_gsample.rng import make_key
        >>> g, seeds = small_graph('random'), torch.tensor([3, 0])
        >>> graph, key = Graph.from_csc(g), make_key(1)
        >>> out = ops.sample_neighbors(graph, seeds, [4, 2], key)
        >>> assert_valid_sample(out, g.indptr, g.indices, seeds, [4, 2])
    """
    node, tree = _assert_valid_nodes(out, seeds, len(fanouts), disjoint)
    row, col = out.row.tolist(), out.col.tolist()
    assert len(row) == len(col) == int(out.num_edges.sum())
    _assert_first_occurrence(row, node, tree, len(seeds))
    for r, c in zip(row, col, strict=True):
        assert tree[r] == tree[c], 'an edge joins two trees'
    edge = out.edge.tolist()
    assert len(edge) in (0, len(row))
    rows = indices.tolist()
    for r, e in zip(row, edge, strict=False):
        assert rows[e] == node[r], f'edge {e} does not come from {node[r]}'
    candidates = _Candidates(
        indptr.tolist(),
        None if weight is None else weight.tolist(),
        None if edge_time is None else edge_time.tolist(),
        [] if seed_time is None else seed_time.tolist(),
        time_window,
        temporal_strategy == 'last',
    )
    num_nodes = out.num_nodes.view(-1).tolist()
    num_edges = out.num_edges.view(-1).tolist()
    first, last, at = 0, len(seeds), 0
    for hop, fanout in enumerate(fanouts):
        end = at + num_edges[hop]
        assert col[at:end] == sorted(col[at:end]), 'not in canonical order'
        for c in range(first, last):
            allowed = candidates.of(node[c], tree[c], fanout)
            begin = at
            while at < end and col[at] == c:
                at += 1
            _assert_valid_column(
                at - begin, edge[begin:at], allowed, fanout, replace
            )
            if not edge:
                ends = {rows[e] for e in allowed}
                assert all(node[r] in ends for r in row[begin:at])
        assert at == end, f'hop {hop} samples columns of another hop'
        first, last = last, last + num_nodes[hop + 1]
        reached = max(row[:end], default=-1) + 1
        assert max(reached, first) == last, f'hop {hop} reaches other nodes'


class _Candidates:
    """The edges that a column may give, in the order of the graph."""

    def __init__(
        self,
        indptr: list[int],
        weight: list[float] | None,
        edge_time: list[int] | None,
        seed_time: list[int],
        time_window: int | None,
        latest: bool,
    ) -> None:
        self.indptr = indptr
        self.weight = weight
        self.edge_time = edge_time
        self.seed_time = seed_time
        self.time_window = time_window
        self.latest = latest

    def of(self, node: int, tree: int, fanout: int) -> list[int]:
        edges = list(range(self.indptr[node], self.indptr[node + 1]))
        if self.edge_time is not None:
            time = self.edge_time
            to = self.seed_time[tree]
            edges = [e for e in edges if time[e] <= to]
            if self.time_window is not None:
                edges = [e for e in edges if time[e] >= to - self.time_window]
            if self.latest and fanout >= 0:
                edges = edges[max(len(edges) - fanout, 0) :]
        if self.weight is not None:
            edges = [e for e in edges if self.weight[e] > 0]
        return edges


def _assert_valid_nodes(
    out: Sample, seeds: Tensor, num_hops: int, disjoint: bool
) -> tuple[list[int], list[int]]:
    """Returns the node and the tree of each local id."""
    node, num_nodes = out.node.tolist(), out.num_nodes.view(-1).tolist()
    assert len(num_nodes) == num_hops + 1
    assert out.num_edges.numel() == num_hops
    assert num_nodes[0] == len(seeds)
    assert sum(num_nodes) == len(node)
    assert min(num_nodes) >= 0
    assert node[: len(seeds)] == seeds.tolist(), 'seeds do not come first'
    if not disjoint:
        assert out.batch is None or out.batch.numel() == 0
        tree = [0] * len(node)
    else:
        tree = out.batch.tolist()
        assert len(tree) == len(node)
        assert tree[: len(seeds)] == list(range(len(seeds)))
    return node, tree


def _assert_first_occurrence(
    row: list[int], node: list[int], tree: list[int], num_seeds: int
) -> None:
    ids: dict[tuple[int, int], int] = {}
    for i, key in enumerate(zip(node, tree, strict=True)):
        assert i < num_seeds or key not in ids, f'node {key[0]} occurs twice'
        ids.setdefault(key, i)
    seen = num_seeds
    for r in row:
        assert 0 <= r <= seen, 'local ids are not by first occurrence'
        assert ids[node[r], tree[r]] == r, 'a row is not its first seed'
        seen = max(seen, r + 1)
    assert seen == len(node), 'a node has no edge'


def _assert_valid_column(
    count: int,
    edge: list[int],
    allowed: list[int],
    fanout: int,
    replace: bool,
) -> None:
    takes_all = fanout < 0 or (not replace and len(allowed) <= fanout)
    expected = len(allowed) if takes_all else fanout if allowed else 0
    assert count == expected, f'{count} edges instead of {expected}'
    if not edge:
        return
    assert set(edge) <= set(allowed), 'an edge is not a candidate'
    if takes_all:
        assert edge == allowed, 'not in the order of the graph'
    if not replace:
        assert len(set(edge)) == len(edge), 'an edge was selected twice'
