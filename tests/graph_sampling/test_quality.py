"""The report agrees with what networkx's formulas give on small graphs."""

import torch
from torch_geometric.data import Data

from torch_gsample.graph_sampling import (
    graph_properties,
    random_edge,
    sample_quality,
)


def graph(pairs, size):
    return Data(edge_index=torch.tensor(pairs).view(-1, 2).T, num_nodes=size)


def test_properties_of_a_small_graph():
    # A triangle with a tail, a self-loop, a parallel edge; one vertex alone.
    data = graph([(0, 1), (1, 2), (2, 0), (2, 3), (3, 3), (0, 1)], 5)
    found = sample_quality(data, data).original
    assert found.num_components == 2
    assert found.largest_component == 0.8
    assert found.in_degrees.degree.tolist() == [0, 1, 2]
    assert found.in_degrees.count.tolist() == [1, 2, 2]
    assert found.density == 6 / 20
    assert found.reciprocity == 0
    assert found.max_degree == 3
    # Vertices 0 and 1: 1, vertex 2: 1 of 3 pairs, the others 0.
    assert abs(found.average_clustering - (2 + 1 / 3) / 5) < 1e-6
    assert abs(found.transitivity - 3 / 5) < 1e-6  # of 5 pairs, 3 closed


def test_reciprocity_is_that_of_distinct_edges():
    pairs = [(0, 1), (1, 0), (0, 1), (1, 2), (2, 2)]
    assert graph_properties(graph(pairs, 3)).reciprocity == 2 / 3


def test_distances_are_those_of_the_distributions():
    a, b = graph([(0, 1), (1, 0)], 2), graph([(0, 1)], 2)
    quality = sample_quality(a, b)
    assert quality.in_degree_distance == 0.5
    assert sample_quality(a, a).out_degree_distance == 0


def test_tables_are_made():
    edge_index = torch.randint(50, (2, 400))
    data = Data(edge_index=edge_index, num_nodes=50)
    quality = sample_quality(data, random_edge(data, 0.3, seed=1))
    assert '| edges | 400 |' in quality.table()


def test_an_empty_sample_is_reported():
    data = graph([(0, 1), (1, 0)], 2)
    quality = sample_quality(data, random_edge(data, 0))
    assert quality.in_degree_distance == 1
    assert quality.sampled.num_components == 0
