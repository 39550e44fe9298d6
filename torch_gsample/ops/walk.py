"""Random walks: first-order, and along a metapath."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.ops import _walk_arguments as _walk


class Walks(NamedTuple):
    """Walks, one row per seed.

    Args:
        nodes (torch.Tensor): int64 ``[num_seeds, length + 1]``, the nodes of
            each walk; the first column has the seeds.
        edges (torch.Tensor): int64 ``[num_seeds, length]``, the position in
            ``indices`` of the edge of each step; -1 for none.
    """

    nodes: Tensor
    edges: Tensor


def random_walk(
    indptr: Tensor,
    indices: Tensor,
    seeds: Tensor,
    length: int,
    *,
    key: Tensor,
    call_id: int = 0,
    restart: float = 0.0,
    cum_weight: Tensor | None = None,
    num_threads: int = 0,
) -> Walks:
    r"""Runs a random walk from each seed.

    The probability of a step from node :math:`v` to :math:`x` is

    .. math::
        P(x \mid v) = \frac{w_{vx}}{\sum_y w_{vy}}

    where the sum is over the entries of column ``v`` and all weights are 1
    without ``cum_weight``. In the :class:`~torch_gsample.CSC` of this package
    a column lists in-neighbours: pass the rows of the graph, its CSR, to walk
    along outgoing edges. A walk stays at a node without neighbours, or with
    all weights 0.

    With ``restart``, each step returns to the seed with that probability, as
    in `"Graph Convolutional Neural Networks for Web-Scale Recommender Systems"
    <https://arxiv.org/abs/1806.01973>`_ (PinSAGE) and `"Heterogeneous Graph
    Neural Network" <https://dl.acm.org/doi/10.1145/3292500.3330961>`_
    (HetGNN).

    Args:
        indptr (torch.Tensor): int32 or int64 ``[num_nodes + 1]``.
        indices (torch.Tensor): int32 or int64 ``[num_edges]``, the neighbours
            of each node.
        seeds (torch.Tensor): ``[num_seeds]``; duplicates have independent
            walks.
        length (int): Number of steps.
        key (torch.Tensor): int64 ``[1, 3]``, see
            :func:`torch_gsample.rng.make_key`.
        call_id (int, optional): Id of the draw in a program.
        restart (float, optional): Probability of a restart at each step.
        cum_weight (torch.Tensor, optional): A result of
            :func:`cumulate_weights` for the edge weights; default: uniform.
        num_threads (int, optional): Maximum number of threads; 0 for torch's
            number of threads.

    Returns:
        Walks: Nodes and edges; the edge of a restart is -1.

    Raises:
        IndexError: If a seed is not in the graph.
        TypeError: If a tensor has the wrong dtype.
        ValueError: If an argument is invalid; the message names the rule.
        RuntimeError: If a walk reads a malformed part of the graph.

    Example:
        >>> from torch_gsample.rng import make_key
        >>> indptr = torch.tensor([0, 1, 2, 3, 3])  # 0 -> 1 -> 2 -> 3
        >>> indices = torch.tensor([1, 2, 3])
        >>> nodes, edges = random_walk(
        ...     indptr, indices, torch.tensor([0, 2]), 3, key=make_key(0)
        ... )
        >>> nodes
        tensor([[0, 1, 2, 3],
                [2, 3, 3, 3]])
        >>> edges
        tensor([[ 0,  1,  2],
                [ 2, -1, -1]])
    """
    op = 'random_walk'
    device = _check.sampling_device(op, indptr, seeds)
    indptr, indices = _check.graph(op, indptr, indices, device)
    out = _check.call(
        torch.ops.gsample.random_walk.default,
        indptr,
        indices,
        _check.node_ids(op, 'seeds', seeds, indptr.numel() - 1, device),
        _walk.length(op, length),
        _check.random_key(op, key),
        _walk.call_id(op, call_id),
        restart=_restart(op, restart),
        cum_weight=_walk.weights(op, cum_weight, indptr, indices, device),
        num_threads=num_threads,
    )
    return Walks(*out)


def metapath_walk(
    indptr: Sequence[Tensor],
    indices: Sequence[Tensor],
    path: Sequence[int],
    seeds: Tensor,
    *,
    key: Tensor,
    call_id: int = 0,
    restart: float = 0.0,
    num_threads: int = 0,
) -> Walks:
    """Runs a random walk along a metapath from each seed.

    From `"metapath2vec: Scalable Representation Learning for Heterogeneous
    Networks" <https://dl.acm.org/doi/10.1145/3097983.3098036>`_. Step ``i``
    goes to a uniformly drawn entry of the node's column in relation
    ``path[i]``. A walk ends at a node without neighbours: the rest of its row
    is -1, as in PyG's ``MetaPath2Vec``. With probability ``restart``, it ends
    at each step; it cannot return to its seed, as the path determines the node
    type at each position.

    Args:
        indptr (List[torch.Tensor]): ``[num_nodes + 1]`` for each relation,
            int32 or int64.
        indices (List[torch.Tensor]): ``[num_edges]`` for each relation, int32
            or int64.
        path (List[int]): The relation of each step, at least one.
        seeds (torch.Tensor): ``[num_seeds]``, columns of the first relation of
            the path; duplicates have independent walks.
        key (torch.Tensor): int64 ``[1, 3]``, see
            :func:`torch_gsample.rng.make_key`.
        call_id (int, optional): Id of the draw in a program.
        restart (float, optional): Probability of an end at each step.
        num_threads (int, optional): Maximum number of threads; 0 for torch's
            number of threads.

    Returns:
        Walks: Nodes and edges, the latter as positions in the ``indices`` of
        their step's relation. Both are -1 after the end of a walk.

    Raises:
        IndexError: If a seed is not in the graph, or a relation of the path
            does not exist.
        TypeError: If a tensor has the wrong dtype, or the path has an item
            that is not an integer.
        ValueError: If an argument is invalid; the message names the rule.
        RuntimeError: If a walk reads a malformed part of a graph, or a walk
            reaches a node that is not a column of the next relation.

    Example:
        >>> from torch_gsample.rng import make_key
        >>> writes = torch.tensor([0, 1, 2]), torch.tensor([2, 0])
        >>> written_by = torch.tensor([0, 1, 1, 2]), torch.tensor([1, 0])
        >>> indptr, indices = zip(writes, written_by)
        >>> nodes, edges = metapath_walk(
        ...     indptr, indices, [0, 1, 0], torch.tensor([0, 1]),
        ...     key=make_key(0),
        ... )
        >>> nodes  # author, paper, author, paper
        tensor([[0, 2, 0, 2],
                [1, 0, 1, 0]])
    """
    op = 'metapath_walk'
    if len(indptr) != len(indices):
        raise ValueError(
            f"{op}: 'indptr' and 'indices' must have one item for each "
            f'relation (got {len(indptr)} and {len(indices)})'
        )
    first = indptr[0] if indptr else None
    device = _check.sampling_device(op, first, seeds)
    graphs = _one_dtype(
        [
            _check.graph(op, *graph, device)
            for graph in zip(indptr, indices, strict=True)
        ],
        device,
    )
    path = _path(op, path, len(graphs))
    num_cols = graphs[path[0]][0].numel() - 1
    out = _check.call(
        torch.ops.gsample.metapath_walk.default,
        [graph[0] for graph in graphs],
        [graph[1] for graph in graphs],
        path,
        _check.node_ids(op, 'seeds', seeds, num_cols, device),
        _check.random_key(op, key),
        _walk.call_id(op, call_id),
        restart=_restart(op, restart),
        num_threads=num_threads,
    )
    return Walks(*out)


def _restart(op: str, restart: float) -> float:
    if not 0 <= restart <= 1:
        raise ValueError(
            f"{op}: 'restart' must be a probability (got {restart})"
        )
    return float(restart)


def _path(op: str, path: Sequence[int], num_relations: int) -> list[int]:
    path = list(path)
    if not path:
        raise ValueError(f"{op}: 'path' must have at least one step")
    for relation in path:
        if isinstance(relation, bool) or not isinstance(relation, int):
            raise TypeError(
                f"{op}: 'path' must hold indices of relations "
                f'(got {relation!r})'
            )
        if not 0 <= relation < num_relations:
            raise IndexError(
                f"{op}: 'path' must hold relations in [0, {num_relations}) "
                f'(got {relation})'
            )
    return path


def _one_dtype(
    graphs: list[tuple[Tensor, Tensor]], device: torch.device
) -> list[tuple[Tensor, Tensor]]:
    """Converts graphs to common dtypes, as the kernel has one for all."""

    def alike(parts: list[Tensor]) -> list[Tensor]:
        wide = any(part.dtype == torch.int64 for part in parts)
        return [_check.widened(p, device) for p in parts] if wide else parts

    indptr, indices = zip(*graphs, strict=True) if graphs else ((), ())
    return list(zip(alike(list(indptr)), alike(list(indices)), strict=True))


@torch.library.register_fake('gsample::random_walk')
def _(indptr, indices, seeds, length, *_, **__):
    return _walk.empty_walks(seeds, length)


@torch.library.register_fake('gsample::metapath_walk')
def _(indptr, indices, path, seeds, key, call_id=0, **_):
    return _walk.empty_walks(seeds, len(path))
