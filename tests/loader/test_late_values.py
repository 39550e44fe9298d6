"""Ids and times of edges are gathered when they are read, as if at once."""

import copy
import pickle

import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData

from tests.loader.planned import TIMED, of_nodes, rich, typed
from tests.samplers.graphs import FOLLOWS, RATES
from torch_gsample.loader import NeighborLoader
from torch_gsample.loader.late_values import LATE, LateValues

MADE = {'e_id': [4, 5], 'time': [7, 8]}
WANT = {'x': 1, 'e_id': [4, 5], 'time': [7, 8], 'last': 2}


def late():
    values = {'x': 1, 'e_id': LATE, 'time': LATE, 'last': 2}
    return LateValues(values, MADE.__getitem__)


def joined(values):
    values |= {'y': 3}
    return {**values, 'y': values.pop('y')}


READS = {
    'item': lambda v: {key: v[key] for key in v},
    'get': lambda v: {key: v.get(key) for key in v},
    'pop': lambda v: {key: v.pop(key) for key in list(v)},
    'popitem': lambda v: dict([v.popitem() for _ in WANT][::-1]),
    'setdefault': lambda v: {key: v.setdefault(key, 0) for key in v},
    'values': lambda v: dict(zip(v, v.values(), strict=True)),
    'items': lambda v: dict(v.items()),
    'dict': dict,
    'unpacked': lambda v: {**v},
    'arguments': lambda v: (lambda **values: values)(**v),
    'updated': lambda v: (new := {}).update(v) or new,
    'or': lambda v: v | {},
    'from the right': lambda v: {} | v,
    'own or': lambda v: (joined(v), v)[1],
    'copied': copy.copy,
    'copied by method': lambda v: v.copy(),
    'deep': copy.deepcopy,
    'pickled': lambda v: pickle.loads(pickle.dumps(v)),
    'printed': lambda v: eval(repr(v)),
}


@pytest.mark.parametrize('name', READS)
def test_no_read_sees_that_a_value_is_late(name):
    got = READS[name](late())
    assert dict.__eq__({**got}, WANT)
    assert list(got) == list(WANT)


@pytest.mark.parametrize(
    'name', ['copied', 'copied by method', 'deep', 'pickled', 'or']
)
def test_copies_are_plain_and_complete(name):
    assert type(READS[name](late())) is dict


def test_late_values_compare_and_change_as_a_dictionary():
    assert late() == WANT
    assert late() == late()
    assert not late() != WANT  # noqa: SIM202
    assert late() != {**WANT, 'e_id': [4]}
    values = late()
    assert len(values) == 4
    assert 'e_id' in values
    assert values.get('other', 5) == 5
    assert values.pop('other', 5) == 5
    with pytest.raises(KeyError):
        values['other']
    values['e_id'] = 'mine'
    del values['time']
    assert values == {'x': 1, 'e_id': 'mine', 'last': 2}


def is_late(store, key='e_id'):
    return dict.get(store._mapping, key) is LATE


def timed():
    data = typed()
    del data[RATES].edge_attr
    for store in data.edge_stores:
        store.time = torch.arange(store.num_edges) % 5
    return data


def of_edges(**options):
    """Batches whose edges have ids and times."""
    seeds = {'input_nodes': ('user', None), 'batch_size': 4}
    return NeighborLoader(timed(), [4, 3], **seeds, **TIMED, **options, seed=0)


def test_only_ids_and_times_of_edges_are_late():
    batch = next(iter(of_edges(prefetch=0)))
    for store in batch.edge_stores:
        late = {key for key in store._mapping if is_late(store, key)}
        alone = 'edge_attr' not in store  # which needs the ids
        ids = {'e_id'} if alone and store.num_edges else set()
        assert late == ids | {'time'}
    assert not any(is_late(s, key) for s in batch.node_stores for key in s)
    batch = next(iter(of_nodes(rich())))
    assert not is_late(batch._store)
    assert not is_late(batch._store, 'edge_weight')


def values_of(batch):
    return {
        (store._key, key): value
        for store in batch.stores
        for key, value in store.items()
        if isinstance(value, torch.Tensor)
    }


