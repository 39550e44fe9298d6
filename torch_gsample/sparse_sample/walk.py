"""Walks of many steps along the edges of a ``SparseSample``.

They go from rows to columns: ``A.T`` walks against the direction of the edges.
Seeds and nodes of walks are positions in the matrix, edges are those of
:attr:`~SparseSample.edge_id`. Keys are drawn as in
:meth:`~SparseSample.individual_sample`.
"""

from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling as is_compiling

from torch_gsample import ops
from torch_gsample.ops import Walks
from torch_gsample.ops.formats import cumulate_argument
from torch_gsample.rng import current_program
from torch_gsample.sparse_sample.ascending import ascending_entries
from torch_gsample.sparse_sample.ids import ids_at
from torch_gsample.sparse_sample.parts import M, Parts
from torch_gsample.sparse_sample.select import edge_probs


def random_walk(
    matrix: Parts,
    seeds: Tensor,
    length: int,
    restart: float = 0.0,
    probs: Tensor | Parts | None = None,
) -> Walks:
    """Runs a random walk from each seed.

    See :func:`torch_gsample.ops.random_walk`.

    Args:
        seeds (torch.Tensor): int64 ``[num_seeds]``, rows; duplicates have
            independent walks.
        length (int): Number of steps.
        restart (float, optional): Probability to return to the seed, at each
            step.
        probs (torch.Tensor or SparseSample, optional): Unnormalised
            probabilities ``[num_edges]``; default: uniform.

    Returns:
        Walks: ``nodes``, int64 ``[num_seeds, length + 1]``, and ``edges``,
        int64 ``[num_seeds, length]``: the :attr:`edge_id` of each step, -1 for
        none. A walk stays at a node without an out-edge.

    Raises:
        ValueError: If the matrix is not square.

    Example:
        >>> from torch_gsample import SparseSample
        >>> A = SparseSample.from_edge_index(
        ...     torch.tensor([[0, 1, 2], [1, 2, 3]])
        ... )
        >>> A.random_walk(torch.tensor([0, 2]), 3).nodes
        tensor([[0, 1, 2, 3],
                [2, 3, 3, 3]])
    """
    layout = _square(matrix, 'random_walk').csr
    key, call_id = current_program()
    walks = ops.random_walk(
        layout.indptr,
        layout.indices,
        seeds,
        length,
        key=key,
        call_id=call_id,
        restart=restart,
        cum_weight=_walk_weights(matrix, 'random_walk', probs, seeds),
    )
    return _with_edge_ids(matrix, walks)


def node2vec_walk(
    matrix: Parts,
    seeds: Tensor,
    length: int,
    p: float,
    q: float,
    probs: Tensor | Parts | None = None,
) -> Walks:
    """Runs a node2vec walk from each seed.

    See :func:`torch_gsample.ops.node2vec_walk` for the distribution. On the
    CPU, a matrix with unsorted rows caches a sorted copy of their columns (4
    or 8 bytes per edge) once walks have made four steps per edge. Walks do not
    change.

    Args:
        seeds (torch.Tensor): int64 ``[num_seeds]``, rows.
        length (int): Number of steps.
        p (float): Return parameter.
        q (float): In-out parameter.
        probs (torch.Tensor or SparseSample, optional): Unnormalised
            probabilities ``[num_edges]``; default: uniform.

    Returns:
        Walks: See :meth:`random_walk`.

    Raises:
        ValueError: If the matrix is not square, or ``p`` or ``q`` is not
            positive.
    """
    layout = _square(matrix, 'node2vec_walk').csr
    # A layout computed by transposing has sorted rows.
    is_sorted, entries = layout.edge_id is not None, None
    if not (is_sorted or p == q == 1 or is_compiling() or seeds.is_cuda):
        entries = ascending_entries(layout, seeds.numel() * length)
    key, call_id = current_program()
    walks = ops.node2vec_walk(
        layout.indptr,
        layout.indices,
        seeds,
        length,
        p,
        q,
        key=key,
        call_id=call_id,
        is_sorted=is_sorted,
        cum_weight=_walk_weights(matrix, 'node2vec_walk', probs, seeds),
        ascending=entries,
    )
    return _with_edge_ids(matrix, walks)


