"""A graph is checked once, knows its types, and is ready for operators."""

import pickle
from dataclasses import replace

import pytest
import torch

from torch_gsample import ops
from torch_gsample.graph import CSC, Graph
from torch_gsample.placement import Placement
from torch_gsample.rng import make_key

EDGES = torch.tensor([[3, 1, 2, 0, 3], [1, 0, 1, 3, 0]])
CITES, WRITES = ('paper', 'cites', 'paper'), ('author', 'writes', 'paper')


def hetero(**options):
    cites = CSC.from_coo(*EDGES, 4, 4)
    writes = CSC.from_coo(*EDGES[:, :2] % 3, 3, 4)
    types = ('paper', 'author'), (CITES, WRITES)
    return Graph(*types, (4, 3), (cites, writes), **options)


def edges_of(graph, edge_type=None):
    csc = graph[edge_type]
    return list(zip(csc.indices.tolist(), csc.col().tolist(), strict=True))


def test_an_edge_index_is_one_relation():
    graph = Graph.from_edge_index(EDGES)
    assert repr(graph) == 'Graph(num_nodes=4, num_edges=5)'
    assert (graph.node_types, graph.edge_types) == ((None,), (None,))
    assert (graph.ends, graph.num_nodes, graph.is_hetero) == ((0, 0), (4,), 0)
    csc = graph[None]
    assert EDGES[:, csc.edge_id].t().tolist() == [
        list(pair) for pair in edges_of(graph)
    ]
    assert [id(t) for t in graph.tensors] == [id(csc.indptr), id(csc.indices)]
    assert Graph.from_edge_index(EDGES, 9).counts == {None: 9}
    assert Graph.from_edge_index(EDGES[:, :0]).num_nodes == (0,)


def test_types_say_which_nodes_are_rows_and_columns():
    graph = hetero()
    assert graph.is_hetero
    assert graph.ends == (0, 0, 1, 0)
    assert graph.end_types(WRITES) == ('author', 'paper')
    assert graph.num_edges == 7
    back = graph.transpose()
    assert back.is_transposed
    assert back.ends == (0, 0, 0, 1)
    assert back.end_types(WRITES) == ('author', 'paper')
    assert back.row_and_column_type(WRITES) == ('paper', 'author')
    assert sorted((v, u) for u, v in edges_of(back, WRITES)) == sorted(
        edges_of(graph, WRITES)
    )
    again = back.transpose()
    assert not again.is_transposed
    assert again.ends == graph.ends
    assert "('paper', 'cites', 'paper'): 5" in repr(graph)


def test_edge_ids_name_original_edges_after_a_transpose():
    graph = Graph.from_edge_index(EDGES).transpose()
    assert EDGES[:, graph[None].edge_id].tolist() == [
        graph[None].col().tolist(),
        graph[None].indices.tolist(),
    ]


def test_edge_ids_are_int32_on_a_gpu_where_these_hold_them():
    where = Placement(torch.device('cpu'), False)
    placed = Graph.from_edge_index(EDGES).place(where)[None]
    assert placed.edge_id.dtype == torch.int32
    assert torch.equal(EDGES[0, placed.edge_id], placed.indices)
    for ids in ([2**31], [0], []):
        size = len(ids)
        csc = CSC(torch.tensor([0, size]), torch.zeros(size).long(), 1, ids)
        csc = replace(csc, edge_id=torch.tensor(ids, dtype=torch.long))
        wide = csc.place(where).edge_id.dtype == torch.int64
        assert wide == (ids == [2**31])


def test_relations_have_common_dtypes():
    graph = Graph(
        ('a',),
        (('a', 'x', 'a'), ('a', 'y', 'a')),
        (4,),
        (
            CSC.from_coo(*EDGES, 4, 4),
            CSC.from_coo(*EDGES, 4, 4, index_dtype=torch.int64),
        ),
    )
    assert {t.dtype for t in graph.tensors} == {torch.int64}


def test_the_columns_are_checked_when_the_graph_is_made():
    bad = CSC(torch.tensor([0, 2]), torch.tensor([0, 7]), 1)
    with pytest.raises(IndexError, match=r'of the graph must be in \[0, 1\)'):
        Graph.from_csc(bad)
    with pytest.raises(ValueError, match='must start at 0'):
        Graph.from_csc(CSC(torch.tensor([1, 1]), torch.tensor([0]), 1))
    good = CSC(torch.tensor([0, 2]), torch.tensor([0, 0]), 1)
    assert Graph.from_csc(good)[None].checked
    for key in ('edge_id', 'cum_weight', 'edge_time'):
        wrong = CSC(good.indptr, good.indices, 1, **{key: torch.arange(4)})
        with pytest.raises(ValueError, match=f"'{key}' of the graph must"):
            Graph.from_csc(wrong)


def test_valid_columns_are_not_checked_again(monkeypatch):
    graph = hetero()

    def fail(*args):
        raise AssertionError('checked again')

    monkeypatch.setattr(ops, 'check_csc', fail)
    again = Graph(
        graph.node_types, graph.edge_types, graph.num_nodes, graph.columns
    )
    again = again.to('cpu').transpose().with_weights({})
    assert all(csc.checked for csc in again.columns)


