"""Natural mistakes with graphs on disk: errors name what was called."""

import numpy as np
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Data

from tests.storage import disk
from torch_gsample import SparseSample, samplers
from torch_gsample.loader import LinkNeighborLoader, NeighborLoader
from torch_gsample.relational import TableFolder
from torch_gsample.storage import (
    ChunkedGraph,
    DiskFeatureStore,
    FeatureFile,
    RandomReadSampler,
    StreamingSampler,
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
    stores = DiskFeatureStore({'x': rows}), graph
    with pytest.raises(
        ValueError, match=rf"NeighborLoader: 'x' must have .* {size} nodes"
    ):
        NeighborLoader(
            stores,
            sampler=sampler,
            input_nodes=torch.tensor([size - 1]),
            batch_size=9,
        )


def test_stores_in_the_wrong_order_are_named(data, graph):
    sampler = RandomReadSampler(graph, [3], seed=0)
    stores = graph, DiskFeatureStore({'x': data.x})
    with pytest.raises(
        ValueError,
        match=r'in this order .got ChunkedGraph and DiskFeatureStore',
    ):
        NeighborLoader(stores, sampler=sampler, input_nodes=torch.arange(3))


def test_links_of_stores_without_types_need_no_type(data, graph):
    edges = data.edge_index[:, :20]
    stores = DiskFeatureStore({'x': data.x}), graph
    plain, typed = (
        LinkNeighborLoader(
            stores,
            sampler=RandomReadSampler(graph, [3], seed=0),
            edge_label_index=index,
            batch_size=9,
        )
        for index in (edges, (None, edges))
    )
    for out, want in zip(plain, typed, strict=True):
        assert torch.equal(out.n_id, want.n_id)
        assert torch.equal(out.edge_label_index, want.edge_label_index)


@pytest.mark.parametrize(
    'edges', [{'edge_index': torch.ones(2, 3)}, {('a', 'to', 'b'): None}]
)
def test_a_dictionary_is_no_graph(tmp_path, edges):
    with pytest.raises(TypeError, match=r'got dict with \[.*HeteroData'):
        ChunkedGraph.write(tmp_path / 'new', edges)


@pytest.mark.parametrize(
    ('make', 'match'),
    [
        (
            lambda f, x, g: ChunkedGraph.write(x, f),
            "write: 'path' must be a p",
        ),
        (lambda f, x, g: FeatureFile.write(x, f), "write: 'path' must be a p"),
        (lambda f, x, g: FeatureFile(x), "FeatureFile: 'path' must be a path"),
        (lambda f, x, g: FeatureFile(f / 'x'), "File: 'path' must be a featu"),
        (lambda f, x, g: FeatureFile(f), "FeatureFile: 'path' must be a feat"),
        (lambda f, x, g: FeatureFile.write(f / 'x', x, dtyp=0), "'dtype'"),
        (lambda f, x, g: TableFolder(f), "TableFolder: 'path' must be a fol"),
        (lambda f, x, g: DiskFeatureStore(x), "'features' must be a dictiona"),
        (lambda f, x, g: DiskFeatureStore({3: x}), "keys of 'features'"),
        (
            lambda f, x, g: RandomReadSampler(g, [2], num_threads=2.5),
            "RandomReadSampler: 'num_threads' must be an integer",
        ),
        (
            lambda f, x, g: StreamingSampler(g, [2], num_threads=True),
            "StreamingSampler: 'num_threads' must be an integer",
        ),
    ],
)
def test_wrong_types_and_paths_are_named(tmp_path, data, graph, make, match):
    with pytest.raises((TypeError, OSError), match=match):
        make(tmp_path, data.x, graph)


@pytest.mark.parametrize(
    ('options', 'match'),
    [
        ({'num_nodes': -1}, "'num_nodes' must not be negative"),
        ({'num_nodes': 2.5}, "'num_nodes' must be an integer"),
        ({'num_nodes': '3'}, "'num_nodes' must be an integer"),
        ({'num_nodes': {'a': True}}, "'num_nodes' of 'a' must be an integer"),
        ({'num_node': 3}, "'num_node' .did you mean 'num_nodes'"),
        ({'directories': 'disk'}, "'directories' must be a list of paths"),
        ({'directories': [3]}, "'directories' must be a path"),
    ],
)
def test_options_of_a_new_graph_are_named(tmp_path, options, match):
    edges = torch.tensor([[0, 1], [1, 2]])
    with pytest.raises(
        (TypeError, ValueError), match=f'ChunkedGraph.write: .*{match}'
    ):
        ChunkedGraph.write(tmp_path / 'g', edges, **options)


def test_matrices_are_written_as_their_edges_are(tmp_path):
    edges = torch.tensor([[0, 0, 1, 2], [1, 2, 0, 1]])
    sparse = torch.sparse_coo_tensor(edges, torch.ones(4), (3, 3))
    forms = {
        'coo': sparse,
        'csr': sparse.to_sparse_csr(),
        'csc': sparse.to_sparse_csc(),
        'matrix': SparseSample.from_edge_index(edges, num_nodes=3),
        'scipy': scipy.sparse.coo_matrix(sparse.to_dense().numpy()),
    }
    for name, form in forms.items():
        graph = ChunkedGraph.write(tmp_path / name, form)
        sampler = RandomReadSampler(graph, [-1], seed=0)
        loader = NeighborLoader(
            (Data(num_nodes=3), graph), sampler=sampler, batch_size=3
        )
        found = next(iter(loader)).edge_index
        assert {*map(tuple, found.t().tolist())} == {
            *map(tuple, edges.t().tolist())
        }, name
        with pytest.raises(ValueError, match="'num_nodes' must be None"):
            ChunkedGraph.write(tmp_path / 'n', form, num_nodes=4)


SIZES = {
    'ChunkedGraph.write': lambda folder, data, graph, size: ChunkedGraph.write(
        folder / 'n', data, memory_limit=size
    ),
    'FeatureFile.write': lambda folder, data, graph, size: FeatureFile.write(
        folder / 'n', data.x, memory_limit=size
    ),
    'StreamingSampler': lambda folder, data, graph, size: StreamingSampler(
        graph, [3], seed=0, memory_limit=size
    ),
    'RandomReadSampler': lambda folder, data, graph, size: RandomReadSampler(
        graph, [3], seed=0, cache_bytes=size
    ),
    'ChunkedGraph.matrix': lambda folder, data, graph, size: graph.matrix(
        cache_bytes=size
    ),
    'DiskFeatureStore.plan_reads': lambda folder, data, graph, size: (
        DiskFeatureStore(
            {'x': FeatureFile.write(folder / 'x', data.x)}
        ).plan_reads(size, plan='single')
    ),
}


@pytest.mark.parametrize('name', SIZES)
def test_sizes_may_be_texts(tmp_path, data, graph, name):
    SIZES[name](tmp_path, data, graph, '4GiB')


@pytest.mark.parametrize('size', ['lots', -1, True])
@pytest.mark.parametrize('name', SIZES)
def test_sizes_that_are_no_sizes_are_named(tmp_path, data, graph, name, size):
    with pytest.raises(ValueError, match=rf"{name}: '\w+' must be a number"):
        SIZES[name](tmp_path, data, graph, size)


def test_a_chunk_may_have_a_size_as_text(tmp_path, data):
    graph = ChunkedGraph.write(tmp_path / 'n', data, chunk_bytes='4KiB')
    assert len(graph.meta.relations[0].chunks) > 1


def test_other_samplers_keep_the_edges_of_the_data(data):
    """Nothing is added where the data has the edges."""
    sampler = samplers.NeighborSampler(data, [3], seed=0)
    loader = NeighborLoader(data, sampler=sampler, batch_size=9)
    assert loader.data is data


def test_a_graph_of_another_size_than_the_samplers_is_named(tmp_path, graph):
    size = graph.num_nodes[None]
    edges = torch.tensor([[0, 1], [1, 2]])
    other = ChunkedGraph.write(tmp_path / 'other', edges, num_nodes=size + 1)
    features = DiskFeatureStore({'x': torch.rand(size + 1, 2)})
    sampler = RandomReadSampler(graph, [2], seed=0)
    with pytest.raises(ValueError, match=f'{size} nodes .got {size + 1}'):
        NeighborLoader(
            (features, other),
            sampler=sampler,
            input_nodes=torch.arange(3),
            batch_size=3,
        )
