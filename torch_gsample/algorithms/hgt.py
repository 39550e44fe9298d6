"""HGT: as many nodes of each type, by their links to the sampled ones."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.sparse_sample import SparseSample

#: Source type, relation, destination type.
EdgeType = tuple[str, str, str]


def hgt(
    A: Mapping[EdgeType, SparseSample],
    seeds: Mapping[str, Tensor],
    fanouts: Sequence[int] | Mapping[str, Sequence[int]],
) -> dict[EdgeType, SparseSample]:
    r"""Samples nodes of each type, layer by layer, and induces their subgraph.

    A sampled node :math:`v` adds its normalised in-edges of each relation
    :math:`r` to the budget of their sources, parallel edges one by one:

    .. math::
        B(u) = \sum_{v \text{ sampled}} \sum_r
               \frac{A_r[u, v]}{\deg_r(v)}, \qquad
        p(u) = \frac{B(u)^2}{\sum_{w \text{ of the type of } u} B(w)^2}

    with :math:`A_r` of zeros and ones; values take no part. Each layer draws
    :math:`k` nodes of each type by :math:`p`, without replacement, and what
    was drawn leaves the budget. At the end there are all edges between the
    sampled nodes.

    This is HGSampling of `"Heterogeneous Graph Transformer"
    <https://arxiv.org/abs/2003.01332>`_ (WWW 2020), without its timestamps.
    All types of a layer are drawn before their budgets grow, so that the
    ``l``-th layer is at most ``l`` hops away and the order of types does not
    matter; the paper's loop adds to the budgets after each type. There is no
    limit of neighbours, while torch-sparse's sampler looks at 50 random
    in-edges of a hub, in budgets and in the subgraph.

    Args:
        A (Dict[EdgeType, SparseSample]): The graph,
            ``[num_nodes_of_source, num_nodes_of_destination]`` each.
        seeds (Dict[NodeType, torch.Tensor]): Distinct nodes, int64; none of
            the types that are missing.
        fanouts (List[int] or Dict[NodeType, List[int]]): Nodes of each type a
            layer; -1 takes all that have a budget. A dictionary has lists of
            one length, for all types.

    Returns:
        Dict[EdgeType, SparseSample]: ``row_ids`` and ``col_ids`` are the seeds
        of a type and then its sampled nodes, layer by layer.

    Example:
        >>> A = {
        ...     ('paper', 'cites', 'paper'): SparseSample.from_edge_index(
        ...         torch.tensor([[1, 2], [0, 1]])
        ...     ),
        ...     ('author', 'writes', 'paper'): SparseSample.from_edge_index(
        ...         torch.tensor([[0, 1], [0, 2]]), num_nodes=(2, 3)
        ...     ),
        ... }
        >>> out = hgt(A, {'paper': torch.tensor([0])}, [1, 1])
        >>> out['author', 'writes', 'paper'].row_ids
        tensor([0])
        >>> out['paper', 'cites', 'paper'].row_ids
        tensor([0, 1, 2])
    """
    size, device = {}, next((s.device for s in seeds.values()), None)
    none = torch.empty(0, dtype=torch.int64, device=device)
    for (src, _, dst), matrix in A.items():
        size[src], size[dst] = matrix.shape
    if not isinstance(fanouts, Mapping):
        fanouts = dict.fromkeys(size, fanouts)
    nodes = {t: seeds.get(t, none) for t in size}
    budget = {t: (none, none.double()) for t in size}
    new = dict(nodes)
    for hop in range(max([0, *map(len, fanouts.values())])):
        shares = {t: [budget[t]] for t in size}
        for (src, _, dst), matrix in A.items():
            part = matrix[:, new[dst]]
            row, col = part.coo()
            shares[src].append((row, (1 / part.degree(0).double())[col]))
        for t, n in size.items():
            budget[t] = _add(shares[t], nodes[t], n)
            new[t] = _draw(*budget[t], fanouts[t][hop], n)
            nodes[t] = torch.cat([nodes[t], new[t]])
    return {t: m[nodes[t[0]], nodes[t[2]]] for t, m in A.items()}


def _add(
    shares: Sequence[tuple[Tensor, Tensor]], sampled: Tensor, size: int
) -> tuple[Tensor, Tensor]:
    """Sums the shares of each node that is not sampled yet."""
    ids, share = map(torch.cat, zip(*shares, strict=True))
    ids, place = ops.unique_nodes(torch.cat([sampled, ids]), size)
    first = sampled.numel()  # where the nodes begin that are not sampled
    total = share.new_zeros(ids.numel()).index_add_(0, place[first:], share)
    return ids[first:], total[first:]


def _draw(ids: Tensor, budget: Tensor, k: int, size: int) -> Tensor:
    """Draws nodes by their squared budget, without replacement."""
    pointers = torch.arange(2, device=ids.device) * ids.numel()
    column = SparseSample.from_csc(pointers, ids, budget**2, size)
    return column.individual_sample(k, column).row()
