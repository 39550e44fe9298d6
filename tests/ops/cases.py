"""Arguments that the tests of neighbour sampling share."""

import torch

from tests.ops.compare import assert_equal_tensors, assert_equals_reference
from tests.ops.neighbors import (
    make_graph,
    operator_arguments,
    sample_one,
    typed,
)
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


def some_ids(limit, size, seed=0):
    """Ids below a limit; none where there is nothing below it."""
    generator = torch.Generator().manual_seed(seed)
    size = size if limit > 0 else 0
    return torch.randint(max(limit, 1), (size,), generator=generator)


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
    """Samples from one relation; compares with the reference and rules."""
    given, rules = arguments(graph, seeds, **options)
    out = sample_one(
        *(graph.indptr, graph.indices, seeds, fanouts),
        key=key,
        call_id=call_id,
        **given,
    )
    fields = [given.pop(name, None) for name in ('cum_weight', 'edge_time')]
    seed_time = given.pop('seed_time', None)
    all_equal_reference(
        make_graph(
            *([graph.indptr], [graph.indices], [(0, 0)], [graph.num_cols]),
            *(None if field is None else [field] for field in fields),
        ),
        [seeds],
        [fanouts],
        key,
        call_id=call_id,
        seed_time=None if seed_time is None else [seed_time],
        **given,
    )
    assert_valid_sample(
        out, graph.indptr, graph.indices, seeds, fanouts, **rules
    )
    assert all(tensor.dtype == torch.int64 for tensor in out)
    return out


def all_equal_reference(graph, seeds, fanouts, key, **options):
    """Samples, padded and not, equal those of plain loops."""
    flat = [fanout for of_relation in fanouts for fanout in of_relation]
    args = operator_arguments(graph, seeds, flat, key, **options)
    out = assert_equals_reference('sample_neighbors', *args)
    own = ('call_id', 'seed_time')
    given = {name: options.pop(name) for name in own if name in options}
    sample = ops.sample_neighbors(
        *(graph, seeds, fanouts, key),
        sampling=ops.Sampling(**options),
        **given,
    )
    assert_equal_tensors(sample[:6], out)
    sizes = sample.num_edges.sum(1).tolist()
    most = [size + r % 4 for r, size in enumerate(sizes)]
    out = assert_equals_reference('sample_neighbors', *args[:-1], most)
    padded = ops.sample_neighbors(
        *(graph, seeds, fanouts, key),
        sampling=ops.Sampling(**options),
        max_edges=most,
        **given,
    )
    assert_equal_tensors(padded.check()[:6], out)
    assert_padded(typed(padded), typed(sample))
    return sample


def assert_padded(padded, sample):
    """A sample, and -1 after the edges of each relation and type's nodes."""
    for of_padded, of_all in zip(padded[:5], sample[:5], strict=True):
        for out, want in zip(of_padded, of_all, strict=True):
            assert torch.equal(out[: len(want)], want)
            assert (out[len(want) :] == -1).all()
    assert_equal_tensors(padded[5:], sample[5:])
