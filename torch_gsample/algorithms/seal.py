"""SEAL: the labelled surroundings of a link."""

from typing import NamedTuple

import torch
from torch import Tensor

from torch_gsample.sparse_sample import SparseSample


class LinkSubgraphs(NamedTuple):
    """Enclosing subgraphs of some links, block by block.

    Args:
        matrix (SparseSample): ``[n, n]``, the edges; ids say which nodes.
        batch (torch.Tensor): int64 ``[n]``, whose subgraph a node is in.
        root (torch.Tensor): int64 ``[2, num_links]``, where the ends are.
        label (torch.Tensor): int64 ``[n]``, what :func:`drnl` says.
    """

    matrix: SparseSample
    batch: Tensor
    root: Tensor
    label: Tensor


def seal(A: SparseSample, links: Tensor, num_hops: int) -> LinkSubgraphs:
    r"""Induces the subgraph that encloses each link, without the link.

    Its nodes are all within ``num_hops`` of an end:

    .. math:: \{ i : d(i, x) \leq h \;\text{or}\; d(i, y) \leq h \}

    From `"Link Prediction Based on Graph Neural Networks"
    <https://arxiv.org/abs/1802.09691>`_ (NeurIPS 2018).

    Args:
        A (SparseSample): ``[N, N]``, each edge in both directions.
        links (torch.Tensor): int64 ``[2, num_links]``, pairs of two nodes.
        num_hops (int): :math:`h`.

    Returns:
        LinkSubgraphs: A block for each link.

    Raises:
        ValueError: If a link connects a node with itself.

    Example:
        >>> A = SparseSample.from_edge_index(
        ...     torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])
        ... )
        >>> out = seal(A, torch.tensor([[0], [1]]), num_hops=1)
        >>> out.label, out.matrix.num_edges
        (tensor([1, 1, 2]), 4)
    """
    if bool((links[0] == links[1]).any()):
        raise ValueError("seal: 'links' must connect different nodes")
    n = A.num_cols
    ends = torch.arange(links.shape[1], device=links.device) * n + links
    pairs = [ends.view(-1)]
    for _ in range(num_hops):
        row, col = A[:, pairs[-1] % n].coo()
        pairs.append((pairs[-1][col] // n * n + row).unique())
    pair = torch.cat(pairs).unique()
    root, batch = torch.searchsorted(pair, ends), pair // n
    block = A.induce(pair % n, batch)
    other = torch.full_like(batch, -1)  # each end's other end
    other[root] = root.flip(0)
    row, col = block.coo()
    block = block.masked(other[row] != col)
    return LinkSubgraphs(block, batch, root, drnl(block, *root))


def drnl(A: SparseSample, x: Tensor, y: Tensor) -> Tensor:
    r"""Labels nodes by their distances to both ends of a link.

    Double-Radius Node Labeling: both ends are 1, nodes that a path reaches
    from not more than one of them 0, and the others

    .. math::
        f(i) = 1 + \min(d_x, d_y) + \lfloor d / 2 \rfloor
            (\lfloor d / 2 \rfloor + d \bmod 2 - 1), \quad d = d_x + d_y

    where :math:`d_x` is the distance to :math:`x` without :math:`y`, and the
    other way round. See :func:`seal` for the paper.

    Args:
        A (SparseSample): ``[n, n]``, one or more blocks.
        x (torch.Tensor): int64 ``[num_blocks]``, an end in each block.
        y (torch.Tensor): int64 ``[num_blocks]``, the other end.

    Returns:
        torch.Tensor: int64 ``[n]``.
    """
    to_x, to_y = _distances(A, x, y), _distances(A, y, x)
    total = to_x + to_y
    half, odd = total // 2, total % 2
    label = 1 + torch.minimum(to_x, to_y) + half * (half + odd - 1)
    label[(to_x < 0) | (to_y < 0)] = 0
    label[x], label[y] = 1, 1
    return label


def _distances(A: SparseSample, source: Tensor, without: Tensor) -> Tensor:
    """Hops from the source of each block; -1 where no path leads."""
    row, col = A.coo()
    distance = torch.full((A.num_cols,), -1, device=A.device)
    distance[source] = 0
    distance[without] = -2  # no path goes through these
    hops = 0
    while True:
        reached = col[distance[row] == hops]
        reached = reached[distance[reached] == -1]
        if reached.numel() == 0:
            return distance
        hops += 1
        distance[reached] = hops
