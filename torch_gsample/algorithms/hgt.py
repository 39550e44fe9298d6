"""HGT: equal numbers of nodes of each type, by links to sampled nodes."""

from collections.abc import Mapping, Sequence
from typing import Any

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
    time: Mapping[str, Tensor] | None = None,
    max_time: int | None = None,
) -> Any:
    r"""Samples nodes of each type, layer by layer, and induces their subgraph.

    A sampled node :math:`v` adds its normalised in-edges of each relation
    :math:`r` to the budgets of their sources, including parallel edges:

    .. math::
        B(u) = \sum_{v \text{ sampled}} \sum_r
               \frac{A_r[u, v]}{\deg_r(v)}, \qquad
        p(u) = \frac{B(u)^2}{\sum_{w \text{ of the type of } u} B(w)^2}

    where :math:`A_r` has zeros and ones; values of the matrices are ignored.
    Each layer draws :math:`k` nodes of each type with probabilities :math:`p`,
    without replacement, and removes them from the budget. The result has all
    edges between the sampled nodes.

    This is HGSampling of `"Heterogeneous Graph Transformer"
    <https://arxiv.org/abs/2003.01332>`_ (WWW 2020). All types of a layer are
    drawn before budgets grow, so layer ``l`` is at most ``l`` hops away, and
    the order of types does not matter; the paper's loop adds to the budgets
    after each type. The number of neighbours is unlimited, while
    torch-sparse's sampler uses 50 random in-edges of a hub, in budgets and in
    the subgraph.

    With ``time``, each sampled node has a time :math:`\tau`; the paper encodes
    differences of times along edges. It is the node's own time, or else the
    latest time of the sampled nodes that add to its budget (in the authors'
    code, that of the last one). An edge that would give a time after
    ``max_time`` adds to no budget, so later nodes are never sampled; it still
    counts in :math:`\deg_r(v)`, as in that code.

    Args:
        A (Dict[EdgeType, SparseSample]): The graph,
            ``[num_nodes_of_source, num_nodes_of_destination]`` each.
        seeds (Dict[NodeType, torch.Tensor]): Distinct nodes, int64; missing
            types have no seeds.
        fanouts (List[int] or Dict[NodeType, List[int]]): Nodes of each type
            per layer; -1 for all with a budget. A dictionary has lists of
            equal length for all types.
        time (Dict[NodeType, torch.Tensor], optional): int64 ``[num_nodes]``,
            the times of nodes, for types whose nodes have times of their own.
        max_time (int, optional): The latest time of a sampled node, and the
            time of seeds whose type has none.

    Returns:
        Dict[EdgeType, SparseSample]: ``row_ids`` and ``col_ids`` are the seeds
        of a type, then its sampled nodes, layer by layer. With ``time``, a
        pair of this and of :math:`\tau`, an int64 ``Dict[NodeType,
        torch.Tensor]`` in the order of these nodes.

    Raises:
        ValueError: If ``time`` has another type or length than the graph, or
            seeds have no time.

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
    clock = _Clock(size, nodes, time, max_time)
    budget = {t: (none, none.double(), none) for t in size}
    new = dict(nodes)
    for hop in range(max([0, *map(len, fanouts.values())])):
        shares = {t: [budget[t]] for t in size}
        for (src, _, dst), matrix in A.items():
            part = matrix[:, new[dst]]
            row, col = part.coo()
            share = (1 / part.degree(0).double())[col]
            shares[src].append(clock.known(src, dst, row, col, share))
        for t, n in size.items():
            budget[t] = _add(shares[t], nodes[t], n, clock.is_given)
            drawn = _draw(*budget[t], fanouts[t][hop], n, clock.is_given)
            new[t] = clock.drawn(t, *drawn)
            nodes[t] = torch.cat([nodes[t], new[t]])
    out = {t: m[nodes[t[0]], nodes[t[2]]] for t, m in A.items()}
    return out if time is None else (out, clock.sampled)


class _Clock:
    """The times of sampled nodes, and the bound of times.

    Without times, all times are 0.

    Args:
        size (Dict[NodeType, int]): Number of nodes of each type.
        seeds (Dict[NodeType, torch.Tensor]): int64.
        time (Dict[NodeType, torch.Tensor], optional): As in :func:`hgt`.
        latest (int, optional): The latest time.
    """

    def __init__(
        self,
        size: Mapping[str, int],
        seeds: Mapping[str, Tensor],
        time: Mapping[str, Tensor] | None,
        latest: int | None,
    ):
        self._own, self._latest = time or {}, latest
        self.is_given = time is not None
        for t, values in self._own.items():
            if t not in size or values.shape != (size[t],):
                raise ValueError(
                    "hgt: 'time' must have an element for each node of a type "
                    f'of {dict(size)} (got shape {list(values.shape)} of '
                    f'{t!r})'
                )
        self.sampled = {t: self._of_seeds(t, ids) for t, ids in seeds.items()}
        self._new = dict(self.sampled)  # of the last drawn nodes

    def _of_seeds(self, node_type: str, seeds: Tensor) -> Tensor:
        if node_type in self._own:
            return self._own[node_type][seeds]
        if self.is_given and self._latest is None and seeds.shape[0] > 0:
            raise ValueError(
                f"hgt: 'max_time' is required for seeds without a time, such "
                f'as those of {node_type!r}'
            )
        return torch.full_like(seeds, self._latest or 0)

    def known(
        self, src: str, dst: str, row: Tensor, col: Tensor, share: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns shares and times of sources up to the latest time.

        Args:
            src (NodeType): The type of the sources.
            dst (NodeType): The type of the last drawn nodes.
            row (torch.Tensor): ``[num_edges]``, sources.
            col (torch.Tensor): ``[num_edges]``, positions in the drawn nodes.
            share (torch.Tensor): ``[num_edges]``.
        """
        if not self.is_given:
            return row, share, row[:0]
        own = self._own.get(src)
        stamp = self._new[dst][col] if own is None else own[row]
        if self._latest is None:
            return row, share, stamp
        early = stamp <= self._latest
        return row[early], share[early], stamp[early]

    def drawn(self, node_type: str, nodes: Tensor, stamp: Tensor) -> Tensor:
        """Records the times of sampled nodes, and returns the nodes."""
        self._new[node_type] = stamp
        past = self.sampled[node_type]
        self.sampled[node_type] = torch.cat([past, stamp])
        return nodes


