"""IBMB: mini-batches of outputs and their most influential nodes."""

from typing import NamedTuple

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.algorithms.ppr import approximate_ppr
from torch_gsample.rng import current_program
from torch_gsample.sparse_sample import SparseSample


class InfluenceBatch(NamedTuple):
    """The subgraph of a mini-batch.

    Args:
        matrix (SparseSample): ``[n, n]``; the outputs are its first nodes.
        output (torch.Tensor): int64, positions of the outputs in all outputs.
    """

    matrix: SparseSample
    output: Tensor


def ibmb(
    A: SparseSample,
    outputs: Tensor,
    k: int,
    batch_size: int,
    alpha: float = 0.25,
    eps: float = 1e-4,
) -> list[InfluenceBatch]:
    r"""Makes mini-batches of outputs and the nodes that influence them.

    The influence of :math:`u` on the output :math:`v`, the expected size of
    :math:`\partial h_v / \partial x_u`, is proportional to the personalised
    PageRank :math:`\pi_v(u)`. Node-wise IBMB groups outputs with a large
    mutual influence, and adds the top ``k`` nodes of each to the batch.

    From `"Influence-Based Mini-Batching for Graph Neural Networks"
    <https://arxiv.org/abs/2212.09083>`_ (LoG 2022).

    Args:
        A (SparseSample): ``[N, N]``.
        outputs (torch.Tensor): int64 ``[num_outputs]``, without duplicates.
        k (int): Maximum number of auxiliary nodes per output.
        batch_size (int): Maximum number of outputs per batch.
        alpha (float, optional): Restart probability of PageRank.
        eps (float, optional): Tolerance of the scores; see
            :func:`~torch_gsample.algorithms.approximate_ppr`.

    Returns:
        List[InfluenceBatch]: The batches of all epochs.

    Example:
        >>> A = SparseSample.from_edge_index(
        ...     torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
        ... )
        >>> batches = ibmb(A, torch.arange(4), k=2, batch_size=2)
        >>> [batch.output.tolist() for batch in batches]
        [[0, 1], [2, 3]]
    """
    scores = approximate_ppr(A, outputs, alpha, eps)
    return [
        ibmb_batch(A, outputs, scores, part, k)
        for part in ibmb_partition(outputs, scores, batch_size)
    ]


def ibmb_batch(
    A: SparseSample,
    outputs: Tensor,
    scores: SparseSample,
    part: Tensor,
    k: int,
) -> InfluenceBatch:
    """Induces the subgraph of some outputs and their top ``k`` nodes.

    Args:
        A (SparseSample): ``[N, N]``.
        outputs (torch.Tensor): int64 ``[num_outputs]``.
        scores (SparseSample): ``[N, num_outputs]``.
        part (torch.Tensor): int64, columns of ``scores``.
        k (int): Maximum number of auxiliary nodes per output.
    """
    influence = scores[:, part]
    row, col = influence.coo()
    top = influence.masked(row != outputs[part][col]).top(k)
    nodes = torch.cat([outputs[part], top.coo()[0]])
    return InfluenceBatch(
        A.induce(ops.unique_nodes(nodes, A.num_cols)[0]), part
    )


def ibmb_partition(
    outputs: Tensor, scores: SparseSample, batch_size: int
) -> list[Tensor]:
    """Groups outputs into batches by their mutual influence.

    Initially, each output is a batch. In descending order of scores, the
    batches of both nodes are merged if the result is small enough. Finally,
    small batches are merged in random order.

    Args:
        outputs (torch.Tensor): int64 ``[num_outputs]``.
        scores (SparseSample): ``[N, num_outputs]``.
        batch_size (int): Maximum number of outputs per batch.

    Returns:
        List[torch.Tensor]: Positions in ``outputs``, ascending.

    Raises:
        ValueError: If ``batch_size`` is not positive.
    """
    if batch_size <= 0:
        raise ValueError(
            f"ibmb_partition: 'batch_size' must be positive (got {batch_size})"
        )
    device = outputs.device
    position = torch.full((scores.num_rows,), -1, device=device)
    position[outputs] = torch.arange(outputs.numel(), device=device)
    row, col = scores.coo()
    order = scores.values().argsort(descending=True, stable=True)
    order = order[position[row[order]] >= 0]
    members = [[i] for i in range(outputs.numel())]
    batch_of = list(range(outputs.numel()))
    links = zip(
        position[row[order]].tolist(), col[order].tolist(), strict=True
    )
    for u, v in links:
        a, b = batch_of[u], batch_of[v]
        if a != b and len(members[a]) + len(members[b]) <= batch_size:
            if len(members[a]) < len(members[b]):
                a, b = b, a
            for i in members[b]:
                batch_of[i] = a
            members[a] += members[b]
            members[b] = []
    parts = _merge_leftovers([m for m in members if m], batch_size)
    parts = sorted(map(sorted, parts))
    return [torch.tensor(part, device=device) for part in parts]


def _merge_leftovers(
    parts: list[list[int]], batch_size: int
) -> list[list[int]]:
    key, call_id = current_program()
    draws = ops.random_uniform(
        torch.arange(len(parts)), key=key, call_id=call_id
    )
    out: list[list[int]] = []
    for i in draws.argsort().tolist():
        if out and len(out[-1]) + len(parts[i]) <= batch_size:
            out[-1] = out[-1] + parts[i]
        else:
            out.append(parts[i])
    return out
