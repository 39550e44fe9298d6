"""SEAL: labelled enclosing subgraphs of links."""

from typing import NamedTuple

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.rng import current_program
from torch_gsample.sparse_sample import SparseSample


class LinkSubgraphs(NamedTuple):
    """Enclosing subgraphs of some links, block by block.

    Args:
        matrix (SparseSample): ``[n, n]``, the edges; its ids are the nodes.
        batch (torch.Tensor): int64 ``[n]``, the link of each node's subgraph.
        root (torch.Tensor): int64 ``[2, num_links]``, positions of the ends.
        label (torch.Tensor): int64 ``[n]``, the result of :func:`drnl`.
    """

    matrix: SparseSample
    batch: Tensor
    root: Tensor
    label: Tensor


def seal(
    A: SparseSample,
    links: Tensor,
    num_hops: int,
    ratio_per_hop: float = 1.0,
    max_nodes_per_hop: int | None = None,
) -> LinkSubgraphs:
    r"""Induces the enclosing subgraph of each link, without the link.

    Its nodes are all within ``num_hops`` of an end:

    .. math:: \{ i : d(i, x) \leq h \;\text{or}\; d(i, y) \leq h \}

    If a hop reaches :math:`n` new nodes, :math:`\lfloor r n \rfloor` of them,
    at most ``max_nodes_per_hop``, are drawn uniformly without replacement.
    Only these are in the subgraph and start the next hop, as in the paper's
    implementation; the others are not reached again.

    From `"Link Prediction Based on Graph Neural Networks"
    <https://arxiv.org/abs/1802.09691>`_ (NeurIPS 2018).

    Args:
        A (SparseSample): ``[N, N]``, each edge in both directions.
        links (torch.Tensor): int64 ``[2, num_links]``, pairs of two nodes.
        num_hops (int): :math:`h`.
        ratio_per_hop (float, optional): :math:`r`, in (0, 1].
        max_nodes_per_hop (int, optional): Maximum number of nodes per hop and
            link.

    Returns:
        LinkSubgraphs: A block for each link.

    Raises:
        ValueError: If a link connects a node with itself, ``ratio_per_hop`` is
            not in (0, 1], or ``max_nodes_per_hop`` is negative.

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
    if not 0 < ratio_per_hop <= 1:
        raise ValueError(
            f"seal: 'ratio_per_hop' must be in (0, 1] (got {ratio_per_hop})"
        )
    if max_nodes_per_hop is not None and max_nodes_per_hop < 0:
        raise ValueError(
            "seal: 'max_nodes_per_hop' must not be negative (got "
            f'{max_nodes_per_hop})'
        )
    n, num_links = A.num_cols, links.shape[1]
    ends = torch.arange(num_links, device=links.device) * n + links
    pairs = [ends.view(-1)]
    visited = fringe = pairs[0].unique()
    for _ in range(num_hops):
        row, col = A[:, fringe % n].coo()
        reached = (fringe[col] // n * n + row).unique()
        fringe = reached[~torch.isin(reached, visited)]
        visited = torch.cat([visited, fringe])
        if ratio_per_hop < 1 or max_nodes_per_hop is not None:
            link = fringe // n
            chosen = _some(
                fringe, link, num_links, ratio_per_hop, max_nodes_per_hop
            )
            fringe = fringe[chosen]
        pairs.append(fringe)
    pair = torch.cat(pairs).unique()
    root, batch = torch.searchsorted(pair, ends), pair // n
    block = A.induce(pair % n, batch)
    other = torch.full_like(batch, -1)  # each end's other end
    other[root] = root.flip(0)
    row, col = block.coo()
    block = block.masked(other[row] != col)
    return LinkSubgraphs(block, batch, root, drnl(block, *root))


def _some(
    pair: Tensor, link: Tensor, num_links: int, ratio: float, most: int | None
) -> Tensor:
    """Draws positions of nodes of each link, uniformly."""
    key, call_id = current_program()
    nodes = SparseSample.from_coo(
        torch.arange(pair.numel(), device=pair.device),
        link,
        ops.random_uniform(pair, key=key, call_id=call_id),
        (pair.numel(), num_links),
    )
    size = (nodes.degree(dim=0).double() * ratio).to(torch.int64)
    return nodes.top(size if most is None else size.clamp(max=most)).row()


def drnl(A: SparseSample, x: Tensor, y: Tensor) -> Tensor:
    r"""Labels nodes by their distances to both ends of a link.

    Double-Radius Node Labeling: both ends have label 1, nodes without a path
    to both ends have 0, and all others

    .. math::
        f(i) = 1 + \min(d_x, d_y) + \lfloor d / 2 \rfloor
            (\lfloor d / 2 \rfloor + d \bmod 2 - 1), \quad d = d_x + d_y

    where :math:`d_x` is the distance to :math:`x` without :math:`y`, and vice
    versa. See :func:`seal` for the paper.

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
    """Returns hops from the source of each block; -1 without a path."""
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
