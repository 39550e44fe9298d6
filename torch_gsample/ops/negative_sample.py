"""Negatives for link prediction."""

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.ops.formats import cum_weight_size


def negative_sample(
    ids: Tensor,
    num_nodes: int,
    *,
    key: Tensor,
    call_id: int = 0,
    target: bool = True,
    cum_weight: Tensor | None = None,
    order: Tensor | None = None,
    order_time: Tensor | None = None,
    max_time: Tensor | None = None,
    anchor: Tensor | None = None,
    indptr: Tensor | None = None,
    indices: Tensor | None = None,
) -> Tensor:
    """Draws a node for each of ``ids``, with replacement.

    Candidates are all nodes; with ``max_time``, the nodes of ``order`` up to
    this time (at least the earliest one); with ``anchor``, only those that are
    not its neighbours. The draw is exact: after a number of rejections, the
    remaining candidates are counted.

    Args:
        ids (torch.Tensor): int64 ``[n]``; equal ids draw equal nodes.
        num_nodes (int): Number of nodes to draw from.
        key (torch.Tensor): int64 ``[1, 3]``, see
            :func:`torch_gsample.rng.make_key`.
        call_id (int, optional): Id of the draw in a program.
        target (bool, optional): Whether to draw destinations. Draws of sources
            and destinations are independent, even with the same id.
        cum_weight (torch.Tensor, optional): A result of
            :func:`cumulate_weights` for one column of all nodes, in the order
            of ``order``; default: uniform.
        order (torch.Tensor, optional): int64 ``[num_nodes]``, the nodes
            sorted by time.
        order_time (torch.Tensor, optional): int64 ``[num_nodes]``, their
            times.
        max_time (torch.Tensor, optional): int64 ``[n]``.
        anchor (torch.Tensor, optional): int64 ``[n]``, the node at the other
            end.
        indptr (torch.Tensor, optional): int64 ``[num_anchors + 1]``, the start
            of each anchor's neighbours in ``indices``.
        indices (torch.Tensor, optional): int64, ascending for each anchor.

    Returns:
        torch.Tensor: int64 ``[n]``; -1 without a candidate.

    Raises:
        ValueError: If lengths do not match.

    Example:
        >>> from torch_gsample.rng import make_key
        >>> negative_sample(
        ...     torch.arange(2),
        ...     2,
        ...     key=make_key(0),
        ...     anchor=torch.tensor([0, 1]),
        ...     indptr=torch.tensor([0, 1, 2]),
        ...     indices=torch.tensor([1, 0]),
        ... )
        tensor([0, 1])
    """
    op = 'negative_sample'
    device = _check.graph_device(op, ids, 'ids')
    ids = _check.int64_vector(op, 'ids', ids, device=device)

    def optional(
        name: str,
        value: Tensor | None,
        size: int | None,
        or_pinned: bool = False,
    ) -> Tensor | None:
        if value is None:
            return None
        return _check.int64_vector(op, name, value, size, device, or_pinned)

    return _check.call(
        torch.ops.gsample.negative_sample,
        ids,
        num_nodes,
        target,
        _check.random_key(op, key),
        call_id,
        cum_weight=optional(
            'cum_weight', cum_weight, cum_weight_size(num_nodes, 1)
        ),
        order=optional('order', order, num_nodes),
        order_time=optional('order_time', order_time, num_nodes),
        max_time=optional('max_time', max_time, ids.numel()),
        anchor=optional('anchor', anchor, ids.numel()),
        indptr=optional('indptr', indptr, None, or_pinned=True),
        indices=optional('indices', indices, None, or_pinned=True),
    )


@torch.library.register_fake('gsample::negative_sample')
def _(id, *_, **__):
    return torch.empty_like(id)
