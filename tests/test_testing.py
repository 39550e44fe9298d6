"""`assert_valid_sample` finds each kind of fault in a sample."""

import pytest
import torch

from tests.ops.cases import arguments
from tests.ops.neighbors import sample_one
from torch_gsample import ops
from torch_gsample.rng import make_key
from torch_gsample.testing import (
    INDEX_DTYPES,
    SMALL_GRAPHS,
    assert_valid_sample,
    from_columns,
    random_edge_time,
    random_graph,
    small_graph,
    to_dtypes,
    with_index_dtypes,
)

# 0 is fed by 1, 2, 3 and 4, and each of them by 5, 6 and 7.
GRAPH = from_columns(
    [[1, 2, 3, 4], [5, 6, 7], [5, 6, 7], [5, 6, 7], [5, 6, 7], [], [], []]
)
SEEDS = torch.tensor([0, 0])
FANOUTS = [2, 2]


def sample(fanouts=FANOUTS, **options):
    return sample_one(
        GRAPH.indptr,
        GRAPH.indices,
        SEEDS,
        fanouts,
        key=make_key(1),
        **options,
    )


def check(out, fanouts=FANOUTS, seeds=SEEDS, **options):
    assert_valid_sample(
        out, GRAPH.indptr, GRAPH.indices, seeds, fanouts, **options
    )


def changed(tensor, position, value):
    tensor = tensor.clone()
    tensor[position] = value
    return tensor


def swapped(tensor, i, j):
    tensor = tensor.clone()
    tensor[[i, j]] = tensor[[j, i]]
    return tensor


def without(tensor, i):
    return torch.cat([tensor[:i], tensor[i + 1 :]])


def twice(out):
    """The first edge of the second seed stands in for its other one, too."""
    return out._replace(
        edge=changed(out.edge, 3, out.edge[2]),
        row=changed(out.row, 3, out.row[2]),
    )


FAULTS = {
    'seeds do not come first': lambda out: out._replace(node=out.node.flip(0)),
    'an edge has another row': lambda out: out._replace(
        edge=changed(out.edge, 0, (out.edge[0] + 1) % 4)
    ),
    'an edge has another column': lambda out: out._replace(
        edge=changed(out.edge, 4, (out.edge[4] - 4 + 3) % 12 + 4)
    ),
    'an edge is taken twice': twice,
    'an edge is missing': lambda out: out._replace(
        row=without(out.row, 6),
        col=without(out.col, 6),
        edge=without(out.edge, 6),
        num_edges=out.num_edges - torch.tensor([0, 1]),
    ),
    'edges are in another order': lambda out: out._replace(
        row=swapped(out.row, 4, 6),
        col=swapped(out.col, 4, 6),
        edge=swapped(out.edge, 4, 6),
    ),
    'local ids are in another order': lambda out: out._replace(
        node=swapped(out.node, 2, 3),
        row=torch.cat([out.row[:4].flip(0), out.row[4:]]),
    ),
    'a node occurs twice': lambda out: out._replace(
        node=torch.cat([out.node, out.node[-1:]]),
        num_nodes=out.num_nodes + torch.tensor([0, 0, 1]),
    ),
    'a node has no edge': lambda out: out._replace(
        node=torch.cat([out.node, torch.tensor([4])]),
        num_nodes=out.num_nodes + torch.tensor([0, 0, 1]),
    ),
    'hop counts of nodes do not add up': lambda out: out._replace(
        num_nodes=out.num_nodes + torch.tensor([0, 1, 0])
    ),
    'a node counts for another hop': lambda out: out._replace(
        num_nodes=out.num_nodes + torch.tensor([0, 1, -1])
    ),
    'hop counts of edges do not add up': lambda out: out._replace(
        num_edges=out.num_edges + torch.tensor([1, 0])
    ),
    'an edge counts for another hop': lambda out: out._replace(
        num_edges=out.num_edges + torch.tensor([-1, 1])
    ),
    'a hop is missing': lambda out: out._replace(num_nodes=out.num_nodes[:2]),
}


@pytest.mark.parametrize('fault', FAULTS)
def test_faults_are_seen(fault):
    out = sample()
    check(out)
    with pytest.raises(AssertionError):
        check(FAULTS[fault](out))
    bare = out._replace(edge=out.edge[:0])
    check(bare)


def test_rows_refer_to_the_first_of_equal_seeds():
    loop = small_graph('self_loop')
    args = (loop.indptr, loop.indices, torch.tensor([0, 0]), [1])
    out = sample_one(*args, key=make_key(0))
    assert_valid_sample(out, *args)
    with pytest.raises(AssertionError):
        assert_valid_sample(out._replace(row=torch.tensor([0, 1])), *args)


