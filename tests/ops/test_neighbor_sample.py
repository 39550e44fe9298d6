import pytest
import torch

from tests.ops.cases import FANOUTS, OPTIONS, sample_checked, some_seeds
from tests.ops.compare import assert_equal_tensors
from torch_gsample import ops
from torch_gsample.rng import EPOCH_SCOPE, make_key
from torch_gsample.testing import (
    SMALL_GRAPHS,
    assert_valid_sample,
    small_graph,
    to_dtypes,
    with_index_dtypes,
)


@with_index_dtypes
@pytest.mark.parametrize('options', OPTIONS)
@pytest.mark.parametrize('name', SMALL_GRAPHS)
def test_samples_equal_the_reference(name, options, index_dtypes):
    graph = to_dtypes(small_graph(name), index_dtypes)
    for call, fanouts in enumerate(FANOUTS):
        sample_checked(
            graph,
            some_seeds(graph),
            fanouts,
            make_key(call, epoch=2, batch=3),
            **OPTIONS[options],
        )


@pytest.mark.parametrize('options', ['plain', 'disjoint', 'temporal'])
def test_epoch_scope_shares_draws_among_batches_and_trees(options):
    graph = small_graph('random')
    seeds = torch.tensor([7, 7, 30])
    out = sample_checked(
        graph,
        seeds,
        [3, 2],
        make_key(5, epoch=1, batch=EPOCH_SCOPE),
        **OPTIONS[options],
    )
    edges = [out.edge[out.col == i].tolist() for i in range(2)]
    if options != 'temporal':
        assert edges[0] == edges[1]


def test_batches_epochs_and_seeds_differ():
    graph = small_graph('hub')
    keys = [make_key(0), make_key(1), make_key(0, 1), make_key(0, 0, 1)]
    keys += [make_key(0, 0, 2**32), make_key(0, 1, EPOCH_SCOPE)]
    samples = {
        tuple(sample_checked(graph, torch.tensor([0]), [5], key).edge.tolist())
        for key in keys
    }
    assert len(samples) == len(keys)


@pytest.mark.parametrize('call_id', [1, 17, 65535])
def test_a_hop_draws_as_a_call_of_its_own(call_id):
    graph, key = small_graph('random'), make_key(3)
    two = sample_checked(
        graph, torch.tensor([4, 8]), [2, 3], key, call_id=call_id - 1
    )
    seeds, found, _ = two.num_nodes.tolist()
    frontier = two.node[seeds : seeds + found]
    one = sample_checked(graph, frontier, [3], key, call_id=call_id)
    assert found > 0
    assert torch.equal(one.edge, two.edge[two.num_edges[0] :])


def test_duplicate_seeds_keep_a_place_each():
    graph = small_graph('path')
    out = sample_checked(graph, torch.tensor([3, 3]), [-1, -1], make_key(0))
    assert out.node.tolist() == [3, 3, 2, 1]
    assert out.row.tolist() == [2, 2, 3]
    assert out.col.tolist() == [0, 1, 2]


def test_rows_refer_to_the_first_of_duplicate_seeds():
    graph = small_graph('self_loop')
    out = sample_checked(graph, torch.tensor([0, 0]), [-1], make_key(0))
    assert out.row.tolist() == [0, 0]
    assert out.col.tolist() == [0, 1]


def test_edges_are_left_out_on_request():
    graph = small_graph('random')
    args = (graph.indptr, graph.indices, torch.arange(5), [4, 4])
    full = ops.neighbor_sample(*args, key=make_key(0))
    bare = ops.neighbor_sample(*args, key=make_key(0), return_edge_id=False)
    assert bare.edge.numel() == 0
    assert_equal_tensors(bare._replace(edge=full.edge), full)
    assert_valid_sample(bare, *args)


def test_zero_weights_are_never_taken_and_may_leave_no_edge():
    graph = small_graph('star')
    weight = torch.zeros(graph.num_edges)
    cum_weight = ops.cumulate_weights(graph.indptr, weight)
    for fanout in (-1, 3, 100):
        for replace in (False, True):
            out = ops.neighbor_sample(
                graph.indptr,
                graph.indices,
                torch.tensor([0]),
                [fanout],
                key=make_key(0),
                cum_weight=cum_weight,
                replace=replace,
            )
            assert out.row.numel() == 0


def test_the_sample_of_a_key_never_changes():
    # What users have published with a seed must stay what it was.
    graph = small_graph('random')
    out = ops.neighbor_sample(
        graph.indptr,
        graph.indices,
        torch.tensor([0, 1]),
        [2, 1],
        key=make_key(42, epoch=1, batch=2),
    )
    assert out.edge.tolist() == [1, 11, 20, 14, 80, 326, 250, 83]
