"""The draws of dropout, in plain loops."""

import torch

from tests.reference_core import philox


def key_of(seed):
    """The key that the first program draws after a seed; seeds torch."""
    torch.manual_seed(seed)
    key = int(torch.randint((1 << 63) - 1, (1,)))
    torch.manual_seed(seed)
    return key


def factors(key, call, shape, p, dtype=torch.float64, rows=None):
    """What each value is multiplied by: ``[rows, ...]``."""
    rows = range(shape[0]) if rows is None else rows
    width = torch.Size(shape[1:]).numel()
    least = min(round((1 - p) * 2**32), 2**32 - 1)
    drawn = [
        philox(key, (position // 4, call, row & 0xFFFFFFFF, row >> 32))[
            position % 4
        ]
        < least
        for row in rows
        for position in range(width)
    ]
    return torch.tensor(drawn, dtype=dtype).view(shape) / (1 - p)
