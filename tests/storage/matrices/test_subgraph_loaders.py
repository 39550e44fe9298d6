"""PyG's ShaDow and GraphSAINT loaders give their batches of memory on disk."""

import pytest
import torch
from torch_geometric.data import Data, HeteroData

from tests.storage.matrices import programs
from torch_gsample.algorithms import saint_edge
from torch_gsample.loader import (
    GraphSAINTEdgeSampler,
    GraphSAINTNodeSampler,
    GraphSAINTRandomWalkSampler,
    ShaDowKHopSampler,
)
from torch_gsample.storage import ChunkedGraph

LOADERS = {
    'shadow': lambda data: ShaDowKHopSampler(
        data, 2, 3, programs.TWICE, batch_size=8, seed=0
    ),
    'node': lambda data: GraphSAINTNodeSampler(data, 20, 2, seed=0),
    'edge': lambda data: GraphSAINTEdgeSampler(data, 20, 2, seed=0),
    'walk': lambda data: GraphSAINTRandomWalkSampler(data, 20, 3, 2, seed=0),
}


@pytest.fixture(scope='module')
def data():
    out = programs.make_data()
    out.x = programs.X
    out.y = torch.arange(programs.NODES)
    return out


@pytest.fixture(scope='module')
def graph(data, tmp_path_factory):
    path = tmp_path_factory.mktemp('loaders') / 'g'
    return programs.on_disk(path, data, False)


@pytest.mark.parametrize('name', LOADERS)
def test_batches_are_those_of_memory(data, graph, name):
    attributes = Data(x=data.x, y=data.y, edge_attr=data.weight)
    known = Data(**attributes.to_dict(), edge_index=data.edge_index)
    stored = LOADERS[name]((attributes, graph))
    for batch, want in zip(stored, LOADERS[name](known), strict=True):
        assert batch.num_nodes == want.num_nodes
        assert set(batch.keys()) == set(want.keys())
        for key in ('x', 'y', 'edge_attr', 'edge_index'):
            assert torch.equal(batch[key], want[key]), key
    [*alone] = LOADERS[name](graph)
    assert torch.equal(alone[-1].edge_index, want.edge_index)


def test_loaders_without_rows_name_write_rows(data, tmp_path):
    graph = programs.on_disk(tmp_path / 'g', data, False, rows=False)
    for name in ('edge', 'walk'):
        with pytest.raises(ValueError, match='write_rows'):
            LOADERS[name](graph)
    LOADERS['node'](graph)
    with pytest.raises(ValueError, match="'sample_coverage' must be 0"):
        GraphSAINTNodeSampler(graph, 20, 2, sample_coverage=1)


def test_the_program_names_the_loader(graph):
    with pytest.raises(ValueError, match=r"'loader\.GraphSAINTEdge"):
        saint_edge(graph.matrix(), 3)


def test_wrong_data_is_refused(data, graph, tmp_path):
    name = 'ShaDowKHopSampler'
    for wrong in (HeteroData(), None, (1, graph), (graph, graph)):
        with pytest.raises(TypeError, match=f"{name}: 'data' must be"):
            LOADERS['shadow'](wrong)
    with pytest.raises(ValueError, match='the 300 nodes'):
        LOADERS['shadow']((Data(x=data.x[1:]), graph))
    with pytest.raises(ValueError, match='no edges in addition to'):
        LOADERS['shadow']((data, graph))
    typed = HeteroData()
    typed['a'].num_nodes = typed['b'].num_nodes = 3
    typed['a', 'to', 'b'].edge_index = torch.tensor([[0], [1]])
    typed = ChunkedGraph.write(tmp_path / 'h', typed)
    with pytest.raises(TypeError, match='one type of nodes'):
        LOADERS['shadow'](typed)
