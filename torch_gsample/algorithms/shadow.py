"""ShaDow: a bounded subgraph for each node, for models of any depth."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.algorithms.ppr import approximate_ppr
from torch_gsample.ops import _check
from torch_gsample.rng import current_program
from torch_gsample.sparse_sample import SparseSample


class Subgraphs(NamedTuple):
    """Subgraphs of some seeds, block by block.

    Args:
        matrix (SparseSample): ``[n, n]``, the edges; its ids are the nodes.
        batch (torch.Tensor): int64 ``[n]``, the seed of each node's subgraph.
        root (torch.Tensor): int64 ``[num_seeds]``, positions of the seeds.
    """

    matrix: SparseSample
    batch: Tensor
    root: Tensor


def shadow(
    A: SparseSample,
    seeds: Tensor,
    fanouts: Sequence[int],
    replace: bool = False,
) -> Subgraphs:
    r"""Induces the sampled neighbourhood of each seed (ShaDow).

    The nodes of :math:`G_{[v]}` are :math:`v` and all nodes that neighbour
    sampling reaches in ``len(fanouts)`` hops; its edges are all between them.

    From `"Decoupling the Depth and Scope of Graph Neural Networks"
    <https://arxiv.org/abs/2201.07858>`_ (NeurIPS 2021).

    Args:
        A (SparseSample): ``[N, N]``.
        seeds (torch.Tensor): int64 ``[num_seeds]``; duplicates have
            independent draws.
        fanouts (List[int]): In-neighbours of each node at each hop.
        replace (bool, optional): Whether to sample with replacement.

    Returns:
        Subgraphs: A block for each seed, which begins with the seed.

    Example:
        >>> A = SparseSample.from_edge_index(
        ...     torch.tensor([[0, 1, 2], [1, 2, 0]])
        ... )
        >>> out = shadow(A, torch.tensor([0, 1]), fanouts=[1])
        >>> out.matrix.col_ids, out.batch
        (tensor([0, 2, 1, 0]), tensor([0, 0, 1, 1]))
    """
    nodes, batch, root = shadow_nodes(A, seeds, fanouts, replace)
    return Subgraphs(A.induce(nodes, batch), batch, root)


def shadow_nodes(
    A: SparseSample,
    seeds: Tensor,
    fanouts: Sequence[int],
    replace: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Samples the nodes of :func:`shadow`, without edges.

    Returns:
        Tuple[torch.Tensor, torch.Tensor, torch.Tensor]: int64 ``[n]`` nodes
        and the seed of each node's subgraph, and ``[num_seeds]``, positions of
        the seeds: a block begins with its seed.
    """
    if A._disk is not None:
        node, batch = A._disk.sample_trees(seeds, fanouts, replace)
        return _by_block(node, batch, seeds.numel())
    key, call_id = current_program()
    for _ in fanouts[1:]:
        current_program()  # each hop has its own call id
    layout, num_nodes = A.csc, A.shape[1]
    _, _, node, _, batch, _ = _check.call(
        torch.ops.gsample.sample_neighbors.default,
        [layout.indptr, layout.indices],
        [0, 0],
        [num_nodes],
        [_check.node_ids('shadow', 'seeds', seeds, num_nodes, seeds.device)],
        _check.fanouts('shadow', 'fanouts', fanouts),
        key,
        call_id,
        replace,
        True,  # disjoint
        return_edge_id=False,
    )
    return _by_block(node, batch, seeds.numel())


def shadow_ppr(
    A: SparseSample,
    seeds: Tensor,
    k: int,
    alpha: float = 0.15,
    eps: float = 1e-4,
) -> Subgraphs:
    """Induces a subgraph of the most important nodes of each seed.

    These are the ``k`` nodes of highest approximate personalised PageRank, and
    the seed. See :func:`shadow` for the paper and
    :func:`~torch_gsample.algorithms.approximate_ppr` for the scores.

    Args:
        A (SparseSample): ``[N, N]``.
        seeds (torch.Tensor): int64 ``[num_seeds]``.
        k (int): Maximum number of nodes in addition to the seed.
        alpha (float, optional): Probability to return to the seed.
        eps (float, optional): Tolerance of the scores.

    Returns:
        Subgraphs: A block for each seed, which begins with the seed.

    Example:
        >>> A = SparseSample.from_edge_index(
        ...     torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        ... )
        >>> shadow_ppr(A, torch.tensor([0]), k=1).matrix.col_ids
        tensor([0, 1])
    """
    scores = approximate_ppr(A, seeds, alpha, eps)
    row, col = scores.coo()
    others = scores.masked(row != seeds[col])
    row, col = others.top(k).coo()
    roots = torch.arange(seeds.numel(), device=seeds.device)
    batch = torch.cat([roots, col])
    nodes, batch, root = _by_block(
        torch.cat([seeds, row]), batch, seeds.numel()
    )
    return Subgraphs(A.induce(nodes, batch), batch, root)


def _by_block(
    nodes: Tensor, batch: Tensor, num_seeds: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Sorts by block, stably and in linear time, so seeds stay first."""
    size = nodes.numel()
    place = torch.arange(size, device=batch.device)
    start, _, order = ops.coo_to_csc(place, batch, size, num_seeds)
    return nodes[order], batch[order], start[:-1].to(torch.int64)