def same(one, other):
    return one.keys() == other.keys() and all(
        torch.equal(one[key], other[key]) for key in one
    )


@pytest.mark.parametrize(
    'change',
    [
        lambda b: b.to('cpu'),
        lambda b: b.clone(),
        copy.copy,
        copy.deepcopy,
        lambda b: pickle.loads(pickle.dumps(b)),
        lambda b: b.contiguous(),
        lambda b: HeteroData.from_dict(b.to_dict()),
        lambda b: (str(b), b)[1],
    ],
)
def test_late_values_go_where_a_batch_goes(change):
    for batch, other in zip(of_edges(), of_edges(), strict=True):
        want = values_of(without_blocks(other))
        assert same(values_of(without_blocks(change(batch))), want)


def without_blocks(batch):
    del batch.blocks
    return batch


def test_late_values_are_collated():
    data = Data(edge_index=torch.randint(9, (2, 50)), num_nodes=9)
    batches = list(of_nodes(data, batch_size=3))
    assert all(is_late(batch._store) for batch in batches)
    pair = Batch.from_data_list(list(map(without_blocks, batches)))
    want = [batch.e_id for batch in of_nodes(data, batch_size=3)]
    assert torch.equal(pair.e_id, torch.cat(want))


def test_batches_have_the_same_values_with_threads_and_workers():
    for options in {}, {'prefetch': 3}, {'num_workers': 1}:
        pairs = zip(of_edges(prefetch=0), of_edges(**options), strict=True)
        assert all(same(values_of(a), values_of(b)) for a, b in pairs)


def test_attributes_read_before_are_gathered_in_advance():
    loader = of_edges()
    assert all(is_late(b[FOLLOWS], 'time') for b in loader)
    for batch in loader:
        _ = batch[FOLLOWS].time
    for batch in loader:
        assert not is_late(batch[FOLLOWS], 'time')
        assert is_late(batch[RATES], 'time')


def test_late_values_can_be_trained_on_where_inference_reads_them_first():
    batch = next(iter(of_edges(prefetch=0)))
    with torch.inference_mode():
        time = batch[FOLLOWS].time
    weight = torch.ones(len(time), requires_grad=True)
    (weight * time).sum().backward()
    assert torch.equal(weight.grad, time.float())


def test_compiled_models_read_late_values():
    @torch.compile(backend='eager', fullgraph=True)
    def model(batch):
        store = batch[FOLLOWS]
        return store.time.sum() + store.edge_index.sum()

    for batch, other in zip(of_edges(), of_edges(), strict=True):
        store = other[FOLLOWS]
        want = store.time.sum() + store.edge_index.sum()
        assert model(batch) == want


def made_ahead(batch):
    edges = batch.blocks.edges[None]
    assert batch.num_edges > 1 << 14
    made = 'csc' in vars(edges)
    # Features are given, so the first layer needs no transposed order.
    assert len(edges._transposed) == int(made)
    return made


def test_columns_of_large_batches_are_made_ahead_if_layers_read_them():
    edges = torch.randint(20_000, (2, 200_000))
    data = Data(edge_index=edges, num_nodes=20_000)
    options = {'batch_size': 2000, 'seed': 0}
    for workers in 0, 1:
        loader = NeighborLoader(data, [8, 4], **options, num_workers=workers)
        assert not any(map(made_ahead, loader))
        for batch in loader:
            _ = batch.blocks.to('cpu')[0]
        assert all(map(made_ahead, loader))
    loader = NeighborLoader(
        data, [8, 4], **options, num_workers=1, filter_per_worker=True
    )
    assert made_ahead(next(iter(loader)))  # it is not told what is read
    loader = NeighborLoader(data, [8, 4], **options, prefetch=0)
    for batch in loader:
        assert not made_ahead(batch)
        _ = batch.blocks[0].csc
    data = Data(edge_index=edges[:, :999], num_nodes=20_000)
    small = next(iter(of_nodes(data, prefetch=2)))
    assert 'csc' not in vars(small.blocks.edges[None])
