"""Random graphs for benchmarks and tests: fast and reproducible."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from torch_gsample import ops
from torch_gsample.csc import CSC
from torch_gsample.ops import _check
from torch_gsample.ops.formats import index_widths


def power_law(
    num_nodes: int,
    num_edges: int,
    max_degree: int,
    seed: int = 0,
    *,
    exponent: float = 1.5,
    index_dtype: torch.dtype | None = None,
) -> CSC:
    r"""Draws a configuration model with truncated Pareto degrees.

    Degrees are the quantiles of :math:`P(D > d) \propto d^{-\alpha}` cut off
    at ``max_degree``, scaled to the number of edges and assigned to the nodes
    at random. In- and out-degree of a node are equal, as in an undirected
    graph; the ends of edges are matched by a uniform permutation (Molloy &
    Reed, 1995), so loops and repeated edges are possible.

    Args:
        num_nodes (int): Number of nodes.
        num_edges (int): Number of directed edges.
        max_degree (int): The largest degree.
        seed (int, optional): Seed of all draws.
        exponent (float, optional): :math:`\alpha`; smaller is more skewed.
        index_dtype (torch.dtype, optional): int32 or int64; default: int32 if
            it suffices.

    Raises:
        ValueError: If the degrees cannot add up to ``num_edges``.

    Example:
        >>> graph = power_law(1_000, 20_000, 500)
        >>> graph.num_edges, int(graph.indptr.diff().max())
        (20000, 500)
    """
    indptr, _, _ = _power_law_columns(
        'power_law', num_nodes, num_edges, max_degree, seed, exponent
    )
    wide, wide_indices = index_widths(
        'power_law', num_edges, num_nodes, index_dtype
    )
    indptr = indptr if wide else indptr.to(torch.int32)
    dtype = torch.int64 if wide_indices else torch.int32
    indices = ops.configuration_model(indptr, seed, dtype)
    return CSC(indptr, indices, num_nodes)


def power_law_edges(
    num_nodes: int,
    num_edges: int,
    max_degree: int,
    seed: int = 0,
    *,
    exponent: float = 1.5,
    batch_size: int = 1 << 20,
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    r"""Draws a graph like that of :func:`power_law` batch by batch.

    In-degrees are the same. The source of each edge is drawn independently,
    with a probability proportional to its degree (Chung & Lu, 2002), so
    out-degrees equal those of :func:`power_law` only in expectation.

    Args:
        num_nodes (int): Number of nodes.
        num_edges (int): Number of directed edges.
        max_degree (int): The largest in-degree.
        seed (int, optional): Seed of all draws.
        exponent (float, optional): See :func:`power_law`.
        batch_size (int, optional): Number of edges per batch; it changes no
            edge.

    Yields:
        Tuple[torch.Tensor, torch.Tensor]: int64 sources and destinations of a
        batch; the latter ascend from batch to batch.

    Raises:
        ValueError: If the degrees cannot add up to ``num_edges``.

    Example:
        >>> batches = power_law_edges(100, 2_000, 50, batch_size=1_500)
        >>> [len(row) for row, col in batches]
        [1500, 500]
    """
    indptr, degree, deal = _power_law_columns(
        'power_law_edges', num_nodes, num_edges, max_degree, seed, exponent
    )
    # Ends of edges are numbered by the rank of their node, and found by the
    # run of equal degrees, of which there are few.
    node = torch.empty_like(deal)
    node[deal] = torch.arange(num_nodes, dtype=deal.dtype)
    value, count = degree.unique_consecutive(return_counts=True)
    stop, rank = (value * count).cumsum(0), count.cumsum(0) - count
    begin = stop - value * count
    # The run at the begin of each of 2^20 parts: a search that starts there
    # is at its end.
    size = -(-num_edges // (1 << 20))
    guess = torch.searchsorted(
        stop, torch.arange(0, num_edges, size), right=True
    )
    key = torch.tensor([[seed, 0, 0]])
    for first in range(0, num_edges, batch_size):
        last = min(first + batch_size, num_edges)
        drawn = ops.random_uniform(torch.arange(first, last), key=key)
        end = drawn.mul_(num_edges).long().clamp_(max=num_edges - 1)
        run = guess.index_select(0, end // size)
        while bool((late := stop.index_select(0, run) <= end).any()):
            run += late
        within = end - begin.index_select(0, run)
        within //= value.index_select(0, run)
        within += rank.index_select(0, run)
        row = node.index_select(0, within).long()
        ends = torch.tensor([first, last - 1])
        low, high = (torch.searchsorted(indptr, ends, right=True) - 1).tolist()
        counts = indptr[low : high + 2].clamp(first, last).diff()
        col = torch.repeat_interleave(torch.arange(low, high + 1), counts)
        yield row, col


def _power_law_columns(
    name: str,
    num_nodes: int,
    num_edges: int,
    max_degree: int,
    seed: int,
    exponent: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Deals degrees to nodes by chance.

    Returns:
        Tuple[torch.Tensor, torch.Tensor, torch.Tensor]: int64 ``indptr``
        ``[num_nodes + 1]``, the degrees by rank, and the rank of each node.

    Raises:
        ValueError: If the degrees cannot add up to ``num_edges``.
    """
    _check.count(name, 'num_edges', num_edges, 0)
    _check.count(name, 'max_degree', max_degree)
    if num_nodes <= 0 or exponent <= 0:
        raise ValueError(
            f"{name}: 'num_nodes' and 'exponent' must be positive (got "
            f'{num_nodes} and {exponent})'
        )
    if not num_nodes <= num_edges <= num_nodes * max_degree:
        raise ValueError(
            f"{name}: 'num_edges' must be from {num_nodes} (1 a node) to "
            f'{num_nodes * max_degree} (max_degree a node) (got {num_edges})'
        )
    degree = _pareto_degrees(num_nodes, num_edges, max_degree, exponent)
    # A configuration model of degrees 1 is a uniform permutation.
    deal = ops.configuration_model(torch.arange(num_nodes + 1), seed + 1)
    indptr = torch.zeros(num_nodes + 1, dtype=torch.int64)
    torch.cumsum(degree[deal], 0, out=indptr[1:])
    return indptr, degree, deal