def _add(
    shares: Sequence[tuple[Tensor, Tensor, Tensor]],
    sampled: Tensor,
    size: int,
    is_timed: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Sums the shares of each node that is not sampled yet."""
    ids, share, stamp = map(torch.cat, zip(*shares, strict=True))
    ids, place = ops.unique_nodes(torch.cat([sampled, ids]), size)
    first = sampled.numel()  # start of the nodes that are not sampled
    total = share.new_zeros(ids.numel()).index_add_(0, place[first:], share)
    if not is_timed:
        return ids[first:], total[first:], ids[:0]
    last = stamp.new_zeros(ids.numel()).scatter_reduce(
        0, place[first:].to(torch.int64), stamp, 'amax', include_self=False
    )
    return ids[first:], total[first:], last[first:]


def _draw(
    ids: Tensor,
    budget: Tensor,
    stamp: Tensor,
    k: int,
    size: int,
    is_timed: bool,
) -> tuple[Tensor, Tensor]:
    """Draws nodes by their squared budget, without replacement."""
    pointers = torch.arange(2, device=ids.device) * ids.numel()
    column = SparseSample.from_csc(pointers, ids, budget**2, size)
    drawn = column.individual_sample(k, column)
    return drawn.row(), stamp[drawn.edge_id] if is_timed else stamp
