"""GraphSAINT: unbiased training on sampled subgraphs."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor

from torch_gsample.rng import make_key, program_scope
from torch_gsample.sparse_sample import SparseSample


def saint_node(A: SparseSample, k: int) -> SparseSample:
    r"""Samples nodes and induces their subgraph.

    Nodes are drawn ``k`` times, with replacement, by the squared norm

    .. math:: P(u) \propto \sum_v A_{uv}^2

    From `"GraphSAINT: Graph Sampling Based Inductive Learning Method"
    <https://arxiv.org/abs/1907.04931>`_ (ICLR 2020), where ``A`` is
    normalised: ``A.div(A.sum(dim=0), dim=0)``.

    Args:
        A (SparseSample): ``[N, N]``.
        k (int): Number of draws.

    Returns:
        SparseSample: The subgraph of at most ``k`` nodes.

    Example:
        >>> A = SparseSample.from_edge_index(torch.tensor([[0, 1], [1, 0]]))
        >>> saint_node(A, k=50).shape
        (2, 2)
    """
    probs = (A**2).sum(dim=1)
    drawn = A.collective_sample(k, probs, replace=True)
    return A.induce(drawn.row().unique())


def saint_edge(A: SparseSample, k: int) -> SparseSample:
    r"""Samples edges and induces the subgraph of their ends.

    Edges are drawn ``k`` times, with replacement, by

    .. math:: P(u \to v) \propto \frac{1}{\deg(u)} + \frac{1}{\deg(v)}

    See :func:`saint_node` for the paper. In a directed graph, :math:`\deg(u)`
    counts out-edges and :math:`\deg(v)` in-edges.

    Args:
        A (SparseSample): ``[N, N]``.
        k (int): Number of draws.

    Returns:
        SparseSample: The subgraph of at most ``2 k`` nodes.

    Example:
        >>> A = SparseSample.from_edge_index(torch.tensor([[0, 1], [1, 0]]))
        >>> saint_edge(A, k=1).shape
        (2, 2)
    """
    u, v = _ends(A)
    probs = 1 / A.degree(1)[u] + 1 / A.degree(0)[v]
    one_column = torch.arange(u.numel(), device=u.device), torch.zeros_like(u)
    drawn = SparseSample.from_coo(*one_column, shape=(u.numel(), 1))
    edge = drawn.individual_sample(k, probs, replace=True).edge_id
    return A.induce(torch.cat([u[edge], v[edge]]).unique())


def _ends(A: SparseSample) -> tuple[Tensor, Tensor]:
    """Returns rows and columns of edges, if weights would fit in memory."""
    if A._disk is not None:
        raise ValueError(
            'saint_edge: weights of all edges would be in memory, and the '
            "matrix is on disk: use 'loader.GraphSAINTEdgeSampler', which "
            'draws edges by the same probabilities there'
        )
    return A.coo()


def saint_walk(A: SparseSample, roots: Tensor, length: int) -> SparseSample:
    """Walks from roots and induces the subgraph of all visited nodes.

    See :func:`saint_node` for the paper, where roots are drawn uniformly.

    Args:
        A (SparseSample): ``[N, N]``.
        roots (torch.Tensor): int64 ``[num_roots]``.
        length (int): Number of steps.

    Returns:
        SparseSample: The subgraph of at most ``num_roots * (length + 1)``
        nodes.

    Example:
        >>> A = SparseSample.from_edge_index(torch.tensor([[0, 1], [1, 0]]))
        >>> saint_walk(A, torch.tensor([0]), length=1).shape
        (2, 2)
    """
    walks = A.random_walk(roots, length)
    return A.induce(walks.nodes.unique())


def saint_frontier(A: SparseSample, roots: Tensor, steps: int) -> SparseSample:
    r"""Walks with a frontier and induces the subgraph of all visited nodes.

    The walkers start at the roots. Each step moves one of them to a random
    neighbour: the walker at :math:`u` with probability

    .. math::
        P(u) = \frac{\deg(u)}{\sum_{v \in \text{frontier}} \deg(v)}

    This is the multi-dimensional random walk sampler of the paper, see
    :func:`saint_node`, where roots are drawn uniformly, and ``steps`` is the
    budget minus the roots. Each step depends on the previous one, so one CPU
    thread runs them (see :func:`torch_gsample.ops.frontier_walk`).

    Args:
        A (SparseSample): ``[N, N]``.
        roots (torch.Tensor): int64 ``[num_roots]``; duplicates are separate
            walkers.
        steps (int): Number of steps, of all walkers together.

    Returns:
        SparseSample: The subgraph of the roots and all start nodes of steps,
        at most ``num_roots + steps`` nodes.

    Example:
        >>> A = SparseSample.from_edge_index(torch.tensor([[0, 1], [1, 0]]))
        >>> saint_frontier(A, torch.tensor([0]), steps=2).shape
        (2, 2)
    """
    left = A.frontier_walk(roots, steps).nodes
    return A.induce(torch.cat([roots, left[left >= 0]]).unique())


class SaintNorm(NamedTuple):
    """Factors that make sums over subgraphs unbiased.

    Args:
        node (torch.Tensor): ``[N]``, the factor of each node's loss.
        edge (torch.Tensor): ``[num_edges]``, the factor of each message, by
            :attr:`SparseSample.edge_id`.
    """

    node: Tensor
    edge: Tensor


def saint_norm(
    A: SparseSample,
    draw: Callable[[], SparseSample],
    num_draws: int | None = None,
    coverage: float | None = None,
    seed: int | None = None,
) -> SaintNorm:
    r"""Estimates the normalisation of a sampler from samples in advance.

    If :math:`C_v` of :math:`n` subgraphs have node :math:`v` and
    :math:`C_{uv}` have edge :math:`u \to v`, the factors

    .. math::
        \frac{1}{\lambda_v} = \frac{n}{N \, C_v}, \qquad
        \frac{1}{\alpha_{uv}} = \frac{C_v}{C_{uv}}

    make :math:`\sum_v L_v / \lambda_v` over a subgraph an estimate of the mean
    loss, and :math:`\sum_u A_{uv} x_u / \alpha_{uv}` one of the aggregation.
    Nodes and edges in no subgraph count as if in one.

    Args:
        A (SparseSample): ``[N, N]``, the whole graph.
        draw (Callable): Samples a subgraph of ``A``.
        num_draws (int, optional): :math:`n`.
        coverage (float, optional): Instead of ``num_draws``: sampling stops
            when the subgraphs have ``coverage * N`` nodes in total.
        seed (int, optional): Makes the draws of ``draw`` a function of this
            seed and the number of previous calls.

    Returns:
        SaintNorm: The factors.

    Raises:
        ValueError: If not exactly one of both is set, it is not positive, or
            a subgraph is empty, so that coverage does not increase.

    Example:
        >>> A = SparseSample.from_edge_index(torch.tensor([[0, 1], [1, 0]]))
        >>> saint_norm(A, lambda: saint_edge(A, k=1), num_draws=10)
        SaintNorm(node=tensor([0.5000, 0.5000]), edge=tensor([1., 1.]))
    """
    bound = num_draws if coverage is None else coverage
    if bound is None or None not in (num_draws, coverage):
        raise ValueError(
            "saint_norm: one of 'num_draws' and 'coverage' must be given"
        )
    if not bound > 0:
        name = 'num_draws' if coverage is None else 'coverage'
        raise ValueError(
            f"saint_norm: '{name}' must be positive (got {bound})"
        )
    if coverage is not None:
        bound *= A.num_cols
    node_count = torch.zeros(A.num_cols, device=A.device)
    edge_count = torch.zeros(A.num_edges, device=A.device)
    drawn = covered = 0
    while (drawn if coverage is None else covered) < bound:
        with nullcontext() if seed is None else _keyed(seed, drawn):
            subgraph = draw()
        node_count[subgraph.col_ids] += 1
        edge_count[subgraph.edge_id] += 1
        if subgraph.num_cols == 0 and coverage is not None:
            raise ValueError(
                "saint_norm: 'draw' must return nodes to reach 'coverage' "
                '(got an empty subgraph)'
            )
        drawn, covered = drawn + 1, covered + subgraph.num_cols
    node_count, edge_count = node_count.clamp(min=1), edge_count.clamp(min=1)
    col = A.coo()[1]
    into = torch.empty_like(col).index_copy(0, A.edge_id, col)
    return SaintNorm(
        drawn / (A.num_cols * node_count), node_count[into] / edge_count
    )


def _keyed(seed: int, number: int) -> AbstractContextManager[None]:
    return program_scope(make_key(seed, 0, number))


def saint_normalize(subgraph: SparseSample, norm: SaintNorm) -> SparseSample:
    r"""Divides each edge :math:`u \to v` by :math:`\alpha_{uv}`.

    Args:
        subgraph (SparseSample): A sampled subgraph.
        norm (SaintNorm): The result of :func:`saint_norm`.
    """
    return subgraph * subgraph.with_value(norm.edge[subgraph.edge_id])
