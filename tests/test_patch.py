"""Our classes in the place of PyG's, and back."""

import sys
from threading import Event, Thread
from types import ModuleType

import pytest
import torch
import torch_geometric
from torch_geometric import loader as pyg_loader
from torch_geometric import sampler as pyg_sampler
from torch_geometric.sampler import NegativeSampling

import torch_gsample
from tests.samplers import graphs
from torch_gsample import loader, nn, patch_pyg


def test_patch_replaces_names_of_pyg_until_undone():
    theirs = pyg_loader.NeighborLoader
    patch = patch_pyg()
    try:
        assert pyg_loader.NeighborLoader is loader.NeighborLoader
        assert torch_geometric.nn.Node2Vec is nn.Node2Vec
        assert torch_geometric.nn.models.Node2Vec is nn.Node2Vec
        assert (
            torch_geometric.data.lightning.datamodule.NeighborSampler
            is torch_gsample.NeighborSampler
        )
        assert 'torch_geometric.loader.HGTLoader' in patch.names
        with patch_pyg() as second:
            assert second.names == []
        assert pyg_loader.NeighborLoader is loader.NeighborLoader
    finally:
        patch.undo()
    assert pyg_loader.NeighborLoader is theirs
    assert torch_geometric.nn.models.Node2Vec is not nn.Node2Vec
    patch.undo()
    assert pyg_loader.NeighborLoader is theirs


def test_an_error_undoes_it():
    theirs = pyg_loader.NeighborLoader
    with pytest.raises(ZeroDivisionError), patch_pyg():
        raise ZeroDivisionError
    assert pyg_loader.NeighborLoader is theirs


def module_of(monkeypatch, name, text=''):
    module = ModuleType(name)
    exec(text, vars(module))
    monkeypatch.setitem(sys.modules, name, module)
    return module


@pytest.mark.parametrize('name', torch_gsample.patch._REPLACED[0][2])
def test_names_that_were_imported_before_are_ours_meanwhile(monkeypatch, name):
    theirs = getattr(pyg_loader, name)
    user = module_of(
        monkeypatch, 'user', f'from torch_geometric.loader import {name} as L'
    )
    with patch_pyg() as patch:
        assert user.L is getattr(loader, name) is getattr(pyg_loader, name)
        assert 'user.L' in patch.names
    assert user.L is theirs is getattr(pyg_loader, name)


def test_undo_keeps_names_changed_by_a_module(monkeypatch):
    user = module_of(
        monkeypatch, 'user', 'from torch_geometric.loader import HGTLoader'
    )
    with patch_pyg():
        user.HGTLoader = 'mine'
    assert user.HGTLoader == 'mine'


def test_modules_of_pyg_that_are_imported_meanwhile_are_put_back(monkeypatch):
    text = 'from torch_geometric.loader import HGTLoader'
    with patch_pyg():
        theirs = module_of(monkeypatch, 'torch_geometric.late', text)
        other = module_of(monkeypatch, 'other', text)
        assert theirs.HGTLoader is other.HGTLoader is loader.HGTLoader
    assert theirs.HGTLoader is pyg_loader.HGTLoader
    assert theirs.HGTLoader is not loader.HGTLoader
    assert other.HGTLoader is loader.HGTLoader


def test_odd_modules_are_left_alone(monkeypatch):
    class Odd:
        def __getattr__(self, name):
            raise AssertionError(name)

    monkeypatch.setitem(sys.modules, 'odd', Odd())
    monkeypatch.setitem(sys.modules, 'missing', None)
    with patch_pyg():
        pass


def test_patches_that_overlap_last_as_long_as_one_of_them():
    theirs = pyg_loader.NeighborLoader
    first, second = patch_pyg(), patch_pyg()
    first.undo()
    first.undo()
    assert pyg_loader.NeighborLoader is loader.NeighborLoader
    second.undo()
    assert pyg_loader.NeighborLoader is theirs


def test_threads_share_a_patch():
    theirs, ready, leave = pyg_loader.NeighborLoader, Event(), Event()

    def work():
        with patch_pyg():
            ready.set()
            leave.wait(60)

    thread = Thread(target=work)
    with patch_pyg():
        thread.start()
        ready.wait(60)
    assert pyg_loader.NeighborLoader is loader.NeighborLoader
    leave.set()
    thread.join()
    assert pyg_loader.NeighborLoader is theirs


def test_many_threads_patch_and_undo():
    theirs, failed = pyg_loader.NeighborLoader, []

    def work():
        for _ in range(10):
            with patch_pyg():
                if pyg_loader.NeighborLoader is theirs:
                    failed.append(1)

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert pyg_loader.NeighborLoader is theirs


def test_versions_of_pyg_are_checked(monkeypatch):
    monkeypatch.setattr(torch_geometric, '__version__', '2.6.1')
    with pytest.raises(ImportError, match=r'2\.7 or later .*found 2\.6\.1'):
        patch_pyg()
    monkeypatch.setattr(torch_geometric, '__version__', '2.9.0')
    with pytest.warns(UserWarning, match=r'torch-geometric 2\.9\.0 was not'):
        patch_pyg().undo()


def test_pygs_modules_have_ours_by_their_full_names():
    from torch_geometric.loader import neighbor_loader
    from torch_geometric.sampler import neighbor_sampler

    with patch_pyg():
        ours = torch_gsample.NeighborSampler
        assert neighbor_sampler.NeighborSampler is ours
        assert neighbor_loader.NeighborSampler is ours
        assert isinstance(
            neighbor_sampler.NeighborSampler(graphs.homogeneous(), [2]), ours
        )


