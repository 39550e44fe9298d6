"""Natural mistakes with graphs on disk: errors name what was called."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from tests.storage import disk
from torch_gsample import samplers
from torch_gsample.loader import LinkNeighborLoader, NeighborLoader
from torch_gsample.storage import (
    ChunkedGraph,
    DiskFeatureStore,
    RandomReadSampler,
    infer,
)


@pytest.fixture
def data():
    return disk.homogeneous()


@pytest.fixture
def graph(tmp_path, data):
    return disk.write(tmp_path / 'g', data)


@pytest.mark.parametrize('missing', ['.', 'meta.json', 'edges-0.bin'])
def test_a_folder_without_a_graph_is_named(graph, missing):
    path = graph.path / missing if missing == '.' else graph.path
    if missing == '.':
        path = graph.path.parent
    else:
        (path / missing).unlink()
    with pytest.raises(
        FileNotFoundError, match=r"ChunkedGraph: 'path' must be the folder"
    ) as found:
        ChunkedGraph(path)
    name = 'meta.json' if missing == '.' else missing
    assert found.value.filename == str(path / name)


def test_a_file_or_a_tensor_is_no_path_of_a_graph(graph, data):
    with pytest.raises(NotADirectoryError, match="ChunkedGraph: 'path'"):
        ChunkedGraph(graph.path / 'meta.json')
    with pytest.raises(TypeError, match=r"ChunkedGraph: 'path'.*Tensor"):
        ChunkedGraph(data.edge_index)


def test_arrays_of_edges_are_written_as_tensors_are(tmp_path):
    edges = np.array([[1, 0, 2], [0, 1, 0]])
    graphs_of = [
        ChunkedGraph.write(tmp_path / name, value, num_nodes=3)
        for name, value in (('a', edges), ('b', torch.from_numpy(edges)))
    ]
    tables = [graph.meta.relations[0].chunks for graph in graphs_of]
    assert np.array_equal(*tables)
    with pytest.raises(ValueError, match=r'must have shape \[2, num_edges\]'):
        ChunkedGraph.write(tmp_path / 'c', edges.T, num_nodes=3)


def test_a_path_or_a_graph_alone_is_no_input_of_a_loader(graph, data):
    with pytest.raises(ValueError, match=r'ChunkedGraph\(path\) opens'):
        samplers.LadiesSampler(str(graph.path), [2])
    with pytest.raises(ValueError, match='ChunkedGraph, the second of such'):
        NeighborLoader(graph, [2])
    with pytest.raises(TypeError, match=r"infer: 'graph'.*ChunkedGraph\("):
        infer(torch.nn.Linear(1, 1), str(graph.path), data.x, out='o')


def test_subgraphs_of_seeds_have_one_type(tmp_path):
    graph = disk.write(tmp_path / 'g', disk.heterogeneous())
    with pytest.raises(ValueError, match="ShaDowSampler: 'data' must have"):
        samplers.ShaDowSampler(graph, [2])
    with pytest.raises(KeyError, match=r"ChunkedGraph.matrix: 'edge_type'"):
        graph.matrix()


@pytest.mark.parametrize('num_workers', [0, 2])
def test_attributes_and_a_graph_on_disk_are_a_pair(data, graph, num_workers):
    pair = Data(x=data.x), graph
    options = {'batch_size': 9, 'num_workers': num_workers}
    outs, wants = (
        NeighborLoader(
            source, sampler=RandomReadSampler(graph, [3], seed=0), **options
        )
        for source in (pair, data)
    )
    for out, want in zip(outs, wants, strict=True):
        for key in ('x', 'edge_index', 'n_id', 'e_id'):
            assert torch.equal(out[key], want[key])


def test_links_of_a_pair(data, graph):
    outs, wants = (
        LinkNeighborLoader(
            source,
            sampler=RandomReadSampler(graph, [3], seed=0),
            edge_label_index=data.edge_index[:, :20],
            batch_size=9,
        )
        for source in ((Data(x=data.x), graph), data)
    )
    for out, want in zip(outs, wants, strict=True):
        for key in ('x', 'edge_index', 'edge_label_index'):
            assert torch.equal(out[key], want[key])


def test_rows_that_are_missing_are_named(data, graph):
    sampler = RandomReadSampler(graph, [3], seed=0)
    size = data.num_nodes
    rows = data.x[: size - 1]
    with pytest.raises(
        ValueError, match=rf"NeighborLoader: 'x' must have .* {size} nodes"
    ):
        NeighborLoader(Data(x=rows), sampler=sampler, batch_size=9)
    store = DiskFeatureStore({'x': rows})
    loader = NeighborLoader(
        (store, graph),
        sampler=sampler,
        input_nodes=torch.tensor([size - 1]),
        batch_size=9,
    )
    with pytest.raises(IndexError, match="DiskFeatureStore: 'index' must be"):
        next(iter(loader))


def test_other_samplers_keep_the_edges_of_the_data(data):
    """Nothing is added where the data has the edges."""
    sampler = samplers.NeighborSampler(data, [3], seed=0)
    loader = NeighborLoader(data, sampler=sampler, batch_size=9)
    assert loader.data is data
