"""Features in int8 with a scale for each row."""

import torch
from torch import Tensor

from torch_gsample.huge_pages import use_huge_pages

#: Rows that are quantized at a time, to need little more memory than results.
_ROWS = 1 << 16
#: The largest scale whose products are finite: a 127th of the largest float32,
#: rounded down.
_MOST = float.fromhex('0x1.020406p+121')


@torch.no_grad()
def quantize_rows(input: Tensor) -> tuple[Tensor, Tensor]:
    r"""Quantizes a matrix to int8 with one scale per row.

    .. math::
        s_i = \max_j |x_{ij}| / 127, \quad q_{ij} = \mathrm{round}(x_{ij}/s_i)

    in float32. Ties are rounded to even, and scales are rounded down if
    :math:`127 s_i` would be infinite. Rows of scale 0 are zero. The error of
    each element of :math:`s_i q_i` is at most :math:`s_i / 2`, up to rounding
    in float32.

    Loaders with ``widen_features=True`` and
    :func:`~torch_gsample.ops.gather_rows` convert it back to float32.

    Args:
        input (torch.Tensor): ``[num_rows, *]`` in a floating-point dtype.

    Returns:
        Tuple[torch.Tensor, torch.Tensor]: int8 ``[num_rows, *]`` and float32
        ``[num_rows]``.

    Raises:
        TypeError: If ``input`` is not of a floating-point dtype.
        ValueError: If it is a scalar, or an element is not finite in float32.

    Example:
        >>> values, scale = quantize_rows(torch.tensor([[1.0, -127.0]]))
        >>> values, scale
        (tensor([[   1, -127]], dtype=torch.int8), tensor([1.]))
    """
    if not isinstance(input, Tensor) or not input.is_floating_point():
        got = input.dtype if isinstance(input, Tensor) else type(input)
        raise TypeError(
            f"quantize_rows: 'input' must be a floating-point tensor (got "
            f'{got})'
        )
    if input.dim() == 0:
        raise ValueError(
            "quantize_rows: 'input' must have at least one dimension (got "
            'shape [])'
        )
    values = torch.empty(input.shape, dtype=torch.int8, device=input.device)
    if values.is_cpu:
        use_huge_pages(values)
    scale = torch.zeros(input.shape[0], device=input.device)
    if input.numel() == 0:
        return values, scale
    for begin in range(0, input.shape[0], _ROWS):
        part = slice(begin, begin + _ROWS)
        x = input[part].to(torch.float32)
        rows = x.reshape(x.shape[0], -1)
        most = rows.abs().amax(dim=1)
        if not most.isfinite().all():
            row = begin + int((~most.isfinite()).nonzero()[0, 0])
            raise ValueError(
                f"quantize_rows: 'input' must be finite in float32 (row {row} "
                f'is not)'
            )
        scale[part] = (most / 127).clamp(max=_MOST)
        by = scale[part, None]
        # A scale may be subnormal, and far from a 127th then.
        steps = (rows / by).round().clamp(-127, 127)
        steps = steps.where(by > 0, 0)
        values[part] = steps.to(torch.int8).view(x.shape)
    return values, scale