def test_pygs_distributed_samplers_keep_theirs():
    """They read its arrays and call pyg-lib themselves."""
    with patch_pyg():
        distributed = sys.modules['torch_geometric.distributed']
        module = distributed.dist_neighbor_sampler
        assert not issubclass(
            module.NeighborSampler, torch_gsample.NeighborSampler
        )


def both_directions(data, num_neighbors, **options):
    with patch_pyg():
        from torch_geometric.sampler import neighbor_sampler

        return neighbor_sampler.BidirectionalNeighborSampler(
            data, num_neighbors, **options
        )


@pytest.mark.parametrize('disjoint', [False, True])
@pytest.mark.parametrize('stores', [False, True])
def test_both_directions_give_edges_of_the_graph(stores, disjoint):
    data = graphs.homogeneous()
    index = data.edge_index
    graph = graphs.as_stores(data) if stores else data
    hops = [3] if disjoint else [3, 2]
    sampler = both_directions(graph, hops, disjoint=disjoint)
    assert sampler.edge_permutation is None
    out = sampler.sample_from_nodes(graphs.nodes([3, 9, 0]))
    ends = torch.stack([out.node[out.row], out.node[out.col]])
    assert torch.equal(ends, index[:, out.edge])
    assert out.node[:3].tolist() == [3, 9, 0]
    if disjoint:
        assert torch.equal(out.batch[out.row], out.batch[out.col])
    for direction in index:  # some edges end at a seed, some start at one
        assert torch.isin(direction[out.edge], torch.tensor([3, 9])).any()


def test_all_neighbours_of_both_directions_are_all_edges_of_the_seeds():
    data = graphs.homogeneous()
    seeds = torch.tensor([5, 7, 11])
    out = both_directions(data, [-1]).sample_from_nodes(graphs.nodes(seeds))
    touches = torch.isin(data.edge_index, seeds).any(dim=0)
    assert (
        out.edge.sort().values.tolist() == touches.nonzero().view(-1).tolist()
    )


def test_a_loader_joins_attributes_to_samples_of_both_directions():
    data = graphs.homogeneous()
    loader_of_both = loader.NeighborLoader(
        data, sampler=both_directions(data, [2, 2]), batch_size=7
    )
    total = 0
    for batch in loader_of_both:
        assert torch.equal(batch.x, data.x[batch.n_id])
        assert torch.equal(batch.edge_attr, data.edge_attr[batch.e_id])
        ends = data.edge_index[:, batch.e_id]
        assert torch.equal(batch.n_id[batch.edge_index], ends)
        total += batch.input_id.numel()
    assert total == 30


def test_samples_of_both_directions_go_by_torchs_seed():
    def sample():
        torch.manual_seed(4)
        sampler = both_directions(graphs.homogeneous(), [2, 2])
        return sampler.sample_from_nodes(graphs.nodes([3, 9])).edge.tolist()

    assert sample() == sample()


def test_both_directions_accept_and_reject_links_as_pyg():
    data = graphs.homogeneous()
    sampler = both_directions(data, [2])
    inputs = graphs.links([(3, 4), (5, 6)])
    out = sampler.sample_from_edges(inputs)
    assert torch.equal(
        out.node[out.metadata[1]], torch.stack([inputs.row, inputs.col])
    )
    with pytest.raises(RuntimeError, match='negative sampling'):
        sampler.sample_from_edges(inputs, NegativeSampling('binary'))
    typed = graphs.heterogeneous()
    with pytest.raises(RuntimeError, match="'num_neighbors' must be a list"):
        both_directions(typed, graphs.each(typed, [2]))
    with pytest.raises(NotImplementedError, match='heterogeneous'):
        both_directions(typed, [2]).sample_from_nodes(
            graphs.nodes([1], 'user')
        )
    with pytest.raises(NotImplementedError, match='temporal'):
        sampler.sample_from_nodes(graphs.nodes([1], time=[3]))


def test_weights_that_stores_do_not_have_are_not_implemented():
    stores = graphs.as_stores(graphs.homogeneous())
    text = r"NeighborSampler: 'weight_attr' must name .* \(got 'weight'\)"
    for direction in ('forward', 'backward'):
        with pytest.raises(NotImplementedError, match=text):
            torch_gsample.NeighborSampler(
                stores,
                [1, 1],
                weight_attr='weight',
                sample_direction=direction,
            )


def test_a_class_that_was_derived_from_pygs_before_runs_on_ours():
    class Derived(pyg_sampler.BidirectionalNeighborSampler):
        pass

    with patch_pyg():
        sampler = Derived(graphs.homogeneous(), [2, 2])
        out = sampler.sample_from_nodes(graphs.nodes([3, 9]))
    assert isinstance(sampler.forward_sampler, torch_gsample.NeighborSampler)
    assert out.node[:2].tolist() == [3, 9]


def test_pygs_store_for_graph_rag_samples():
    from torch_geometric.llm.utils.graph_store import (
        NeighborSamplingRAGGraphStore,
    )

    data = graphs.homogeneous()
    with patch_pyg():
        store = NeighborSamplingRAGGraphStore(
            replace=False, feature_store=graphs.as_stores(data)[0]
        )
        store.config = {'num_neighbors': [3, 2]}
        store.edge_index = data.edge_index
        out = store.sample_subgraph(torch.tensor([9, 3]))
    ends = torch.stack([out.node[out.row], out.node[out.col]])
    assert torch.equal(ends, data.edge_index[:, out.edge])
    assert out.edge.numel() > 6
