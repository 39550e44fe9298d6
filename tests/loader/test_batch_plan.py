"""Batches that a plan makes are those that PyG makes of the same samples."""

import copy
import pickle
import weakref

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import BaseSampler

from tests.loader.planned import (
    LOADERS,
    assert_same_batches,
    of_nodes,
    outs,
    planned,
    pygs,
    rich,
)
from tests.samplers import graphs
from tests.samplers.graphs import FOLLOWS
from torch_gsample import NeighborSampler
from torch_gsample.loader.batch_plan import Planned


@pytest.mark.parametrize('name', LOADERS)
def test_planned_batches_are_pygs(name):
    loader = LOADERS[name]()
    for out in outs(loader):
        want = pygs(loader, out)
        assert_same_batches(planned(loader, out), want)
        assert_same_batches(loader.filter_fn(out), want)


@pytest.mark.parametrize('name', ['rich', 'typed', 'links'])
def test_a_plan_is_made_once_for_a_graph(name):
    loader = LOADERS[name]()
    plans = set()
    for out in outs(loader):
        loader.filter_fn(out)
        plans.add(id(loader.planned._plan))
    assert len(plans) == 1


CHANGES = {
    'set': lambda data: setattr(data, 'x', torch.rand(40, 50)),
    'set_alike': lambda data: setattr(data, 'x', data.x.clone() + 1),
    'add': lambda data: setattr(data, 'other', torch.rand(40, 2)),
    'remove': lambda data: delattr(data, 'y'),
    'rename': lambda data: setattr(data, 'new', data._store.pop('last')),
    'reorder': lambda data: setattr(data, 'x', data._store.pop('x')),
    'edges': lambda data: setattr(data, 'edge_attr', torch.rand(300, 2)),
    'other_form': lambda data: setattr(data, 'wide', torch.rand(50, 40).t()),
    'no_node': lambda data: setattr(data, 'y', torch.rand(7)),
    'number': lambda data: setattr(data, 'scale', 0.25),
    'in_place': lambda data: data.x.fill_(7),
    'gradient': lambda data: data.wide.requires_grad_(),
    'store': lambda data: data.__dict__.update(_store=changed_store(data)),
}


def changed_store(data):
    store = copy.copy(data._store)
    store._parent = data
    store.x = store.x + 1
    return store


@pytest.mark.parametrize('name', CHANGES)
def test_changes_of_the_graph_are_seen_as_by_pyg(name):
    loader = LOADERS['rich']()
    first, second, _ = outs(loader)
    before = loader.filter_fn(first)
    kept = list(loader.data._store.values())  # or their ids are used again
    CHANGES[name](loader.data)
    want = pygs(loader, second)
    assert_same_batches(loader.filter_fn(second), want)
    if name not in ('in_place', 'gradient'):
        mine, pyg = loader.filter_fn(first), pygs(loader, first)
        assert_same_batches(mine, pyg)
        assert str(mine.to_dict()) != str(before.to_dict())
    del kept


def test_another_graph_and_other_types_are_seen():
    loader = LOADERS['typed']()
    out, *_ = outs(loader)
    loader.filter_fn(out)
    loader.data['user'].y = torch.arange(12) * 2
    assert_same_batches(loader.filter_fn(out), pygs(loader, out))
    loader.data = copy.copy(loader.data)
    loader.data['item'].x = loader.data['item'].x + 1
    assert_same_batches(loader.filter_fn(out), pygs(loader, out))
    loader.data['fresh'].x = torch.ones(3, 2)  # the sampler knows it not
    assert_same_batches(loader.filter_fn(out), pygs(loader, out))


def test_a_change_of_a_batch_leaves_the_graph_unchanged():
    for name in 'rich', 'typed':
        loader = LOADERS[name]()
        out, *_ = outs(loader)
        keys = [list(store) for store in loader.data.stores]
        batch = loader.filter_fn(out)
        for store in batch.stores:
            store.more = 1
            store.pop('x', None)
        assert [list(store) for store in loader.data.stores] == keys
        assert_same_batches(loader.filter_fn(out), pygs(loader, out))


class OwnData(Data):
    @property
    def n_id(self):
        return self._store.get('n_id')


