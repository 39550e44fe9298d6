"""Quantiles of the values of each vertex's edges, by torch operators."""

import torch
from torch import Tensor


def quantiles(x: Tensor, indptr: Tensor, q: float, mode: str) -> Tensor:
    """Returns a quantile of each column, feature by feature.

    Args:
        x (torch.Tensor): ``[num_edges, width]``, column by column.
        indptr (torch.Tensor): The column pointers.
        q (float): In [0, 1].
        mode (str): The interpolation, as in ``torch.quantile``.

    Returns:
        torch.Tensor: ``[num_columns, width]``, 0 for columns without edges.
    """
    count = indptr.diff().long()
    if not len(x):
        return x.sum(0).expand(len(count), -1)
    column = torch.repeat_interleave(count)
    order = x.detach().argsort(0)
    # Stable, so the values of a column stay in order.
    order = order.gather(0, column[order].argsort(stable=True, dim=0))
    place = (count - 1).clamp(min=0).double() * q
    if mode == 'nearest':
        place = place.round()
    is_empty = (count == 0).unsqueeze(1)

    def at(offset: Tensor) -> Tensor:
        row = (indptr[:-1] + offset.long()).clamp(max=len(x) - 1)
        return x.gather(0, order[row])

    below, above = place.floor(), place.ceil()
    out = at(above if mode == 'higher' else below)
    if mode in ('linear', 'midpoint'):
        share = (above - below) / 2 if mode == 'midpoint' else place - below
        share = share.to(x.dtype).unsqueeze(1)
        out = torch.lerp(out, at(above), share)
    return out.masked_fill(is_empty, 0.0)
