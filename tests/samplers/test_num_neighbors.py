"""Fan-outs in all of PyG's forms."""

import copy

import pytest
from torch_geometric.data import HeteroData
from torch_geometric.sampler import NumNeighbors

from tests.samplers import graphs
from tests.samplers.graphs import FOLLOWS, MARKS, RATES
from tests.samplers.oracle import assert_valid, edge_lists, fields_of
from torch_gsample import NeighborSampler

INPUTS = graphs.nodes([3, 5], 'item')


def fanouts_are(sampler, data, expected):
    out = sampler.sample_from_nodes(INPUTS)
    assert_valid(sampler, out, edge_lists(data), {'item': [3, 5]}, expected)


@pytest.mark.parametrize('wrap', [list, tuple, NumNeighbors])
def test_a_list_holds_for_every_edge_type(wrap):
    data = graphs.heterogeneous()
    sampler = NeighborSampler(data, wrap([2, 1]))
    assert isinstance(sampler.num_neighbors, NumNeighbors)
    assert list(sampler.num_neighbors.values) == [2, 1]
    fanouts_are(sampler, data, graphs.each(data, [2, 1]))


def test_a_dictionary_names_every_edge_type():
    data = graphs.heterogeneous()
    values = {t: [i, 1] for i, t in enumerate(data.edge_types)}
    fanouts_are(NeighborSampler(data, values), data, values)


def test_a_default_holds_for_the_other_edge_types():
    data = graphs.heterogeneous()
    sampler = NeighborSampler(data, NumNeighbors({RATES: [3, 0]}, [1, 2]))
    expected = graphs.each(data, [1, 2]) | {RATES: [3, 0]}
    fanouts_are(sampler, data, expected)


def test_a_dictionary_goes_by_edge_type_backwards_as_well():
    data = graphs.heterogeneous()
    values = graphs.each(data, [0]) | {FOLLOWS: [2], RATES: [1]}
    sampler = NeighborSampler(data, values, sample_direction='backward')
    out = sampler.sample_from_nodes(graphs.nodes([1, 4], 'user'))
    assert_valid(
        sampler,
        out,
        edge_lists(data),
        {'user': [1, 4]},
        values,
        backward=True,
    )
    assert out.num_sampled_edges[RATES] == [2]
    assert sampler.num_neighbors.get_values()[RATES] == [1]


@pytest.mark.parametrize(
    'data', [graphs.homogeneous(), graphs.heterogeneous()]
)
def test_fan_outs_can_be_set_later(data):
    hetero = isinstance(data, HeteroData)
    inputs = graphs.nodes([3, 5], 'item' if hetero else None)
    sampler = NeighborSampler(data, [1], seed=0)
    for value in ([3, 2], NumNeighbors([-1]), [0]):
        sampler.num_neighbors = value
        expected = NeighborSampler(data, value, seed=0)
        out = sampler.sample_from_nodes(inputs)
        assert fields_of(out) == fields_of(expected.sample_from_nodes(inputs))


def test_a_copy_takes_fan_outs_of_its_own():
    """PyG's Lightning module evaluates with a shallow copy."""
    sampler = NeighborSampler(graphs.homogeneous(), [1])
    other = copy.copy(sampler)
    other.num_neighbors = [2, 2]
    assert sampler.num_neighbors.values == [1]
    assert other.num_neighbors.values == [2, 2]


def test_one_object_serves_graphs_of_other_edge_types():
    both = NumNeighbors({RATES: [2]}, default=[1])
    data, less = graphs.heterogeneous(), graphs.heterogeneous()
    del less[MARKS]
    both.get_values(less.edge_types)  # PyG keeps the result in the object
    both.get_mapped_values(less.edge_types)
    for graph in (less, data, less):
        sampler = NeighborSampler(graph, both)
        fanouts_are(sampler, graph, graphs.each(graph, [1]) | {RATES: [2]})


@pytest.mark.parametrize(
    ('value', 'error', 'text'),
    [
        (5, TypeError, "'num_neighbors' must be a list, .*got 5"),
        (None, TypeError, "'num_neighbors' must be a list, .*got None"),
        ([1.5], TypeError, "'num_neighbors' must hold integers .*got 1.5"),
        ([2, -2], ValueError, "'num_neighbors' must be -1 .*got -2"),
        (
            {RATES: [1]},
            ValueError,
            'must have fan-outs for each edge type.*missing',
        ),
        ({('a', 'b', 'c'): [1]}, ValueError, 'edge types of the graph'),
        (
            NumNeighbors({RATES: [1, 2]}, default=[1]),
            ValueError,
            'number of hops must be the same across all edge types',
        ),
    ],
)
def test_bad_fan_outs_are_named(value, error, text):
    with pytest.raises(error, match=text):
        NeighborSampler(graphs.heterogeneous(), value)


def test_a_dictionary_needs_edge_types():
    with pytest.raises(ValueError, match=r"'num_neighbors' must be a list"):
        NeighborSampler(graphs.homogeneous(), {RATES: [1]})