class OwnTensor(torch.Tensor):
    pass


def shortened(out):
    out.node = out.node.clone()
    return out


LEFT = {
    'subclass': lambda: of_nodes(OwnData(**rich().to_dict())),
    'tensor': lambda: of_nodes(
        rich(own=torch.rand(40, 3).as_subclass(OwnTensor))
    ),
    'object': lambda: of_nodes(rich(own=object())),
    'sparse': lambda: of_nodes(rich(own=torch.eye(40).to_sparse())),
    'output': lambda: of_nodes(rich(), transform_sampler_output=shortened),
    'sampler': lambda: of_nodes(rich(), sampler=Foreign(rich(), [4, 3])),
    'static_shapes': lambda: of_nodes(graphs.homogeneous(), static_shapes=2),
}


class Foreign(BaseSampler):
    """A sampler of somebody else, with ids on any device."""

    def __init__(self, data, fanouts):
        self.ours = NeighborSampler(data, fanouts, seed=0)

    edge_permutation = property(lambda self: self.ours.edge_permutation)

    def sample_from_nodes(self, inputs, **kwargs):
        return self.ours.sample_from_nodes(inputs)

    sample_from_edges = None


@pytest.mark.parametrize('name', LEFT)
def test_special_batches_are_built_by_pyg(name):
    loader = LEFT[name]()
    for out in outs(loader):
        assert planned(loader, out) is None
        if name not in ('static_shapes', 'sparse'):
            batch = loader.filter_fn(copy.copy(out))
            assert_same_batches(batch, pygs(loader, out))


def test_edges_without_ids_lose_their_attributes():
    loader = LOADERS['typed']()
    out, *_ = outs(loader)
    out.edge[FOLLOWS] = None
    batch = planned(loader, out)
    assert 'weight' not in batch[FOLLOWS]
    assert_same_batches(batch, pygs(loader, out))


def test_a_plan_keeps_nothing_that_was_replaced():
    for name in 'rich', 'typed':
        loader = LOADERS[name]()
        out, *_ = outs(loader)
        loader.filter_fn(out)
        store = loader.data.node_stores[0]
        old = weakref.ref(store.x)
        store.x = torch.ones(2)
        assert old() is None
        loader.filter_fn(out)
        old = weakref.ref(loader.data)
        loader.data = copy.copy(loader.data)
        assert old() is None


def test_an_id_that_is_used_again_is_another_attribute():
    loader = LOADERS['rich']()
    out, *_ = outs(loader)
    loader.filter_fn(out)
    place = id(loader.data.last)
    del loader.data.last
    fresh, others = torch.rand(7), []
    while id(fresh) != place and len(others) < 1000:
        others.append(fresh)
        fresh = torch.rand(7)
    loader.data.last = fresh  # of no node
    assert_same_batches(loader.filter_fn(out), pygs(loader, out))


def test_a_patched_loader_is_left_alone(monkeypatch):
    def marked(loader, out):
        batch = original(loader, out)
        batch.marked = True
        return batch

    original = NodeLoader.filter_fn
    monkeypatch.setattr(NodeLoader, 'filter_fn', marked)
    loader = LOADERS['rich']()
    assert loader.filter_fn(outs(loader)[0]).marked


def test_ids_of_no_row_are_errors():
    loader = LOADERS['rich']()
    out, *_ = outs(loader)
    loader.filter_fn(out)
    for bad in -1, 40:
        out.node[3] = bad
        with pytest.raises(IndexError):
            loader.filter_fn(out)


def test_plans_stay_in_their_process():
    loader = LOADERS['typed']()
    out, *_ = outs(loader)
    loader.filter_fn(out)
    other = pickle.loads(pickle.dumps(loader.planned))
    assert other._plan is None
    assert copy.deepcopy(loader.planned)._plan is None


@pytest.mark.parametrize('name', ['rich', 'typed', 'links_binary'])
def test_passes_equal_those_without_a_plan(name, monkeypatch):
    got = list(LOADERS[name]())
    monkeypatch.setattr(Planned, 'batch', lambda *args: None)
    want = list(LOADERS[name]())
    for mine, pyg in zip(got, want, strict=True):
        assert_same_batches(mine, pyg)