def _pareto_degrees(
    num_nodes: int, num_edges: int, max_degree: int, exponent: float
) -> torch.Tensor:
    """Returns descending degrees of sum ``num_edges``, int64."""

    def quantiles(smallest: float, count: int) -> np.ndarray:
        u = (np.arange(count) + 0.5) / count
        tail = (smallest / max_degree) ** exponent
        return smallest * (tail + u * (1 - tail)) ** (-1 / exponent)

    low, high = 1e-6, float(max_degree)
    for _ in range(60):  # the smallest degree under which the mean is right
        middle = (low * high) ** 0.5
        if quantiles(middle, 1 << 16).mean() * num_nodes > num_edges:
            high = middle
        else:
            low = middle
    wanted = np.maximum(quantiles(low, num_nodes), 1)
    total = np.cumsum(wanted - 1)
    scale = (num_edges - num_nodes) / max(total[-1], 1)
    ends = np.floor(total * scale + 0.5).astype(np.int64)
    degree = np.diff(ends, prepend=0) + 1
    degree[0] = min(max_degree, num_edges - num_nodes + 1)
    degree = np.minimum(degree, max_degree)
    missing = int(num_edges - degree.sum())
    # Rounding leaves a few edges too many or too few: from the lowest degree
    # up, nodes take what there is room for.
    room = (max_degree - degree if missing > 0 else degree - 1)[:0:-1]
    filled = np.minimum(room.cumsum(), abs(missing))
    degree[:0:-1] += np.sign(missing) * np.diff(filled, prepend=0)
    return torch.from_numpy(degree)


def rmat(
    scale: int,
    num_edges: int,
    quadrants: Sequence[float] = (0.57, 0.19, 0.19, 0.05),
    seed: int = 0,
    *,
    index_dtype: torch.dtype | None = None,
) -> CSC:
    """Draws an R-MAT graph of ``2 ** scale`` nodes.

    Chakrabarti, Zhan & Faloutsos, "R-MAT: A Recursive Model for Graph
    Mining", SDM 2004; the default quadrants are those of Graph500.

    Args:
        scale (int): Logarithm of the number of nodes, at most 40.
        num_edges (int): Number of edges; repeated ones are kept.
        quadrants (List[float], optional): Probabilities of the four
            quadrants.
        seed (int, optional): Seed of all draws.
        index_dtype (torch.dtype, optional): int32 or int64; default: int32 if
            it suffices.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        >>> graph = rmat(10, 5_000)
        >>> graph.num_cols, graph.num_edges
        (1024, 5000)
    """
    _check.count('rmat', 'scale', scale, 0)
    if not 0 <= scale <= 40:
        raise ValueError(f"rmat: 'scale' must be in [0, 40] (got {scale})")
    if num_edges < 0:
        raise ValueError(
            f"rmat: 'num_edges' must not be negative (got {num_edges})"
        )
    valid = len(quadrants) == 4 and min(quadrants) >= 0
    if not valid or abs(sum(quadrants) - 1) > 1e-6:
        raise ValueError(
            f"rmat: 'quadrants' must be four probabilities of sum 1 (got "
            f'{list(quadrants)})'
        )
    row, col = ops.rmat_edges(scale, num_edges, quadrants, seed)
    graph = CSC.from_coo(
        row, col, 1 << scale, 1 << scale, index_dtype=index_dtype
    )
    return CSC(graph.indptr, graph.indices, graph.num_rows)
