"""Selection of edges and rows of a ``SparseSample``: random or by value.

Every draw is a function of a key. Inside
:func:`torch_gsample.rng.program_scope`, where samplers run programs, it is the
key of the batch, and draws are numbered. Elsewhere, each call draws a key from
torch's default generator.
"""

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling as is_compiling

from torch_gsample import ops
from torch_gsample.ops._check import as_int64, detached, is_known
from torch_gsample.ops.formats import cumulate_argument, positive_weights
from torch_gsample.rng import current_program
from torch_gsample.sparse_sample.arithmetic import aligned_values
from torch_gsample.sparse_sample.errors import call_as, check_device
from torch_gsample.sparse_sample.extract import (
    compact,
    get,
    masked,
    take_rows,
    with_edges,
)
from torch_gsample.sparse_sample.node_probs import draw_rows
from torch_gsample.sparse_sample.parts import M, Parts
from torch_gsample.sparse_sample.reduce import degree


def individual_sample(
    matrix: M,
    k: int,
    probs: Tensor | Parts | None = None,
    replace: bool = False,
) -> M:
    """Samples up to ``k`` edges of each column independently.

    Columns of the same node draw the same edges, as in
    :class:`~torch_gsample.NeighborSampler`.

    Args:
        k (int): Number of edges per column; -1 selects all. A column of at
            most ``k`` edges has all of them selected.
        probs (torch.Tensor or SparseSample, optional): Unnormalised
            probabilities ``[num_edges]``; default: uniform. An edge of
            probability 0 is never sampled.
        replace (bool, optional): Whether to sample with replacement.

    Raises:
        ValueError: If a probability is negative or not finite, or their number
            is not the number of edges.

    Example:
        >>> from torch_gsample import SparseSample
        >>> A = SparseSample.from_coo(
        ...     torch.tensor([0, 1, 2]), torch.tensor([0, 0, 1])
        ... )
        >>> A.individual_sample(1).degree(dim=0)
        tensor([1, 1, 0])
    """
    layout = matrix.csc
    cum_weight = None
    if probs is not None:
        cum_weight = cumulate_argument(
            'individual_sample',
            'probs',
            layout.indptr,
            edge_probs(matrix, 'individual_sample', probs),
            layout.edge_id,
        )
    key, call_id = current_program()
    indptr, edge = call_as(
        'individual_sample',
        ops.sample_columns,
        layout.indptr,
        k,
        key=key,
        call_id=call_id,
        id=matrix.col_ids,
        cum_weight=cum_weight,
        replace=replace,
    )
    return with_edges(matrix, indptr, edge)


def edge_probs(matrix: Parts, name: str, probs: Tensor | Parts) -> Tensor:
    """Returns the probabilities of edges, in the order of the values."""
    if isinstance(probs, Parts):
        probs = aligned_values(matrix, name, probs)
    size = matrix.num_edges
    if probs.dim() != 1 or is_known(probs.shape[0] != size):
        raise ValueError(
            f"{name}: 'probs' must have {matrix.num_edges} elements, one "
            f'for each edge (got shape {list(probs.shape)})'
        )
    check_device(name, matrix.device, probs)
    return detached(probs)


