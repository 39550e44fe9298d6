"""PyG's contract of ProgramSampler, on homogeneous and typed graphs."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric import sampler as pyg
from torch_geometric.data import Data

from tests.samplers import graphs, programs
from tests.samplers.graphs import FOLLOWS, RATES
from tests.samplers.oracle import (
    assert_consistent,
    assert_valid,
    by_type,
    edge_lists,
    fields_of,
    original_edges,
)
from torch_gsample import NeighborSampler, ProgramSampler
from torch_gsample.algorithms import ladies
from torch_gsample.rng import batch_scope


def weighted(**options):
    """Weights name edges."""
    return graphs.homogeneous(weight=torch.arange(1.0, 151.0), **options)


def long(ids):
    return torch.tensor(ids, dtype=torch.long)


def test_it_is_a_pyg_sampler():
    data = graphs.homogeneous()
    sampler = ProgramSampler(data, programs.sage, [2], seed=3)
    assert isinstance(sampler, pyg.BaseSampler)
    assert sampler.edge_permutation is None
    assert not sampler.is_hetero
    assert repr(sampler) == 'ProgramSampler(sage, [2], seed=3)'
    inputs = graphs.nodes([1, 2], time=[5, 6], input_id=[7, 8])
    out = sampler.sample_from_nodes(inputs)
    assert isinstance(out, pyg.SamplerOutput)
    assert [m.tolist() for m in out.metadata] == [[7, 8], [5, 6]]
    assert out.batch is None
    for value in (out.node, out.row, out.col, out.edge):
        assert value.dtype == torch.int64


@settings(deadline=None, max_examples=60)
@given(
    seeds=st.lists(st.integers(0, 29), max_size=8),
    fanouts=st.lists(st.integers(-1, 6), min_size=1, max_size=3),
    replace=st.booleans(),
    seed=st.integers(0, 2**63 - 1),
)
def test_neighbour_sampling_is_the_samplers(seeds, fanouts, replace, seed):
    """Equal in all fields, if no seed occurs again: columns do not tell."""
    data = graphs.homogeneous()
    inputs = graphs.nodes(long(seeds))
    sampler = ProgramSampler(
        data, programs.sage, fanouts, seed=seed, replace=replace
    )
    out = sampler.sample_from_nodes(inputs)
    assert_valid(
        sampler,
        out,
        edge_lists(data),
        {None: seeds},
        {None: fanouts},
        replace=replace,
    )
    if len(set(seeds)) < len(seeds):
        return
    other = NeighborSampler(data, fanouts, seed=seed, replace=replace)
    expected = other.sample_from_nodes(inputs)
    expected.edge = other.edge_permutation[expected.edge]
    assert fields_of(out) == fields_of(expected)


@settings(deadline=None, max_examples=60)
@given(
    node_type=st.sampled_from(['user', 'item', 'tag', 'lone']),
    seeds=st.lists(st.integers(0, 2), max_size=4),
    fanouts=st.lists(st.integers(-1, 4), min_size=1, max_size=3),
    seed=st.integers(0, 2**63 - 1),
)
def test_a_typed_sample_is_valid(node_type, seeds, fanouts, seed):
    data = graphs.heterogeneous()
    fanouts = graphs.each(data, fanouts)
    sampler = ProgramSampler(data, programs.typed_sage, fanouts, seed=seed)
    out = sampler.sample_from_nodes(graphs.nodes(long(seeds), node_type))
    assert isinstance(out, pyg.HeteroSamplerOutput)
    assert list(out.node) == data.node_types
    assert list(out.row) == list(out.col) == list(out.edge) == data.edge_types
    fields, _ = assert_consistent(sampler, out, edge_lists(data))
    for t, ids in fields['node'].items():
        own = seeds if t == node_type else []
        assert ids[: len(own)] == own
        assert fields['num_sampled_nodes'][t][0] == len(own)
        assert sum(fields['num_sampled_nodes'][t]) == len(ids)
        assert len(set(ids[len(own) :])) == len(ids) - len(own)
    for t, counts in fields['num_sampled_edges'].items():
        assert len(counts) == len(fanouts[t])
        assert sum(counts) == len(fields['row'][t])


def test_one_typed_hop_draws_all_edges_on_request():
    data = graphs.heterogeneous()
    fanouts = graphs.each(data, [-1, -1])
    sampler = ProgramSampler(data, programs.typed_sage, fanouts, seed=0)
    out = sampler.sample_from_nodes(graphs.nodes([2, 5], 'item'))
    other = NeighborSampler(data, fanouts)
    expected = other.sample_from_nodes(graphs.nodes([2, 5], 'item'))
    for t, ids in original_edges(other, expected).items():
        assert sorted(original_edges(sampler, out)[t]) == sorted(ids)


def test_a_relation_that_is_not_returned_has_no_edge():
    def program(A, seeds):
        return [{}, {RATES: A[RATES][:, seeds['item']]}]

    data = graphs.heterogeneous()
    sampler = ProgramSampler(data, program)
    out = sampler.sample_from_nodes(graphs.nodes([2, 5], 'item'))
    assert out.num_sampled_edges[FOLLOWS] == [0, 0]
    assert out.num_sampled_edges[RATES] == [0, out.row[RATES].numel()]
    assert out.num_sampled_nodes['user'] == [0, 0, out.node['user'].numel()]
    assert out.row[RATES].numel() > 0


@pytest.mark.parametrize(
    'program',
    [programs.sage_again, programs.layer_wise, programs.by_row],
)
@pytest.mark.parametrize('seeds', [[4, 9, 0], [4, 9, 4, 4, 9], []])
def test_any_program_returns_edges_of_the_graph(program, seeds):
    data = weighted()
    sampler = ProgramSampler(
        data, program, [4, 5], seed=0, weight_attr='weight'
    )
    out = sampler.sample_from_nodes(graphs.nodes(long(seeds)))
    assert_consistent(sampler, out, edge_lists(data))
    assert out.node[: len(seeds)].tolist() == seeds
    assert out.num_sampled_nodes[0] == len(seeds)
    assert sum(out.num_sampled_nodes) == out.node.numel()
    assert sum(out.num_sampled_edges) == out.row.numel()
    later = out.node[len(seeds) :].tolist()
    assert len(set(later)) == len(later)
    assert not set(later) & set(seeds)
    assert out.attributes.edge[None]['edge_weight'].shape == out.row.shape


@pytest.mark.parametrize('program', [programs.sage, programs.by_row])
def test_edges_of_a_layer_come_column_by_column(program):
    sampler = ProgramSampler(graphs.homogeneous(), program, [6, 6], seed=0)
    out = sampler.sample_from_nodes(graphs.nodes([9, 4, 28, 7]))
    assert out.num_sampled_edges[0] > 10
    for col in out.col.split(out.num_sampled_edges):
        assert torch.equal(col, col.sort().values)


@pytest.mark.parametrize('num_layers', [2, 3])
def test_a_tuple_of_layers_is_a_list_of_them(num_layers):
    fanouts = [3] * num_layers
    outs = [
        ProgramSampler(graphs.homogeneous(), program, fanouts, seed=0)
        for program in (programs.sage, lambda *a: tuple(programs.sage(*a)))
    ]
    left, right = (s.sample_from_nodes(graphs.nodes([4, 9])) for s in outs)
    assert fields_of(left) == fields_of(right)


def test_a_layer_may_have_more_rows_than_nodes():
    """Of draws with replacement: each is a row."""
    data = weighted()
    sampler = ProgramSampler(
        data, ladies, [100, 50], seed=0, weight_attr='weight'
    )
    out = sampler.sample_from_nodes(graphs.nodes([4, 9]))
    assert_consistent(sampler, out, edge_lists(data))
    assert out.node.unique().numel() == out.node.numel() <= 30
    assert min(out.num_sampled_edges) > 50


@pytest.mark.parametrize('program', [programs.sage, programs.by_row])
def test_values_belong_to_their_edges(program):
    data = weighted()
    sampler = ProgramSampler(data, program, [6, 6], weight_attr='weight')
    out = sampler.sample_from_nodes(graphs.nodes([4, 9, 4, 7, 28]))
    assert out.row.numel() > 10
    weight = out.attributes.edge[None]['edge_weight']
    assert torch.equal(weight, data.weight[out.edge])


def test_reweighted_values_add_up_for_each_destination():
    sampler = ProgramSampler(
        weighted(), programs.layer_wise, [4], seed=0, weight_attr='weight'
    )
    out = sampler.sample_from_nodes(graphs.nodes([4, 9, 11, 9]))
    total = torch.zeros(4).index_add(
        0, out.col, out.attributes.edge[None]['edge_weight']
    )
    held = torch.bincount(out.col, minlength=4) > 0
    assert torch.allclose(total[held], torch.ones(int(held.sum())))
    assert total[1] == total[3]


def test_layers_without_values_among_others_count_once():
    def program(A, seeds):
        first = A[:, seeds]
        return [first, A[:, first.row()].with_value(None)]

    sampler = ProgramSampler(weighted(), program, weight_attr='weight')
    out = sampler.sample_from_nodes(graphs.nodes([4]))
    weight = out.attributes.edge[None]['edge_weight']
    first = out.num_sampled_edges[0]
    assert torch.equal(weight[:first], out.edge[:first] + 1.0)
    assert weight[first:].tolist() == [1.0] * out.num_sampled_edges[1]


def test_no_values_are_no_edge_weight():
    sampler = ProgramSampler(weighted(), programs.sage, [2])
    out = sampler.sample_from_nodes(graphs.nodes([4]))
    assert out.attributes.edge == {}


@pytest.mark.parametrize('seeds', [[3, 0, 5], [3, 5, 3, 0]])
def test_an_induced_subgraph_has_all_edges_of_its_nodes(seeds):
    data = graphs.homogeneous()
    sampler = ProgramSampler(data, programs.induced, [2], seed=0)
    out = sampler.sample_from_nodes(graphs.nodes(seeds))
    fields, ids = assert_consistent(sampler, out, edge_lists(data))
    nodes = fields['node'][None]
    assert nodes[: len(seeds)] == seeds
    expected = {
        e
        for e, (u, v) in enumerate(edge_lists(data)[None])
        if u in nodes and v in nodes
    }
    assert set(ids[None]) == expected
    first_places = [nodes.index(v) for v in nodes]
    columns = [
        sorted(
            e
            for e, c in zip(ids[None], fields['col'][None], strict=True)
            if c == place
        )
        for place in range(len(nodes))
    ]
    assert columns == [columns[place] for place in first_places]
    assert out.num_sampled_nodes == [len(seeds), len(nodes) - len(seeds)]
    assert out.num_sampled_edges is None


def test_a_typed_induced_subgraph_keeps_nodes_without_edges():
    data = graphs.heterogeneous()
    sampler = ProgramSampler(data, programs.typed_induced, [1])
    out = sampler.sample_from_nodes(graphs.nodes([3, 7, 3], 'item'))
    assert_consistent(sampler, out, edge_lists(data))
    assert out.node['item'].tolist() == [3, 7, 3, 0]
    assert out.node['user'].tolist() == [0]
    assert out.num_sampled_nodes['item'] == [3, 1]
    assert out.num_sampled_edges is None


def test_ends_of_a_typed_subgraph_need_no_edge():
    """Users are but rows there, items but columns."""
    users, items = torch.tensor([0, 5, 11]), torch.tensor([8, 3])

    def program(A, seeds):
        matrix = A[RATES][users, items]
        return {RATES: matrix.masked(torch.zeros(matrix.num_edges) > 0)}

    sampler = ProgramSampler(graphs.heterogeneous(), program)
    out = sampler.sample_from_nodes(graphs.nodes([3], 'item'))
    assert out.node['user'].tolist() == users.tolist()
    assert out.node['item'].tolist() == [3, 8]


def test_node_attributes_are_those_of_the_sampled_nodes():
    data = graphs.homogeneous()
    sampler = ProgramSampler(data, programs.with_degree, [3, 3], seed=0)
    out = sampler.sample_from_nodes(graphs.nodes([4, 9, 4]))
    degree = torch.bincount(data.edge_index[1], minlength=30)
    assert torch.equal(out.attributes.node[None]['degree'], degree[out.node])


def test_edge_ids_of_compressed_graphs_are_those_of_the_data():
    # 1 -> 0, 2 -> 0, 0 -> 2, as rows of destinations.
    adj = torch.tensor([[0, 5, 6], [0, 0, 0], [7, 0, 0]]).to_sparse_csr()
    sampler = ProgramSampler(Data(adj_t=adj, num_nodes=3), programs.sage, [-1])
    out = sampler.sample_from_nodes(graphs.nodes([2, 0]))
    assert out.edge.tolist() == [2, 0, 1]
    assert out.node[out.row].tolist() == [0, 1, 2]


def test_stores_are_sampled_like_data():
    data = graphs.homogeneous()
    expected, out = (
        ProgramSampler(d, programs.sage, [3, 2], seed=0).sample_from_nodes(
            graphs.nodes([4, 9])
        )
        for d in (data, graphs.as_stores(data))
    )
    assert fields_of(out) == fields_of(expected)


def test_edges_of_its_own_have_no_ids():
    def program(A, seeds):
        cols = torch.arange(seeds.numel())
        matrix = type(A).from_coo(
            (seeds + 1) % 30, cols, shape=(30, len(seeds))
        )
        matrix.col_ids = seeds
        return [matrix]

    sampler = ProgramSampler(graphs.homogeneous(), program, own_edges=True)
    out = sampler.sample_from_nodes(graphs.nodes([4, 9]))
    assert out.edge is None
    assert out.node.tolist() == [4, 9, 5, 10]
    assert by_type(out)['row'] == {None: [2, 3]}


def test_typed_edges_of_its_own_have_no_ids():
    def program(A, seeds):
        return [{t: m.masked(m.values() < 0) for t, m in A.items()}]

    sampler = ProgramSampler(graphs.heterogeneous(), program, own_edges=True)
    out = sampler.sample_from_nodes(graphs.nodes([4], 'item'))
    assert set(out.edge.values()) == {None}


@pytest.mark.parametrize('scope', ['batch', 'epoch'])
def test_the_scope_decides_where_nodes_draw_again(scope):
    """In an epoch, a node at a hop draws the same in all batches."""
    data = graphs.homogeneous(num_edges=900)
    sampler = ProgramSampler(data, programs.sage, [4], seed=0, rng_scope=scope)

    def drawn(epoch, batch, seeds):
        with batch_scope(epoch, batch):
            out = sampler.sample_from_nodes(graphs.nodes(seeds))
        return out.edge[out.node[out.col] == 9].tolist()

    same_epoch = drawn(1, 0, [9, 4]), drawn(1, 7, [3, 28, 9])
    assert (same_epoch[0] == same_epoch[1]) == (scope == 'epoch')
    assert drawn(2, 0, [9, 4]) != same_epoch[0]
    assert drawn(1, 0, [9, 4]) == same_epoch[0]


def test_the_matrix_is_the_graph_with_its_weights():
    seen = []

    def program(A, seeds):
        seen.append((A.to_dense(), A.shape, seeds))
        return A[:, seeds]

    data = Data(
        edge_index=torch.tensor([[3, 1, 2], [2, 0, 0]]),
        weight=torch.tensor([0.5, 2, 3]),
        num_nodes=4,
    )
    sampler = ProgramSampler(data, program, weight_attr='weight')
    sampler.sample_from_nodes(graphs.nodes([2, 0, 2]))
    (dense, shape, seeds) = seen[0]
    assert shape == (4, 4)
    assert (dense[3, 2], dense[1, 0]) == (0.5, 2.0)
    assert dense.sum() == 5.5
    assert seeds.tolist() == [2, 0]