@pytest.mark.parametrize(
    ('change', 'text'),
    [
        ({'num_nodes': (4,)}, "'num_nodes' must have one item for each of 2"),
        ({'columns': ()}, "'columns' must have one item for each of 2"),
        ({'node_types': ('paper', 'x')}, "connects nodes of type 'author'"),
        ({'num_nodes': (4, 5)}, 'must have 5 rows and 4 columns'),
    ],
)
def test_parts_that_do_not_fit_are_named(change, text):
    graph = hetero()
    parts = {
        key: getattr(graph, key)
        for key in ('node_types', 'edge_types', 'num_nodes', 'columns')
    }
    with pytest.raises(ValueError, match=text):
        Graph(**{**parts, **change})


def test_unknown_types_and_shapes_are_named():
    with pytest.raises(KeyError, match="Graph: 'x' must be one of"):
        hetero()['x']
    with pytest.raises(ValueError, match=r'must have shape \[2, num_edges\]'):
        Graph.from_edge_index(EDGES[0])


def test_weights_are_those_of_the_original_edges():
    weight = torch.tensor([1.0, 3.0, 3.0, 1.0, 1.0])
    graph = Graph.from_edge_index(EDGES).with_weights({None: weight})
    csc = graph[None]
    assert torch.equal(
        csc.cum_weight,
        ops.cumulate_weights(csc.indptr, weight[csc.edge_id]),
    )
    assert graph.is_weighted
    assert not graph.is_temporal
    assert [t.numel() for t in graph.tensors] == [5, 5, 6, 0]
    with pytest.raises(ValueError, match=r'CSC\.transpose: weights and times'):
        graph.transpose()
    part = hetero().with_weights({WRITES: torch.ones(2)})
    assert [t.numel() for t in part.tensors] == [5, 5, 0, 0, 5, 2, 3, 0]
    with pytest.raises(ValueError, match="'pages' must be finite"):
        hetero().with_weights({CITES: -weight}, 'pages')


def test_an_edge_waits_for_its_own_time_and_that_of_its_row():
    edge_time, node_time = torch.tensor([5, 9, 1, 0, 2]), torch.arange(4) * 2
    graph = Graph.from_edge_index(EDGES)
    out = graph.with_times({None: edge_time}, {None: node_time})
    want = sorted(
        (dst, max(time, 2 * src), src)
        for (src, dst), time in zip(
            EDGES.t().tolist(), edge_time.tolist(), strict=True
        )
    )
    csc = out[None]
    got = zip(csc.col(), csc.edge_time, csc.indices, strict=True)
    assert [tuple(map(int, edge)) for edge in got] == want
    assert torch.equal(EDGES[0, csc.edge_id], csc.indices)
    assert out.is_temporal
    with pytest.raises(ValueError, match="load: with 'is_sorted', edges must"):
        graph.with_times({None: edge_time}, is_sorted=True, name='load')
    by_column = graph.with_times({None: -EDGES[1]}, is_sorted=True)
    assert by_column[None].indices is graph[None].indices
    with pytest.raises(ValueError, match='sort_columns: weights and times'):
        out.with_times({None: -edge_time})


def test_each_type_waits_for_the_nodes_that_are_its_rows():
    times = {'author': torch.tensor([7, 8, 9])}
    graph = hetero().with_times({}, times)
    assert graph[CITES].edge_time is None
    assert graph[WRITES].edge_time.tolist() == [
        7 + row for row in graph[WRITES].indices.tolist()
    ]
    back = hetero().transpose().with_times({}, times)
    assert back[WRITES].edge_time is None


def test_it_moves_and_is_shared_as_a_whole():
    graph = hetero().with_weights({CITES: torch.ones(5)})
    assert (graph.device, graph.location) == (torch.device('cpu'), 'cpu')
    moved = graph.to('meta')
    assert {t.device.type for t in moved.tensors} == {'meta'}
    assert moved.ends == graph.ends
    placed = graph.place(Placement(torch.device('meta'), False))
    assert placed.device.type == 'meta'
    graph.share_memory_()
    assert all(
        csc.cum_weight is None or csc.cum_weight.is_shared()
        for csc in graph.columns
    )
    assert graph[CITES].edge_id.is_shared()
    copy = pickle.loads(pickle.dumps(graph))
    assert copy.tensors[0] is copy.columns[0].indptr
    assert repr(copy) == repr(graph)
    empty = Graph((), (), (), ())
    assert (empty.device.type, empty.location) == ('cpu', 'cpu')
    assert (empty.tensors, repr(empty)) == (
        (),
        'Graph(num_nodes={}, num_edges={})',
    )


def test_it_is_frozen_and_equal_to_itself_alone():
    graph = hetero()
    with pytest.raises(AttributeError):
        graph.ends = ()
    assert graph != graph.map(lambda csc: csc)
    assert {graph: 1}[graph] == 1


def sample(graph, seeds):
    return ops.sample_neighbors(graph, seeds, [3], make_key(0)).node


@pytest.mark.parametrize('inside', [False, True])
def test_a_captured_program_takes_or_makes_a_graph_once(inside):
    compiled = []

    def backend(module, inputs):
        compiled.append(module)
        return module

    def program(csc, seeds):
        graph = Graph.from_csc(csc) if inside else csc
        return sample(graph, seeds) + 1

    captured = torch.compile(program, backend=backend, fullgraph=True)
    for shift in range(3):  # another graph of the same size
        graph = Graph.from_edge_index((EDGES + shift) % 4, 4)
        want = sample(graph, torch.tensor([0, 1])) + 1
        given = graph[None] if inside else graph
        assert torch.equal(captured(given, torch.tensor([0, 1])), want)
    assert len(compiled) == 1
