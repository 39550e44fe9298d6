"""Properties of graphs on Spark are those that are computed in memory."""

import math

import pyarrow as pa
import pytest
import torch
from torch_geometric.data import Data

from torch_gsample import graph_sampling
from torch_gsample import spark as on_spark
from torch_gsample.spark import quality
from torch_gsample.spark.components import star_forest
from torch_gsample.viz import plot_quality

SIZE = 60
WEDGES = 4000


def ends():
    """Communities, a path, loops, parallel and mutual edges, a hub."""
    generator = torch.Generator().manual_seed(7)
    near = torch.randint(0, 12, (2, 80), generator=generator)
    path = torch.stack([torch.arange(20, 40), torch.arange(21, 41)])
    hub = torch.stack([torch.full((12,), 45), torch.arange(46, 58)])
    more = torch.tensor([[45, 46, 47, 58], [45, 47, 48, 58]])
    return torch.cat([near, near[:, :9].flip(0), path, hub, more], 1)


@pytest.fixture(scope='module')
def data():
    return Data(edge_index=ends(), num_nodes=SIZE)


@pytest.fixture(scope='module')
def graph(spark, data):
    src, dst = data.edge_index.tolist()
    ids = spark.createDataFrame(pa.table({'id': list(range(SIZE))}))
    return ids, spark.createDataFrame(pa.table({'src': src, 'dst': dst}))


def compare(got, want):
    for name in (
        'num_vertices num_edges density mean_degree max_degree reciprocity '
        'num_components largest_component'
    ).split():
        assert getattr(got, name) == getattr(want, name), name
    for name in ('in_degrees', 'out_degrees'):
        a, b = getattr(got, name), getattr(want, name)
        assert a.degree.tolist() == b.degree.tolist()
        assert a.count.tolist() == b.count.tolist()
    # Hoeffding's bound; seeds are fixed, so that it holds or does not.
    bound = math.sqrt(math.log(2 / 0.001) / (2 * WEDGES))
    for name in ('average_clustering', 'transitivity'):
        assert abs(getattr(got, name) - getattr(want, name)) < bound, name


def test_properties_are_those_of_memory(graph, data, monkeypatch):
    monkeypatch.setattr(quality, '_LARGEST', 8)  # hubs have more neighbours
    sample = on_spark.random_vertex(*graph, 0.6, seed=2)
    local = graph_sampling.random_vertex(data, 0.6, seed=2)
    got = on_spark.sample_quality(graph, sample, wedges=WEDGES, seed=3)
    want = graph_sampling.sample_quality(data, local)
    assert 0 < want.sampled.average_clustering < 1
    compare(got.original, want.original)
    compare(got.sampled, want.sampled)
    assert got.in_degree_distance == want.in_degree_distance > 0
    assert got.out_degree_distance == want.out_degree_distance > 0
    assert '| density |' in got.table()
    lines = [
        ax.get_lines() for ax in (plot_quality(got), plot_quality(data, local))
    ]
    for ours, others in zip(*lines, strict=True):
        assert ours.get_label() == others.get_label()
        assert ours.get_ydata().tolist() == others.get_ydata().tolist()


def test_fewer_wedges_than_vertices_are_drawn_by_chance(graph, data):
    """Estimates are unbiased: many small ones have the mean of all."""
    links = quality._links(graph[1]).persist()
    want = graph_sampling.graph_properties(data)
    found = [quality._clustering(links, SIZE, 12, seed) for seed in range(8)]
    links.unpersist()
    mean = torch.tensor(found).mean(0).tolist()
    assert len({*found}) > 1
    # Four standard deviations of the mean of 96 wedges.
    assert abs(mean[0] - want.average_clustering) < 0.2
    assert abs(mean[1] - want.transitivity) < 0.2


def test_an_empty_sample_is_measured(graph, spark):
    none = pa.array([], pa.int64())
    ids = spark.createDataFrame(pa.table({'id': none}))
    edges = spark.createDataFrame(pa.table({'src': none, 'dst': none}))
    found = on_spark.graph_properties(ids, edges, seed=0)
    want = graph_sampling.graph_properties(
        Data(edge_index=torch.empty(2, 0, dtype=torch.int64), num_nodes=0)
    )
    assert (found.num_vertices, found.num_components) == (0, 0)
    assert found.in_degrees.distance(want.in_degrees) == 0


def test_roots_are_least_vertices(spark):
    """A path in a bad order and a cycle: many rounds."""
    order = torch.randperm(30, generator=torch.Generator().manual_seed(1))
    pairs = torch.stack([order[:-1], order[1:]]).sort(0).values + 5
    cycle = torch.tensor([[40, 41, 40], [41, 42, 42]])
    a, b = torch.cat([pairs, cycle], 1).tolist()
    links = spark.createDataFrame(pa.table({'a': a, 'b': b}))
    roots = {row.node: row.root for row in star_forest(links).collect()}
    assert roots == {**dict.fromkeys(range(6, 35), 5), 41: 40, 42: 40}


def test_wrong_arguments_are_refused(graph):
    for call, error, words in (
        (lambda: on_spark.sample_quality(graph, 3), TypeError, "'sampled'"),
        (lambda: on_spark.sample_quality([], graph), TypeError, "'original'"),
        (
            lambda: on_spark.sample_quality(graph, graph, wedges=0),
            ValueError,
            "'wedges' must be at least 1",
        ),
        (
            lambda: on_spark.graph_properties(*graph, wedges='3'),
            TypeError,
            "'wedges' must be an integer",
        ),
        (
            lambda: on_spark.graph_properties(*graph, seed=0.5),
            TypeError,
            "'seed' must be an integer",
        ),
        (
            lambda: on_spark.graph_properties(graph[0], graph[0]),
            ValueError,
            "a column 'src'",
        ),
    ):
        with pytest.raises(error, match=words):
            call()
