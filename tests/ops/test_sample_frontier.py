"""One hop of columns that lie elsewhere, against the reference."""

import pytest
import torch

from tests.ops.cases import some_weights
from tests.ops.compare import assert_equal_tensors, assert_equals_reference
from torch_gsample import ops
from torch_gsample.rng import make_key
from torch_gsample.testing import SMALL_GRAPHS, random_graph, small_graph

OPTIONS = {
    'plain': {},
    'replace': {'replace': True},
    'weighted': {'weighted': True},
    'weighted-replace': {'weighted': True, 'replace': True},
    'temporal': {'temporal': True},
    'window': {'temporal': True, 'time_window': 3},
    'last': {'temporal': True, 'temporal_strategy': 'last'},
    'weighted-temporal': {'weighted': True, 'temporal': True},
}


def arguments(graph, weighted=False, temporal=False, **options):
    n = graph.num_cols
    if weighted:
        options['cum_weight'] = ops.cumulate_weights(
            graph.indptr, some_weights(graph)
        )
    if temporal:
        time = torch.arange(graph.num_edges)
        options['edge_time'] = time - graph.indptr[:-1].long()[graph.col()]
        options['column_time'] = torch.arange(n) % 7
    return options


@pytest.mark.parametrize('options', OPTIONS)
@pytest.mark.parametrize('name', SMALL_GRAPHS)
def test_a_frontier_equals_the_reference(name, options):
    graph = small_graph(name)
    n = graph.num_cols
    given = arguments(graph, **OPTIONS[options])
    for k in (-1, 0, 1, 3, 70):
        assert_equals_reference(
            'sample_frontier',
            graph.indptr.long(),
            torch.arange(n) * 1000,
            torch.arange(n) * 3 % 11 + 2**33,
            k,
            make_key(5, 2, 7),
            3,
            4,
            root=torch.arange(n) % 5 if k % 2 else None,
            **given,
        )


@pytest.mark.parametrize('options', OPTIONS)
def test_it_draws_what_a_hop_of_neighbor_sample_draws(options):
    graph = random_graph(6_000, 90_000, seed=2)
    given = arguments(graph, **OPTIONS[options])
    key, seeds = make_key(4, 1, -1), torch.arange(6_000)
    indptr = graph.indptr.long()
    outs = [
        ops.sample_frontier(
            indptr,
            indptr[:-1],
            seeds,
            4,
            key=key,
            num_threads=threads,
            **given,
        )
        for threads in (1, 3)
    ]
    assert_equal_tensors(*outs)
    time = given.pop('column_time', None)
    out = ops.neighbor_sample(
        graph.indptr,
        graph.indices,
        seeds,
        [4],
        key=key,
        seed_time=time,
        disjoint=time is not None,
        **given,
    )
    assert torch.equal(out.edge, outs[0][1])
