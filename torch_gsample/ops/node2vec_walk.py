"""Second-order random walks of node2vec."""

import math

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.ops import _walk_arguments as _walk
from torch_gsample.ops.walk import Walks


def node2vec_walk(
    indptr: Tensor,
    indices: Tensor,
    seeds: Tensor,
    length: int,
    p: float,
    q: float,
    *,
    key: Tensor,
    call_id: int = 0,
    is_sorted: bool = False,
    cum_weight: Tensor | None = None,
    num_threads: int = 0,
    ascending: Tensor | None = None,
) -> Walks:
    r"""Runs a second-order random walk (node2vec) from each seed.

    From `"node2vec: Scalable Feature Learning for Networks"
    <https://arxiv.org/abs/1607.00653>`_. A walk from :math:`t` to :math:`v`
    continues to :math:`x` with probability

    .. math::
        P(x \mid t, v) \propto w_{vx} \cdot \begin{cases}
            1 / p & x = t \\
            1     & x \text{ is a neighbour of } t \\
            1 / q & \text{otherwise}
        \end{cases}

    where the neighbours of :math:`t` are the entries of its column, and all
    :math:`w` are 1 without ``cum_weight``. The three factors are divided by
    the largest of them and rounded down to multiples of :math:`2^{-32}`, but
    not to 0; with these factors, the distribution is exact. The first step is
    that of :func:`random_walk`, and a walk stays at a node without neighbours.

    Candidates are drawn as first-order steps and accepted by rejection
    sampling, which is fast unless ``p`` is far below 1 and ``q`` (see
    `"KnightKing: A Fast Distributed Graph Random Walk Engine"
    <https://dl.acm.org/doi/10.1145/3341301.3359634>`_).

    Args:
        indptr (torch.Tensor): int32 or int64 ``[num_nodes + 1]``.
        indices (torch.Tensor): int32 or int64 ``[num_edges]``, the neighbours
            of each node.
        seeds (torch.Tensor): ``[num_seeds]``; duplicates have independent
            walks.
        length (int): Number of steps.
        p (float): Return parameter; walks return less with a larger one.
        q (float): In-out parameter; walks stay closer with a larger one.
        key (torch.Tensor): int64 ``[1, 3]``, see
            :func:`torch_gsample.rng.make_key`.
        call_id (int, optional): Id of the draw in a program.
        is_sorted (bool, optional): Whether the entries of each column ascend,
            as in a graph from a sorted ``edge_index``. Columns are then
            searched by binary instead of linear search, which changes no walk.
            It is not checked; if it is wrong, neighbours are missed.
        cum_weight (torch.Tensor, optional): A result of
            :func:`cumulate_weights` for the edge weights; default: uniform.
        num_threads (int, optional): Maximum number of threads; 0 for torch's
            number of threads.
        ascending (torch.Tensor, optional): ``[num_edges]``, of the dtype of
            ``indices``: a sorted copy of the entries of each column for the
            search. It changes no walk.

    Returns:
        Walks: Nodes and edges.

    Raises:
        IndexError: If a seed is not in the graph.
        TypeError: If a tensor has the wrong dtype.
        ValueError: If an argument is invalid; the message names the rule.
        RuntimeError: If a walk reads a malformed part of the graph.

    Example:
        >>> from torch_gsample.rng import make_key
        >>> indptr = torch.tensor([0, 2, 4, 6])  # a triangle
        >>> indices = torch.tensor([1, 2, 0, 2, 0, 1])
        >>> nodes, edges = node2vec_walk(
        ...     indptr, indices, torch.tensor([0]), 6, 1e9, 1, key=make_key(1)
        ... )
        >>> bool((nodes[:, 2:] == nodes[:, :-2]).any())  # it never returns
        False
    """
    op = 'node2vec_walk'
    device = _check.sampling_device(op, indptr, seeds)
    indptr, indices = _check.graph(op, indptr, indices, device)
    for name, value in (('p', p), ('q', q)):
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(
                f"{op}: '{name}' must be positive and finite (got {value})"
            )
    out = _check.call(
        torch.ops.gsample.node2vec_walk.default,
        indptr,
        indices,
        _check.node_ids(op, 'seeds', seeds, indptr.numel() - 1, device),
        _walk.length(op, length),
        float(p),
        float(q),
        _check.random_key(op, key),
        _walk.call_id(op, call_id),
        is_sorted=is_sorted,
        cum_weight=_walk.weights(op, cum_weight, indptr, indices, device),
        num_threads=num_threads,
        ascending=_ascending(op, ascending, indices, device),
    )
    return Walks(*out)


def _ascending(
    op: str, ascending: Tensor | None, indices: Tensor, device: torch.device
) -> Tensor | None:
    if ascending is None:
        return None
    ascending = _check.integer_vector(op, 'ascending', ascending, device, True)
    if ascending.dtype != indices.dtype:
        raise TypeError(
            f"{op}: 'ascending' must be of the dtype of 'indices', "
            f'{indices.dtype} (got {ascending.dtype})'
        )
    if ascending.numel() != indices.numel():
        raise ValueError(
            f"{op}: 'ascending' must have {indices.numel()} elements, one for "
            f'each edge (got {ascending.numel()})'
        )
    return ascending


@torch.library.register_fake('gsample::node2vec_walk')
def _(indptr, indices, seeds, length, *_, **__):
    return _walk.empty_walks(seeds, length)
