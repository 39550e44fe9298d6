"""Every message of layers, of fronts and operator, and what raises it."""

import torch

from torch_gsample import ops
from torch_gsample.rng import make_key

KEY = make_key(0)
INDPTR = torch.tensor([0, 2, 3, 3])
INDICES = torch.tensor([1, 2, 2])
SEEDS = torch.tensor([0, 2])


def sample_hops(fanouts=(1,), key=(KEY,), **kw):
    return ops.sample_hops(INDPTR, INDICES, SEEDS, fanouts, key=key, **kw)


def layers(fanouts=((1,),), key=(KEY,), **kw):
    return ops.hetero_sample_hops(
        [INDPTR], [INDICES], [(0, 0)], [3], [SEEDS], fanouts, key=key, **kw
    )


HOPS_ERRORS = [
    (ValueError, lambda: sample_hops([1, 2]), "'key' must have 2 items, one "),
    (ValueError, lambda: sample_hops(call_id=[]), "'call_id' must have 1 it"),
    (
        ValueError,
        lambda: sample_hops(frontier='all'),
        "'frontier' must be one of row, nodes, new, unseen (got 'all')",
    ),
    (
        ValueError,
        lambda: layers(frontier='new'),
        "hetero_sample_hops: 'frontier' must be one of row, nodes (got 'new'",
    ),
    (ValueError, lambda: layers([]), 'relation (got 1, 1, 1 and 0)'),
    (ValueError, lambda: layers([[1, 2]]), "'key' must have 2 items, one for"),
    (ValueError, lambda: layers(call_id=[]), "'call_id' must have 1 items,"),
    (TypeError, lambda: layers(key=[None]), "'key' must be an int64 tensor"),
    (
        ValueError,
        lambda: layers(edge_time=[INDICES], seed_time=[SEEDS]),
        "temporal sampling needs 'disjoint=True'",
    ),
    (ValueError, lambda: layers(time_window=-1), "'time_window' must not be"),
]


def operator(
    indptr=INDPTR,
    indices=INDICES,
    src=(0,),
    num_nodes=(3,),
    seeds=(SEEDS,),
    fanouts=(2, 2),
    key=(KEY, KEY),
    call_id=(0, 1),
    **kw,
):
    return torch.ops.gsample.hetero_sample_hops(
        *([indptr], [indices], src, [0], num_nodes, seeds, fanouts),
        *([], [], [], key, call_id),
        **kw,
    )


LAYERS = {
    "hetero_sample_hops: 'seeds' must be in [0, 3) (got 3 at pos": lambda: (
        operator(seeds=[SEEDS + 1])
    ),
    "hetero_sample_hops: 'indptr' must ascend from 0 to the 3 edg": lambda: (
        operator(torch.tensor([0, 4, 2, 3]))
    ),
    "hetero_sample_hops: 'indices' must be in [0, 3) (they are no": lambda: (
        operator(indices=INDICES + 1)
    ),
    "hetero_sample_hops: 'src' and 'dst' must name one of 1 node": lambda: (
        operator(src=[1])
    ),
    "hetero_sample_hops: 'key' and 'call_id' must have one item": lambda: (
        operator(key=[KEY])
    ),
    "hetero_sample_hops: 'key' must be a contiguous int64 tensor": lambda: (
        operator(key=[KEY, KEY[0]])
    ),
    "hetero_sample_hops: 'call_id' must be in [0, 65536) (got -1)": lambda: (
        operator(call_id=[0, -1])
    ),
    "hetero_sample_hops: 'fanouts' must be -1 or more, and less t": lambda: (
        operator(fanouts=[-2, 0])
    ),
    "'frontier' must be 0 for 'row' or 1 for 'nodes' (got 2); hete": lambda: (
        operator(frontier=2)
    ),
    'hetero_sample_hops: a hop has 6442450941 edges or nodes, mor': lambda: (
        operator(
            INDPTR.int(),
            INDICES.int(),
            seeds=[torch.zeros(3, dtype=torch.int64)],
            fanouts=[2**31 - 1] * 2,
            replace=True,
        )
    ),
    'hetero_sample_hops: too many seeds (2)': lambda: operator(
        num_nodes=[3, 2**62], seeds=[SEEDS, SEEDS[:0]], disjoint=True
    ),
}
