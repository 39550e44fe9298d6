"""Layers of graphs with node and edge types."""

import pytest
import torch

from tests.ops.cases import OPTIONS
from tests.ops.compare import (
    assert_equal_tensors,
    assert_equals_reference,
    digest,
    lists,
)
from tests.ops.layers import (
    sample_typed_layers,
    typed_call,
)
from tests.ops.neighbors import sample_typed
from tests.ops.typed import (
    FANOUTS,
    NUM_NODES,
    RELATIONS,
    arguments,
    some_graphs,
)
from tests.ops.typed import some_seeds as typed_seeds
from torch_gsample import ops
from torch_gsample.ops.sample_layers import FRONTIERS
from torch_gsample.rng import EPOCH_SCOPE, make_key
from torch_gsample.testing import (
    INDEX_DTYPES,
    from_columns,
    random_graph,
    small_graph,
    to_dtypes,
    with_index_dtypes,
)

NONE = torch.empty(0, dtype=torch.int64)


def flat(hops):
    """The lists of the operator, of those of its wrapper."""
    return [[x for of_hop in part for x in of_hop] for part in hops]


def sample(graphs, seeds, fanouts, key, scale=1, **options):
    """Layers of the graphs of `typed`, and the operator's errors."""
    own = ('frontier', 'call_id', 'return_frontier', 'num_threads')
    of_hops = {k: options.pop(k) for k in own if k in options}
    return sample_typed_layers(
        [g.indptr for g in graphs],
        [g.indices for g in graphs],
        RELATIONS,
        [scale * n for n in NUM_NODES],
        seeds,
        fanouts,
        key=key,
        **of_hops,
        **arguments(graphs, seeds, **options),
    )


def operator_call(graphs, seeds, fanouts, key, **options):
    """The arguments of the operator."""
    given = arguments(graphs, seeds, **options)
    optional = [given.pop(k, []) for k in ('cum_weight', 'edge_time')]
    return typed_call(
        [g.indptr for g in graphs],
        [g.indices for g in graphs],
        [src for src, _ in RELATIONS],
        [dst for _, dst in RELATIONS],
        NUM_NODES,
        seeds,
        [k for fanouts_of in fanouts for k in fanouts_of],
        *optional,
        given.pop('seed_time', []),
        key,
        [3 * hop + 1 for hop in range(len(key))],
        **given,
    )


RULES = FRONTIERS[:2]


