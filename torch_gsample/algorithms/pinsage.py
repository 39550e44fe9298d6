"""PinSAGE: the nodes that random walks visit most."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.rng import current_program
from torch_gsample.sparse_sample import SparseSample
from torch_gsample.sparse_sample.walk import count_visits

#: Source type, relation, destination type.
EdgeType = tuple[str, str, str]


def pinsage(
    A: SparseSample | Mapping[EdgeType, SparseSample],
    seeds: Tensor,
    k: int,
    num_walks: int,
    length: int,
    restart: float = 0.5,
    metapath: Sequence[EdgeType] | None = None,
) -> SparseSample:
    r"""Finds the ``k`` most important nodes of each seed (PinSAGE).

    The importance of :math:`u` for the seed :math:`v` is the number of visits
    to :math:`u` by walks that restart at :math:`v`. The weights of importance
    pooling are normalised over the top ``k``:

    .. math::
        \alpha_{uv} = \frac{\mathrm{visits}_v(u)}
            {\sum_{w \in \mathrm{top}_k(v)} \mathrm{visits}_v(w)}

    Walks go along edges; pass ``A.T`` for the other direction. For items that
    users connect, pass an item-item matrix, or one with both directions.

    With a ``metapath``, such as item to user and user to item, a step of a
    walk is the whole path through the relations of a heterogeneous graph, and
    visits count at its end. A walk ends if the path cannot continue.

    From `"Graph Convolutional Neural Networks for Web-Scale Recommender
    Systems" <https://arxiv.org/abs/1806.01973>`_ (KDD 2018).

    Args:
        A (SparseSample or Dict[EdgeType, SparseSample]): ``[N, N]``, or the
            relations of a metapath, ``[num_nodes_of_source,
            num_nodes_of_destination]`` each.
        seeds (torch.Tensor): int64 ``[num_seeds]``.
        k (int): Maximum number of neighbours per seed.
        num_walks (int): Walks per seed.
        length (int): Steps per walk.
        restart (float, optional): Probability to return to the seed at each
            step; with a metapath, to end after a step.
        metapath (List[EdgeType], optional): Relations; each starts at the end
            type of the previous one, and the first one at that of the last.

    Returns:
        SparseSample: ``[N, num_seeds]``, :math:`\alpha`: each column sums to
        1, or has no entry.

    Raises:
        ValueError: If ``metapath`` is not a closed path of relations of ``A``.

    Example:
        >>> import torch
        >>> A = SparseSample.from_edge_index(
        ...     torch.tensor([[0, 1, 0, 2, 2, 1], [1, 0, 2, 0, 1, 2]])
        ... )
        >>> near = pinsage(A, torch.tensor([0]), 2, num_walks=10, length=5)
        >>> near.row(), round(float(near.sum()), 4)
        (tensor([1, 2]), 1.0)
    """
    if isinstance(A, SparseSample):
        visits = A.visit_count(seeds, num_walks, length, restart)
    else:
        visits = _visits(A, metapath or (), seeds, num_walks, length, restart)
    top = visits.top(k)
    return top.div(top.sum(dim=0), dim=0)


def check_metapath(
    name: str, A: Mapping[EdgeType, SparseSample], metapath: Sequence[EdgeType]
) -> None:
    """Checks that a metapath returns to its start type.

    Args:
        name (str): The program, for errors.
        A (Dict[EdgeType, SparseSample]): The relations.
        metapath (List[EdgeType]): The path.

    Raises:
        ValueError: If it does not, or has an unknown relation.
    """
    path: list[Any] = [tuple(t) for t in metapath]
    for t in path:
        if t not in A:
            raise ValueError(
                f"{name}: the relations of 'metapath' must be of {[*A]} (got "
                f'{t})'
            )
    if not path or any(t[0] != path[i - 1][2] for i, t in enumerate(path)):
        raise ValueError(
            f"{name}: each relation of 'metapath' must start at the end type "
            f'of the previous one, and the first at that of the last (got '
            f'{path})'
        )


def _visits(
    A: Mapping[EdgeType, SparseSample],
    metapath: Sequence[EdgeType],
    seeds: Tensor,
    num_walks: int,
    length: int,
    restart: float,
) -> SparseSample:
    """Counts the metapaths of each seed's walks that end at each node."""
    check_metapath('pinsage', A, metapath)
    path: list[Any] = [tuple(t) for t in metapath]
    relations = list(dict.fromkeys(path))
    steps = [relations.index(t) for t in path] * length
    starts = seeds.repeat(num_walks)
    key, call_id = current_program()
    disk = A[path[0]]._disk
    if disk is not None:
        matrices = [A[t] for t in relations]
        walks = disk.metapath_walk(matrices, steps, starts, key, call_id)
    else:
        layouts = [A[t].csr for t in relations]
        walks = ops.metapath_walk(
            [layout.indptr for layout in layouts],
            [layout.indices for layout in layouts],
            steps,
            starts,
            key=key,
            call_id=call_id,
        )
    visited = walks.nodes[:, len(path) :: len(path)]
    key, call_id = current_program()
    step = torch.arange(starts.numel() * length, device=seeds.device)
    coin = ops.random_uniform(step, key=key, call_id=call_id)
    ends = (coin < restart).view(starts.numel(), length).to(torch.int64)
    goes_on = ends.cumsum(1) == ends  # no previous step was the last
    counted = goes_on & (visited >= 0) & (visited != starts[:, None])
    out = count_visits(
        SparseSample, A[path[0]].num_rows, seeds, num_walks, visited, counted
    )
    out.col_ids = seeds
    return out