def frontier_walk(matrix: Parts, seeds: Tensor, length: int) -> Walks:
    """Runs a multidimensional walk, which moves one of its walkers per step.

    See :func:`torch_gsample.ops.frontier_walk` for the distribution.

    Args:
        seeds (torch.Tensor): int64 ``[num_seeds]``, rows; each is the start of
            a walker, duplicates included.
        length (int): Number of steps of all walkers together.

    Returns:
        Walks: ``nodes``, int64 ``[length]``, the start of each step, and
        ``edges``, int64 ``[length]``, its :attr:`edge_id`; both are -1 if no
        edge leaves the frontier.

    Raises:
        ValueError: If the matrix is not square, or on a GPU.
    """
    layout = _square(matrix, 'frontier_walk').csr
    key, call_id = current_program()
    walks = ops.frontier_walk(
        layout.indptr, layout.indices, seeds, length, key=key, call_id=call_id
    )
    return _with_edge_ids(matrix, walks)


def visit_count(
    matrix: M,
    seeds: Tensor,
    num_walks: int,
    length: int,
    restart: float = 0.0,
) -> M:
    r"""Counts the visits of random walks from each seed to each node.

    Restarts and visits to the seed itself are not counted.

    Args:
        seeds (torch.Tensor): int64 ``[num_seeds]``, rows.
        num_walks (int): Number of walks from each seed.
        length (int): Number of steps of each walk.
        restart (float, optional): See :meth:`random_walk`.

    Returns:
        SparseSample: ``[num_rows, num_seeds]``. Values are counts, and edge
        ids are positions, as entries are not edges of the graph.

    Example:
        >>> from torch_gsample import SparseSample
        >>> A = SparseSample.from_edge_index(
        ...     torch.tensor([[0, 1, 2], [1, 2, 0]])
        ... )
        >>> A.visit_count(torch.tensor([0]), 5, 2).to_dense().T
        tensor([[0., 5., 5.]])
    """
    every: Any = matrix  # a matrix on disk overrides walks
    walks = every.random_walk(seeds.repeat(num_walks), length, restart)
    visited = walks.nodes[:, 1:]
    counted = (walks.edges >= 0) & (visited != walks.nodes[:, :1])
    out = count_visits(
        matrix._kind(), matrix.num_rows, seeds, num_walks, visited, counted
    )
    out.row_ids, out.col_ids = matrix.row_ids, seeds
    if matrix.row_ids is not None:
        out.col_ids = matrix.row_ids[seeds]
    return out


def count_visits(
    kind: type[M],
    num_nodes: int,
    seeds: Tensor,
    num_walks: int,
    visited: Tensor,
    counted: Tensor,
) -> M:
    """Counts the visits of walks to each node.

    Args:
        kind (Type[SparseSample]): The type of the result.
        num_nodes (int): Number of nodes.
        seeds (torch.Tensor): int64 ``[num_seeds]``.
        num_walks (int): Number of walks from each seed.
        visited (torch.Tensor): int64 ``[num_walks * num_seeds, length]``, the
            first walks of all seeds, then the second ones, and so on.
        counted (torch.Tensor): bool, of this shape: which visits count.
    """
    column = torch.arange(seeds.numel(), device=seeds.device)
    column = column.repeat(num_walks)[:, None]
    entry = (column * num_nodes + visited)[counted]
    entry, count = entry.unique(return_counts=True)
    return kind.from_coo(
        entry % num_nodes,
        entry // num_nodes,
        count.to(torch.get_default_dtype()),
        (num_nodes, seeds.numel()),
    )


def _square(matrix: M, name: str) -> M:
    if matrix.num_rows != matrix.num_cols:
        raise ValueError(
            f'{name}: the matrix must be square, as walks use its '
            f'columns as rows (got shape {list(matrix.shape)})'
        )
    return matrix


def _walk_weights(
    matrix: Parts, name: str, probs: Tensor | Parts | None, seeds: Tensor
) -> Tensor | None:
    if probs is None:
        return None
    layout, weight = matrix.csr, edge_probs(matrix, name, probs)
    cum_weight = cumulate_argument(
        name, 'probs', layout.indptr, weight, layout.edge_id
    )
    return (
        cum_weight
        if seeds.is_cuda == cum_weight.is_cuda
        else cum_weight.to(seeds.device)
    )


def _with_edge_ids(matrix: Parts, walks: Walks) -> Walks:
    ids, perm = matrix._edge_id, matrix.csr.edge_id
    if matrix.num_edges == 0 or ids is perm is None:
        return walks
    edges = walks.edges
    taken = ids_at(ids, ids_at(perm, edges.clamp(min=0)))
    return Walks(walks.nodes, torch.where(edges < 0, edges, taken))