@with_index_dtypes
@pytest.mark.parametrize('frontier', RULES)
@pytest.mark.parametrize('options', OPTIONS)
def test_layers_equal_the_reference(options, frontier, index_dtypes):
    graphs = [to_dtypes(g, index_dtypes) for g in some_graphs()]
    for i, fanouts in enumerate(FANOUTS):
        key = [make_key(i, hop // 2) for hop in range(len(fanouts[0]))]
        of_hops = {'frontier': frontier, 'return_frontier': i % 2 == 0}
        args, given = operator_call(
            graphs, typed_seeds(), fanouts, key, **of_hops, **OPTIONS[options]
        )
        want = assert_equals_reference('sample_layers', *args, **given)
        out = sample(
            *(graphs, typed_seeds(), fanouts, key),
            call_id=[3 * hop + 1 for hop in range(len(key))],
            **of_hops,
            **OPTIONS[options],
        )
        assert_equal_tensors(flat(out), want)
        dtypes = [{x.dtype for x in part} for part in want]
        narrow = [{graphs[0].indptr.dtype}, {graphs[0].indices.dtype}]
        if key:
            assert dtypes[:2] == narrow
            assert dtypes[2] == {torch.int64}


def test_keys_of_the_epoch_scope():
    """Trees draw alike under the keys that have it."""
    keys = [make_key(0, 1, EPOCH_SCOPE), make_key(0, 1, 2)]
    fanouts = [[2, 2]] * len(RELATIONS)
    args, given = operator_call(
        some_graphs(), typed_seeds(), fanouts, keys, disjoint=True
    )
    indptr, _, edge, _, batch = assert_equals_reference(
        'sample_layers', *args, **given
    )
    first, third = (
        edge[1][indptr[1][i] : indptr[1][i + 1]].tolist() for i in (0, 2)
    )
    assert first == third  # seeds that repeat draw the same
    assert sorted(set(batch[1].tolist())) == list(range(7))


@pytest.mark.parametrize('options', OPTIONS)
def test_one_hop_has_the_edges_of_a_sample_of_neighbors(options):
    graphs, seeds = some_graphs(), [s.unique() for s in typed_seeds()]
    fanouts = [[3], [2], [-1], [4], [1], [70]]
    out = sample(
        *(graphs, seeds, fanouts, [make_key(5, 1, 2)]),
        call_id=[7],
        return_frontier=True,
        **OPTIONS[options],
    )
    other = sample_typed(
        [g.indptr for g in graphs],
        [g.indices for g in graphs],
        RELATIONS,
        NUM_NODES,
        seeds,
        fanouts,
        key=make_key(5, 1, 2),
        call_id=7,
        **arguments(graphs, seeds, **OPTIONS[options]),
    )
    assert_equal_tensors(out.edge[0], other.edge)
    for r, (src, _) in enumerate(RELATIONS):
        assert torch.equal(out.row[0][r], other.node[src][other.row[r]])
    for t, node in enumerate(out.node[0]):
        assert torch.equal(node, other.node[t])
        if out.batch:
            assert torch.equal(out.batch[0][t], other.batch[t])


def test_columns_are_in_the_order_of_relations():
    graph, other = from_columns([[2, 0]]), from_columns([[1, 0]])
    out = sample_typed_layers(
        [graph.indptr, other.indptr],
        [graph.indices, other.indices],
        [(0, 1), (0, 1)],
        [3, 1],
        [torch.tensor([1, 1]), torch.tensor([0])],
        [[-1], [-1]],
        key=[make_key(0)],
        return_frontier=True,
    )
    assert lists(out.node) == [[[1, 2, 0], [0]]]
    assert lists(out.row) == [[[2, 0], [1, 0]]]


def keys_of_relations(hops):
    """A key and a call id for each relation of each hop."""
    draws = range(hops * len(RELATIONS))
    return [make_key(2, 1, i // 4) for i in draws], [i % 5 for i in draws]


@with_index_dtypes
@pytest.mark.parametrize('frontier', RULES)
@pytest.mark.parametrize('options', ['plain', 'replace', 'weighted'])
def test_keys_of_relations_and_sorted_columns(options, frontier, index_dtypes):
    graphs = [to_dtypes(g, index_dtypes) for g in some_graphs()]
    for i, fanouts in enumerate(FANOUTS):
        key, call_id = keys_of_relations(len(fanouts[0]))
        args, given = operator_call(
            graphs,
            *(typed_seeds(), fanouts, key),
            frontier=frontier,
            sorted=i % 2 == 0,
            return_frontier=i < 3,
            **OPTIONS[options],
        )
        args = *args[:6], call_id, *args[7:]
        assert_equals_reference('sample_layers', *args, **given)


def test_a_relation_with_a_key_draws_as_if_it_were_alone():
    graphs, seeds = some_graphs(), typed_seeds()
    key, call_id = keys_of_relations(1)
    fanouts = [[2]] * len(RELATIONS)
    out = sample(graphs, seeds, fanouts, key, call_id=call_id)
    for r, (_, dst) in enumerate(RELATIONS):
        begin, edge = ops.sample_columns(
            graphs[r].indptr,
            2,
            key=key[r],
            call_id=call_id[r],
            cols=seeds[dst],
        )
        assert torch.equal(out.indptr[0][r], begin)
        assert torch.equal(out.edge[0][r], edge)


def test_relations_and_hops_draw_independently():
    graph = small_graph('hub')
    out = sample_typed_layers(
        [graph.indptr] * 3,
        [graph.indices] * 3,
        [(0, 0)] * 3,
        [graph.num_cols],
        [torch.tensor([0])],
        [[6, 6]] * 3,
        key=[make_key(0)] * 2,
    )
    draws = {tuple(edge[:6].tolist()) for hop in out.edge for edge in hop}
    assert len(draws) == 6  # node 0 comes first at the second hop, too


def test_trees_keep_to_their_times():
    graphs, seeds = some_graphs(), typed_seeds()
    given = arguments(graphs, seeds, temporal=True)
    limit = torch.cat(given['seed_time'])
    out = sample(
        *(graphs, seeds, [[4, 4]] * len(RELATIONS), [make_key(2)] * 2),
        temporal=True,
    )
    counts = torch.tensor([0] + [len(s) for s in seeds]).cumsum(0).tolist()
    first = [torch.arange(counts[t], counts[t + 1]) for t in range(len(seeds))]
    some = 0
    for hop, trees in enumerate([first, out.batch[0]]):
        for r, (_, dst) in enumerate(RELATIONS):
            time = given['edge_time'][r]
            tree = trees[dst].repeat_interleave(out.indptr[hop][r].diff())
            if time is not None:
                assert (time[out.edge[hop][r]] <= limit[tree]).all()
                some += len(tree)
    assert some > 50


def test_types_and_relations_may_be_missing():
    seeds = [torch.tensor([2, 1]), NONE]
    out = sample_typed_layers([], [], [], [3, 0], seeds, [], key=[])
    assert out == ([], [], [], [], [])
    out = sample_typed_layers([], [], [], [], [], [], key=[])
    assert out == ([], [], [], [], [])


@pytest.mark.parametrize('options', OPTIONS)
def test_threads_and_dtypes_change_nothing(options):
    scale = 400
    seeds = [torch.arange(n) for n in (1_000, 900, 0, 0)]
    fanouts = [[9, 3]] * len(RELATIONS)
    digests = set()
    for i, threads in enumerate((1, 2, 4)):
        graphs = [to_dtypes(g, INDEX_DTYPES[i]) for g in some_graphs(scale)]
        out = sample(
            *(graphs, seeds, fanouts, [make_key(0)] * 2, scale),
            num_threads=threads,
            return_frontier=True,
            **OPTIONS[options],
        )
        assert sum(e.numel() for hop in out.edge for e in hop) > 2 * 8192
        digests.add(digest(out))
    assert len(digests) == 1


def test_faults_name_their_relation():
    graph = random_graph(5_000, 40_000, seed=1)

    def layers(indices=graph.indices):
        return sample_typed_layers(
            [graph.indptr] * 2,
            [graph.indices, indices],
            [(0, 0), (0, 0)],
            [5_000],
            [torch.arange(300)],
            [[2, 2], [3, 3]],
            key=[make_key(1)] * 2,
        )

    expected = digest(layers())
    message = "'indices' must be in .* of relation 1"
    with pytest.raises(RuntimeError, match=message):
        layers(graph.indices + 5_000)
    assert digest(layers()) == expected