def collective_sample(
    matrix: M,
    k: int,
    node_probs: Tensor | None = None,
    replace: bool = False,
) -> M:
    """Samples ``k`` rows for all columns together.

    The default of ``node_probs`` differs from gSampler's paper (SOSP 2023),
    where the probability of a row is proportional to its number of edges: that
    is ``A.collective_sample(k, A.degree(dim=1))`` here.

    Args:
        k (int): Number of rows. At most ``k`` candidates are all selected.
        node_probs (torch.Tensor, optional): Unnormalised probabilities
            ``[num_rows]``; default: uniform over the rows with edges. A row of
            probability 0 is never sampled.
        replace (bool, optional): Whether to sample with replacement; each draw
            then becomes a row.

    Returns:
        SparseSample: The sampled rows with edges.

    Raises:
        ValueError: If a probability is negative or not finite, their number is
            not the number of rows, or all of them are 0.
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 0:
        raise ValueError(
            "collective_sample: 'k' must be an integer and not negative "
            f'(got {k!r})'
        )
    if node_probs is None:
        rows = ops.unique_nodes(matrix._index(1), matrix.num_rows)[0]
        cum_weight = None
    else:
        rows, cum_weight = _row_candidates(matrix, node_probs)
    rows = draw_rows(rows, k, cum_weight, replace)
    return compact(take_rows(matrix, rows))


def _row_candidates(matrix: Parts, probs: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the rows of positive probability, and cumulated weights."""
    num_rows = matrix.num_rows
    if probs.dim() != 1 or is_known(probs.shape[0] != num_rows):
        raise ValueError(
            f"collective_sample: 'node_probs' must have {num_rows} "
            f'elements, one for each row (got shape {list(probs.shape)})'
        )
    if not is_known(probs.shape[0] == num_rows):
        probs = probs.view(num_rows)  # compared at run time
    check_device('collective_sample', matrix.device, probs)
    rows, cum_weight = call_as(
        'collective_sample',
        positive_weights,
        detached(probs),
        'node_probs',
    )
    if not is_compiling() and rows.numel() == 0 and matrix.num_edges > 0:
        raise ValueError(
            "collective_sample: 'node_probs' must not be all zero"
        )
    return rows, cum_weight


def random_walk_step(
    matrix: M, nodes: Tensor, probs: Tensor | None = None
) -> Tensor:
    """Moves each walker against the direction of an edge.

    Walkers move independently.

    Args:
        nodes (torch.Tensor): int64 ``[num_walkers]``, positions of
            columns, as in ``A[:, nodes]``.
        probs (torch.Tensor, optional): ``[num_edges]``, unnormalised.

    Returns:
        torch.Tensor: int64 ``[num_walkers]``, positions of rows (whose nodes
        are in ``row_ids``, if set). A walker in a column without edges stays.
    """
    if probs is not None:
        matrix = matrix._of_value(
            edge_probs(matrix, 'random_walk_step', probs)
        )
    steps = get(matrix, (slice(None), nodes))
    steps.col_ids = None  # walkers at one node draw independently
    weights = None if probs is None else steps.value
    steps = individual_sample(steps, 1, weights)
    out = nodes.to(torch.int64, copy=True)
    out[steps._index(0)] = as_int64(steps._index(1))
    return out


def top(matrix: M, k: int | Tensor, by: Tensor | None = None) -> M:
    """Selects the ``k`` largest edges of each column.

    Ties are resolved in favour of the first edge.

    Args:
        k (int or torch.Tensor): Number of edges per column: a number, or int64
            ``[num_cols]``. A column of at most ``k`` edges has all of them
            selected.
        by (torch.Tensor, optional): The key to compare, ``[num_edges]``;
            default: the values.

    Raises:
        ValueError: If ``by`` or ``k`` has the wrong length.

    Example:
        >>> from torch_gsample import SparseSample
        >>> A = SparseSample.from_coo(
        ...     torch.tensor([0, 1, 2, 0]),
        ...     torch.tensor([0, 0, 0, 1]),
        ...     torch.tensor([1., 3., 2., 5.]),
        ... )
        >>> A.top(2).to_dense()[:, :2]
        tensor([[0., 5.],
                [3., 0.],
                [2., 0.]])
    """
    by = (matrix.values() if by is None else by).detach()
    if by.shape != (matrix.num_edges,):
        raise ValueError(
            f"top: 'by' must have {matrix.num_edges} elements, one for each "
            f'edge (got shape {list(by.shape)})'
        )
    column, count = matrix._index(0), degree(matrix, 0)
    if isinstance(k, Tensor):
        if k.shape != count.shape:
            raise ValueError(
                f"top: 'k' must have {matrix.num_cols} elements, one for "
                f'each column (got shape {list(k.shape)})'
            )
        k = k[column]
    order = by.argsort(descending=True, stable=True)
    order = order[column[order].argsort(stable=True)]
    start = count.cumsum(0) - count
    rank = torch.empty_like(order)
    place = torch.arange(order.numel(), device=order.device)
    rank[order] = place - start[column[order]]
    return masked(matrix, rank < k)
