"""Every message of `sample_frontier`, and a call that raises it."""

import torch

from torch_gsample import ops
from torch_gsample.rng import make_key

KEY = make_key(0)
INDPTR = torch.tensor([0, 2, 3])
NODES = torch.tensor([4, 7])
TIME = torch.tensor([1, 2, 3])


def front(indptr=INDPTR, start=NODES, id=NODES, k=1, key=KEY, **kw):
    return ops.sample_frontier(indptr, start, id, k, key=key, **kw)


def operator(
    indptr=INDPTR, start=NODES, id=NODES, k=1, call_id=0, relation=0, **kw
):
    return torch.ops.gsample.sample_frontier(
        indptr, start, id, k, KEY, call_id, relation, **kw
    )


FRONTIER_ERRORS = [
    (
        ValueError,
        lambda: front(edge_time=TIME),
        "'edge_time' and 'column_time' must be given together",
    ),
    (ValueError, lambda: front(start=TIME), "'start' must have 2 elements"),
    (ValueError, lambda: front(id=TIME), "'id' must have 2 elements (got 3)"),
    (ValueError, lambda: front(root=TIME), "'root' must have 2 elements (got"),
    (ValueError, lambda: front(k=-2), "'k' must be at least -1 (got -2)"),
    (
        ValueError,
        lambda: front(cum_weight=TIME),
        "'cum_weight' must have 4 elements (got 3)",
    ),
]

FRONTIERS = {
    "sample_frontier: 'indptr' must not be empty": lambda: operator(TIME[:0]),
    "sample_frontier: 'indptr' must ascend from 0 (got": lambda: operator(
        INDPTR + 1
    ),
    "sample_frontier: 'indptr' must ascend from 0 to 3": lambda: operator(
        torch.tensor([0, 4, 3])
    ),
    "sample_frontier: 'k' must be -1 or more (got -2)": lambda: operator(k=-2),
    "sample_frontier: 'k' must be less than 2^31 with replacement": lambda: (
        operator(k=2**31, replace=True)
    ),
    'columns of 2147483647 edges are too many': lambda: operator(
        torch.zeros(2**28 + 2, dtype=torch.int64),
        *[torch.empty(0, dtype=torch.int64)] * 2,
        k=2**31 - 1,
        replace=True,
    ),
    "sample_frontier: 'relation' must be in [0, 65280)": lambda: operator(
        relation=65280
    ),
    "sample_frontier: 'edge_time' and 'column_time' must be given together": (
        lambda: operator(column_time=NODES)
    ),
    "sample_frontier: 'temporal_strategy' must be 0 for 'unifo": lambda: (
        operator(temporal_strategy=2)
    ),
    "sample_frontier: 'time_window' must not be negative": lambda: operator(
        time_window=-1
    ),
}
