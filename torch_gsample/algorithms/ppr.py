"""Approximate personalised PageRank by local pushes."""

import torch
from torch import Tensor

from torch_gsample.sparse_sample import SparseSample
from torch_gsample.sparse_sample.ids import ids_at


def approximate_ppr(
    A: SparseSample, seeds: Tensor, alpha: float = 0.15, eps: float = 1e-4
) -> SparseSample:
    r"""Returns the approximate personalised PageRank of seeds.

    With :math:`P_{uv} = A_{uv} / d_v` and :math:`d_v = \sum_u A_{uv}`, the
    step of a walk against the direction of edges, the personalised PageRank
    of :math:`s` is

    .. math:: \pi_s = \alpha \, e_s + (1 - \alpha) \, P \pi_s

    Estimates :math:`p` and residues :math:`r` satisfy :math:`\pi_s = p +
    \sum_v r_v \pi_v`. A push of :math:`v` moves :math:`\alpha r_v` to
    :math:`p_v` and spreads the rest over the in-neighbours. All nodes with
    :math:`r_v \geq \epsilon d_v` push at once, until there are none. Then
    :math:`0 \leq \pi_s - p`, and in an undirected graph also :math:`\pi_s(v) -
    p_v < \epsilon d_v`. A walk stays at a node without in-edges.

    From `"Local Graph Partitioning using PageRank Vectors"
    <https://doi.org/10.1109/FOCS.2006.44>`_ (FOCS 2006).

    Args:
        A (SparseSample): ``[N, N]``, without negative values.
        seeds (torch.Tensor): int64 ``[num_seeds]``.
        alpha (float, optional): Probability to return to the seed.
        eps (float, optional): :math:`\epsilon`, the tolerance of residues.

    Returns:
        SparseSample: float64 ``[N, num_seeds]``, the nodes that pushed and
        their :math:`p`.

    Raises:
        ValueError: If ``alpha`` is not in (0, 1], or ``eps`` not positive.

    Example:
        >>> A = SparseSample.from_edge_index(torch.tensor([[0, 1], [1, 0]]))
        >>> approximate_ppr(A, torch.tensor([0]), 0.5, 1e-9).to_dense()
        tensor([[0.6667],
                [0.3333]], dtype=torch.float64)
    """
    if not 0 < alpha <= 1:
        raise ValueError(
            f"approximate_ppr: 'alpha' must be in (0, 1] (got {alpha})"
        )
    if not eps > 0:
        raise ValueError(
            f"approximate_ppr: 'eps' must be positive (got {eps})"
        )
    n, total = A.num_cols, A.sum(dim=0).detach().to(torch.float64)
    # A pair (position of a seed, node) is encoded as one integer.
    total = total.to(seeds.device)
    pair = torch.arange(seeds.numel(), device=seeds.device) * n + seeds
    residue = torch.ones_like(pair, dtype=torch.float64)
    pushed, amounts = [pair[:0]], [residue[:0]]
    while pair.numel() > 0:
        active = (residue >= eps * total[pair % n]) & (residue > 0)
        moving, amount = pair[active], residue[active]
        last = total[moving % n] == 0  # walks stay there
        pushed.append(moving)
        amounts.append(torch.where(last, amount, alpha * amount))
        if moving.numel() == 0:
            break
        step = A[:, moving % n]
        row, col = step.coo()
        # Edges without weight have share 0, even if all weights are 0.
        share = step.values().detach() / total[moving % n][col].clamp(1e-300)
        reached = moving[col] // n * n + row
        pair, residue = _sum_by_pair(
            torch.cat([pair[~active], reached]),
            torch.cat([residue[~active], (1 - alpha) * amount[col] * share]),
        )
    pair, value = _sum_by_pair(torch.cat(pushed), torch.cat(amounts))
    out = SparseSample.from_coo(pair % n, pair // n, value, (n, seeds.numel()))
    out.row_ids = A.row_ids
    out.col_ids = ids_at(A.col_ids, seeds)
    return out


def _sum_by_pair(pair: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    pair, position = pair.unique(return_inverse=True)
    return pair, value.new_zeros(pair.numel()).index_add(0, position, value)
