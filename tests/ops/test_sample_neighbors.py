import pytest
import torch

from tests.ops import typed as types
from tests.ops.cases import (
    FANOUTS,
    OPTIONS,
    all_equal_reference,
    sample_checked,
    some_seeds,
)
from tests.ops.compare import assert_equal_tensors, digest, lists
from tests.ops.neighbors import (
    NONE,
    make_graph,
    sample_one,
    sample_typed,
    typed,
)
from torch_gsample import ops
from torch_gsample.rng import EPOCH_SCOPE, make_key
from torch_gsample.testing import (
    INDEX_DTYPES,
    SMALL_GRAPHS,
    assert_valid_sample,
    from_columns,
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
    full = sample_one(*args, key=make_key(0))
    bare = sample_one(*args, key=make_key(0), return_edge_id=False)
    assert bare.edge.numel() == 0
    assert_equal_tensors(bare._replace(edge=full.edge), full)
    assert_valid_sample(bare, *args)


def test_zero_weights_are_never_taken_and_may_leave_no_edge():
    graph = small_graph('star')
    weight = torch.zeros(graph.num_edges)
    cum_weight = ops.cumulate_weights(graph.indptr, weight)
    for fanout in (-1, 3, 100):
        for replace in (False, True):
            out = sample_one(
                graph.indptr,
                graph.indices,
                torch.tensor([0]),
                [fanout],
                key=make_key(0),
                cum_weight=cum_weight,
                replace=replace,
            )
            assert out.row.numel() == 0


# Several node types and relations.


def sample_types(fanouts, key, index_dtypes=INDEX_DTYPES[0], **options):
    graphs = [to_dtypes(g, index_dtypes) for g in types.some_graphs()]
    seeds = types.some_seeds()
    graph, times, given = types.graph_and_options(graphs, seeds, **options)
    return typed(
        all_equal_reference(
            graph, seeds, fanouts, key, seed_time=times, **given
        )
    )


@with_index_dtypes
@pytest.mark.parametrize('options', OPTIONS)
def test_samples_of_types_equal_the_reference(options, index_dtypes):
    for call, fanouts in enumerate(types.FANOUTS):
        key = make_key(call, epoch=1, batch=7)
        sample_types(
            *(fanouts, key, index_dtypes),
            return_edge_id=call != 2,
            **OPTIONS[options],
        )


def test_types_in_the_epoch_scope_equal_the_reference():
    key = make_key(0, epoch=1, batch=EPOCH_SCOPE)
    out = sample_types(types.FANOUTS[1], key, disjoint=True)
    first, third = (out.edge[1][out.col[1] == i].tolist() for i in (0, 2))
    assert first == third  # a seed that occurs again draws the same


def test_relations_draw_independently():
    graph = small_graph('hub')
    out = sample_typed(
        [graph.indptr] * 3,
        [graph.indices] * 3,
        [(0, 0)] * 3,
        [graph.num_cols],
        [torch.tensor([0])],
        [[6]] * 3,
        key=make_key(0),
    )
    assert len({tuple(edge.tolist()) for edge in out.edge}) == 3


def test_trees_are_numbered_through_all_types():
    out = sample_types(types.FANOUTS[1], make_key(0), disjoint=True)
    assert out.batch[0][:3].tolist() == [0, 1, 2]
    assert out.batch[1][:4].tolist() == [3, 4, 5, 6]


def test_latest_edges_are_taken_only_where_edges_have_times():
    # Relation 1 has no times: the latest of its edges would be the last
    # ones of the graph, every time.
    star = small_graph('star')
    time = torch.arange(9)
    taken = set()
    for seed in range(20):
        out = sample_typed(
            [star.indptr, star.indptr],
            [star.indices, star.indices],
            [(0, 0), (0, 0)],
            [10],
            [torch.tensor([0])],
            [[2], [2]],
            key=make_key(seed),
            edge_time=[time, None],
            seed_time=[torch.tensor([5])],
            temporal_strategy='last',
            disjoint=True,
        )
        assert out.edge[0].tolist() == [4, 5]
        taken |= set(out.edge[1].tolist())
    assert taken == set(range(9))


def test_types_and_relations_may_be_missing():
    out = sample_typed(
        [], [], [], [3, 0], [torch.tensor([2, 1]), torch.tensor([]).long()],
        [], key=make_key(0)
    )  # fmt: skip
    assert lists(out.node) == [[2, 1], []]
    assert out.num_nodes.tolist() == [[2], [0]]
    assert out.num_edges.shape == (0, 0)
    out = sample_typed([], [], [], [], [], [], key=make_key(0))
    assert out.node == []


def test_order_of_relations_is_order_of_local_ids():
    # Both relations bring new nodes of type 0 to the column of type 1.
    graph = from_columns([[2, 0]])
    other = from_columns([[1, 0]])
    out = sample_typed(
        [graph.indptr, other.indptr],
        [graph.indices, other.indices],
        [(0, 1), (0, 1)],
        [3, 1],
        [torch.tensor([]).long(), torch.tensor([0])],
        [[-1], [-1]],
        key=make_key(0),
    )
    assert lists(out.node) == [[2, 0, 1], [0]]
    assert lists(out.row) == [[0, 1], [2, 1]]


@pytest.mark.parametrize('options', OPTIONS)
def test_threads_and_dtypes_change_nothing(options):
    scale, fanouts = 400, [[9, 3]] * len(types.RELATIONS)
    seeds = [torch.arange(n) for n in (1_000, 900, 0, 0)]
    digests = set()
    for i, threads in enumerate((1, 2, 4)):
        torch.set_num_threads(threads)
        graph, times, given = types.graph_and_options(
            [to_dtypes(g, INDEX_DTYPES[i]) for g in types.some_graphs(scale)],
            seeds,
            scale,
            **OPTIONS[options],
        )
        for num_threads in {0, threads - 1}:
            out = ops.sample_neighbors(
                *(graph, seeds, fanouts, make_key(0)),
                sampling=ops.Sampling(num_threads=num_threads, **given),
                seed_time=times,
            )
            assert int(out.num_edges.sum()) > 2 * 8192
            digests.add(digest(out[:6]))
    assert len(digests) == 1


# Padded.


@pytest.mark.parametrize(
    ('disjoint', 'sizes'), [(False, [3, 1, 2]), (True, [10, 3, 2])]
)
def test_there_are_slots_for_all_nodes_that_edges_may_bring(disjoint, sizes):
    """The second type has no node, but a slot for an edge at fault."""
    none = torch.zeros(3, dtype=torch.int64), NONE
    out = sample_typed(
        *[[none[0]] * 3, [none[1]] * 3, [(0, 0), (1, 0), (0, 0)], [2, 0, 9]],
        *[[torch.tensor([1]), NONE, torch.tensor([8, 7])], [[1, 1]] * 3],
        key=make_key(0),
        max_edges=[5, 3, 4],
        disjoint=disjoint,
    )
    assert [len(node) for node in out.node] == sizes
    assert [len(batch) for batch in out.batch] == [n * disjoint for n in sizes]
    assert [len(row) for row in out.row] == [5, 3, 4]


def padded(fault, max_edges=(2, 0)):
    """A sample of the CPU, with the fault of a GPU."""
    graph = torch.tensor([0, 1]), torch.tensor([0])
    out = ops.sample_neighbors(
        make_graph([graph[0]] * 2, [graph[1]] * 2, [(0, 0), (0, 1)], [1, 1]),
        [torch.tensor([0]), NONE],
        [[1], [1]],
        make_key(0),
        max_edges=max_edges,
    )
    out.counts[-4:] = torch.tensor(fault)
    return out


def test_faults_of_a_gpu_are_errors_of_check():
    assert padded([0, 0, 0, 0]).check().num_edges.tolist() == [[1], [0]]
    with pytest.raises(
        IndexError, match=r'graph \(got 7 at position 2 of node type 1\)'
    ):
        padded([1, 2, 7, 1]).check()
    for fault, message in (
        ([2, 3, 0, 1], "'indptr' must ascend .* column 3 of relation 1"),
        ([3, 4, 0, 0], "'indices' must be nodes .* edge 4 of relation 0"),
        ([4, 1, 9, 1], "than 'max_edges' .at least 9 of relation 1"),
    ):
        with pytest.raises(RuntimeError, match=message):
            padded(fault).check()


def test_each_relation_has_its_own_limit():
    with pytest.raises(RuntimeError, match=r'= 0 .*least 1\) of relation 0'):
        padded([0, 0, 0, 0], max_edges=(0, 9))