def test_fan_outs_are_seen():
    for fanouts in ([1, 2], [3, 2], [2, 1], [-1, 2]):
        with pytest.raises(AssertionError):
            check(sample(fanouts))
        check(sample(fanouts), fanouts)


def test_edges_without_ids_are_looked_up_by_their_ends():
    out = sample(return_edge_id=False)
    check(out)
    with pytest.raises(AssertionError):
        check(out._replace(node=changed(out.node, -1, 4)))


def test_replacement_is_seen():
    check(sample([50, 0], replace=True), [50, 0], replace=True)
    with pytest.raises(AssertionError):
        check(sample([50, 0], replace=True), [50, 0])
    with pytest.raises(AssertionError):
        check(sample([50, 0]), [50, 0], replace=True)
    check(twice(sample()), replace=True)


def test_all_candidates_come_in_the_order_of_the_graph():
    out = sample([4, 0])
    check(out, [4, 0])
    out = out._replace(
        edge=swapped(out.edge, 0, 1),
        node=swapped(out.node, 2, 3),
        row=torch.tensor([2, 3, 4, 5, 3, 2, 4, 5]),
    )
    with pytest.raises(AssertionError):
        check(out, [4, 0])


def test_trees_are_seen():
    out = sample(disjoint=True)
    check(out, disjoint=True)
    for batch in (
        out.batch.flip(0),
        changed(out.batch, 2, 1),
        changed(out.batch, 1, 0),
        out.batch[:0],
    ):
        with pytest.raises(AssertionError):
            check(out._replace(batch=batch), disjoint=True)
    with pytest.raises(AssertionError):
        check(out)
    with pytest.raises(AssertionError):
        check(sample(), disjoint=True)


def test_weights_are_seen():
    weight = torch.ones(GRAPH.num_edges)
    weight[[0, 1, 2]] = 0
    cum_weight = ops.cumulate_weights(GRAPH.indptr, weight)
    check(sample(cum_weight=cum_weight), weight=weight)
    with pytest.raises(AssertionError):
        check(sample(), weight=weight)
    with pytest.raises(AssertionError):
        check(sample(cum_weight=cum_weight))


def test_times_are_seen():
    graph = random_graph(20, 200, seed=1)
    seeds = torch.arange(4)
    options = {
        'temporal_strategy': 'last',
        'time_window': 5,
        'edge_time': random_edge_time(graph, 9, seed=0),
        'seed_time': torch.tensor([3, 4, 5, 6]),
        'disjoint': True,
    }
    args = (graph.indptr, graph.indices, seeds, [3, 2])
    out = sample_one(*args, key=make_key(0), **options)
    assert_valid_sample(out, *args, **options)
    for name, value in {
        'temporal_strategy': 'uniform',
        'time_window': 6,
        'seed_time': torch.tensor([3, 4, 5, 8]),
    }.items():
        other = {**options, name: value}
        assert_valid_sample(
            sample_one(*args, key=make_key(0), **other),
            *args,
            **other,
        )
    for seed in range(3):
        other = {**options, 'seed_time': torch.tensor([8, 8, 8, 8])}
        late = sample_one(*args, key=make_key(seed), **other)
        with pytest.raises(AssertionError):
            assert_valid_sample(late, *args, **options)
        other = {**options, 'temporal_strategy': 'uniform'}
        any_edge = sample_one(*args, key=make_key(seed), **other)
        with pytest.raises(AssertionError):
            assert_valid_sample(any_edge, *args, **options)


@with_index_dtypes
def test_small_graphs_are_well_formed(index_dtypes):
    assert index_dtypes in INDEX_DTYPES
    for name in SMALL_GRAPHS:
        graph = to_dtypes(small_graph(name), index_dtypes)
        assert (graph.indptr.dtype, graph.indices.dtype) == index_dtypes
        ops.formats.check_csc(graph.indptr, graph.indices, graph.num_rows)
        assert graph.num_cols == graph.num_rows


def test_names_of_graphs_are_checked():
    with pytest.raises(ValueError, match="'name' must be one of empty, isol"):
        small_graph('torus')


def test_random_graphs_repeat():
    first, second, other = (random_graph(9, 30, seed=s) for s in (1, 1, 2))
    assert torch.equal(first.indices, second.indices)
    assert torch.equal(first.indptr, second.indptr)
    assert not torch.equal(first.indices, other.indices)
    assert random_graph(9, 30, num_rows=2, seed=0).indices.max() < 2


def test_random_times_ascend_in_each_column():
    graph = random_graph(9, 300, seed=1)
    time = random_edge_time(graph, 50, seed=0)
    for begin, end in zip(graph.indptr, graph.indptr[1:], strict=False):
        assert (time[begin:end].diff() >= 0).all()
    assert len(time.unique()) == 50
    assert arguments(graph, torch.tensor([0]), temporal=True)
