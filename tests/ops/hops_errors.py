"""Every message of the front of `sample_hops`, and a call that raises it."""

import torch

from torch_gsample import ops
from torch_gsample.rng import make_key

KEY = make_key(0)
INDPTR = torch.tensor([0, 2, 3, 3])
INDICES = torch.tensor([1, 2, 2])
SEEDS = torch.tensor([0, 2])


def sample_hops(fanouts=(1,), key=(KEY,), **kw):
    return ops.sample_hops(INDPTR, INDICES, SEEDS, fanouts, key=key, **kw)


HOPS_ERRORS = [
    (ValueError, lambda: sample_hops([1, 2]), "'key' must have 2 items, one "),
    (ValueError, lambda: sample_hops(call_id=[]), "'call_id' must have 1 it"),
    (
        ValueError,
        lambda: sample_hops(frontier='all'),
        "'frontier' must be one of row, nodes, new, unseen (got 'all')",
    ),
]
