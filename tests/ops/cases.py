"""Arguments that the tests of neighbour sampling share."""

import torch

from tests.ops.compare import assert_equals_reference
from torch_gsample import ops
from torch_gsample.testing import assert_valid_sample, random_edge_time

# Fan-outs for each path of a column: none, all, some, many at once, and more
# than fit in a group of draws.
FANOUTS = ([], [0], [1], [3, 2], [-1, 1], [2, 0, 2], [20], [40, 3], [100])

OPTIONS = {
    'plain': {},
    'replace': {'replace': True},
    'disjoint': {'disjoint': True},
    'weighted': {'weighted': True},
    'weighted-replace': {'weighted': True, 'replace': True},
    'weighted-disjoint': {'weighted': True, 'disjoint': True},
    'temporal': {'temporal': True},
    'temporal-replace': {'temporal': True, 'replace': True},
    'temporal-last': {'temporal': True, 'temporal_strategy': 'last'},
    'temporal-window': {'temporal': True, 'time_window': 4},
    'temporal-weighted': {'temporal': True, 'weighted': True},
    'temporal-all': {
        'temporal': True,
        'weighted': True,
        'temporal_strategy': 'last',
        'time_window': 6,
        'replace': True,
    },
}


def some_seeds(graph):
    """Three nodes, one of them twice; fewer where there are fewer."""
    n = graph.num_cols
    return torch.tensor([n - 1, 0, n // 2, n - 1] if n else [], dtype=int)


def some_weights(graph, seed=0):
    """A third of the weights is 0, the others differ in magnitude."""
    generator = torch.Generator().manual_seed(seed)
    size = (graph.num_edges,)
    exponent = torch.randint(-6, 7, size, generator=generator)
    mantissa = torch.rand(size, generator=generator, dtype=torch.float64)
    zero = torch.randint(3, size, generator=generator) == 0
    return torch.ldexp(mantissa, exponent).masked_fill(zero, 0)


def arguments(graph, seeds, weighted=False, temporal=False, **options):
    """Arguments of the operator, and of `assert_valid_sample`."""
    shared, own, check = dict(options), {}, {}
    if weighted:
        weight = check['weight'] = some_weights(graph)
        own['cum_weight'] = ops.cumulate_weights(graph.indptr, weight)
    if temporal:
        shared['disjoint'] = True
        shared['edge_time'] = random_edge_time(graph, 10, seed=0)
        shared['seed_time'] = torch.arange(len(seeds)) * 3 % 12
    return {**shared, **own}, {**shared, **check}


def sample_checked(graph, seeds, fanouts, key, *, call_id=0, **options):
    """Samples, and compares with the reference and the rules."""
    given, rules = arguments(graph, seeds, **options)
    out = assert_equals_reference(
        'neighbor_sample',
        graph.indptr,
        graph.indices,
        seeds,
        fanouts,
        operator=ops.neighbor_sample,
        key=key,
        call_id=call_id,
        **given,
    )
    assert_valid_sample(
        out, graph.indptr, graph.indices, seeds, fanouts, **rules
    )
    assert all(tensor.dtype == torch.int64 for tensor in out)
    return out
