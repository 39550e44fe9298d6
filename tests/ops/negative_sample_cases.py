"""Arguments of `negative_sample`."""

import torch

from torch_gsample import ops
from torch_gsample.testing import from_columns

ORDER = torch.tensor([3, 0, 5, 1, 4, 2])
ORDER_TIME = torch.tensor([1, 1, 2, 5, 8, 8])
WEIGHT = torch.tensor([0.5, 2.0, 0.0, 1.0, 4.0, 0.0])


def neighbors(columns):
    """Sorted neighbours of each anchor."""
    graph = from_columns([sorted(column) for column in columns])
    return {'indptr': graph.indptr, 'indices': graph.indices}


def cumulated(weight):
    return ops.cumulate_weights(torch.tensor([0, len(weight)]), weight)


# The neighbours of some anchors: none, few, all but one, and all.
EDGES = neighbors([[], [2, 3], [0, 1, 2, 3, 5], [0, 1, 2, 3, 4, 5], [4], [4]])

OPTIONS = {
    'plain': {},
    'weighted': {'cum_weight': cumulated(WEIGHT)},
    'edges': {'anchor': True},
    'time': {'time': True},
    'weighted edges': {'cum_weight': cumulated(WEIGHT), 'anchor': True},
    'weighted time': {'cum_weight': cumulated(WEIGHT), 'time': True},
    'all': {'cum_weight': cumulated(WEIGHT), 'anchor': True, 'time': True},
}


def arguments(n, cum_weight=None, anchor=False, time=False):
    given = {'cum_weight': cum_weight}
    if anchor:
        given |= {'anchor': torch.arange(n) % 6, **EDGES}
    if time:
        given |= {'order': ORDER, 'order_time': ORDER_TIME}
        given['max_time'] = torch.arange(n) % 11
    return given
