"""Neighbour lists of the host that a GPU holds, too, under the emulator."""

import ctypes
import gc
import weakref
from importlib import import_module

import pytest
import torch
from torch_geometric.sampler import NodeSamplerInput

from tests.cuda import graphs as cases
from tests.cuda.test_loader import some_data
from tests.ops.layers import plain_call, typed_call
from tests.ops.neighbors import call_one
from torch_gsample import SparseSample, list_cache, placement
from torch_gsample.list_cache import ListCache, choose_lists
from torch_gsample.rng import make_key
from torch_gsample.samplers import NeighborSampler
from torch_gsample.samplers.neighbor import neighborhood

CPU = torch.device('cpu')


@pytest.fixture
def extension(emulated, monkeypatch):
    """The emulated operators find caches."""
    library = ctypes.CDLL(str(emulated.path))
    library.gsample_cache_lists.argtypes = list_cache._SIGNATURE
    library.gsample_forget_lists.argtypes = [ctypes.c_void_p]
    monkeypatch.setattr(list_cache, '_extension', lambda: library)
    emulated.configure()
    return emulated.operator('sample_neighbors')


def sample(operator, indptr, indices, **options):
    args = indptr, indices, cases.some_seeds(3), [5, -1], make_key(0)
    return call_one(operator, *args, **options)


@pytest.mark.sanitize
@pytest.mark.parametrize('options', [{}, {'replace': True}, {'last': True}])
def test_samples_stay_the_same_and_come_from_the_cache(extension, options):
    indptr, indices = cases.skewed_graph(0)
    if options.pop('last', False):
        seeds = cases.some_seeds(3)
        options = {
            'edge_time': torch.arange(indices.numel()),
            'seed_time': (indptr[seeds] + indptr[seeds + 1]) // 2 + 20,
            'disjoint': True,
            'time_window': 300,
        }
    want = sample(
        torch.ops.gsample.sample_neighbors, indptr, indices, **options
    )
    met = torch.bincount(indices, minlength=80)
    cache = ListCache(indptr, indices, met, 8 * (80 + 150), CPU)
    assert 5 < cache.num_lists < 80
    kept = indices.clone()
    cached = choose_lists(indptr, 8, met, 8 * (80 + 150))
    for v in cached.tolist():  # nothing but the cache has them
        indices[indptr[v] : indptr[v + 1]] = -1
    out = sample(extension, indptr, indices, **options)
    for a, b in zip(out, want, strict=True):
        assert torch.equal(a, b)
    hits, both = cache.reads()
    edges = want[3]
    column = torch.searchsorted(indptr, edges, right=True) - 1
    assert both == edges.numel()
    assert hits == int(torch.isin(column, cached).sum()) > 0
    indices.copy_(kept)
    del cache  # forgotten
    indices[:] = -1
    with pytest.raises(RuntimeError, match="'indices' must be in"):
        sample(extension, indptr, indices, **options)


def layers(indptr, indices, frontier='nodes'):
    seeds, keys = cases.some_seeds(3), [make_key(0), make_key(1)]
    args = indptr, indices, seeds, [5, -1], keys, [0, 1]
    return plain_call(*args, frontier=frontier)


def typed_layers(indptr, indices, num_relations=2):
    seeds, keys = cases.some_seeds(3), [make_key(0), make_key(1)]
    ends = [0] * num_relations
    graph = [indptr] * num_relations, [indices] * num_relations, ends, ends
    fanouts = [5, -1] * num_relations
    return typed_call(*graph, [80], [seeds], fanouts, [], [], [], keys, [0, 1])


LAYERS = {
    'nodes': layers,
    'unseen': lambda *graph: layers(*graph, 'unseen'),
    'typed': typed_layers,
    # More than a block counts in its shared memory.
    'many relations': lambda *graph: typed_layers(*graph, num_relations=10),
}


@pytest.mark.sanitize
@pytest.mark.parametrize('name', LAYERS)
def test_layers_come_from_the_cache(extension, emulated, name):
    indptr, indices = cases.skewed_graph(0)
    args, options = LAYERS[name](indptr, indices)
    want = torch.ops.gsample.sample_layers(*args, **options)
    met = torch.bincount(indices, minlength=80)
    cache = ListCache(indptr, indices, met, 8 * (80 + 150), CPU)
    cached = choose_lists(indptr, 8, met, 8 * (80 + 150))
    for v in cached.tolist():  # nothing but the cache has them
        indices[indptr[v] : indptr[v + 1]] = -1
    out = emulated.operator('sample_layers')(*args, **options)
    for ours, theirs in zip(out, want, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            assert torch.equal(a, b)
    # Columns that repeat in a hop share the edges of one draw.
    hits, both = cache.reads()
    assert 0 < hits < both <= sum(edge.numel() for edge in want[2])


def test_a_pinned_matrix_has_its_own_cache(extension, emulated, monkeypatch):
    monkeypatch.setattr(placement, 'read_device', lambda *_: CPU)
    monkeypatch.setattr(
        placement, 'pin', lambda t: emulated.on_host(t, hidden=False)
    )
    indptr, indices = cases.skewed_graph(0)
    made = []
    monkeypatch.setattr(
        list_cache,
        'ListCache',
        lambda *args: made.append(ListCache(*args)) or made[0],
    )
    matrix = SparseSample.from_csc(indptr, indices).pin(8 * (80 + 150))
    args, options = layers(matrix.csc.indptr, matrix.csc.indices)
    want = torch.ops.gsample.sample_layers(*args, **options)
    out = emulated.operator('sample_layers')(*args, **options)
    assert all(map(torch.equal, out[2], want[2]))
    assert made[0].reads()[0] > 0
    gone = weakref.ref(made.pop())
    del matrix, args
    # Memory that a kernel may still read is kept until the next call.
    emulated.operator('gather_rows')(torch.ones(2, 1), torch.tensor([1]))
    gc.collect()
    assert gone() is None
    with pytest.raises(ValueError, match="pin: 'cache_bytes' needs a square"):
        SparseSample.from_csc(indptr, indices, num_rows=99).pin(1)
    with pytest.raises(ValueError, match=r'not be negative \(got -1\)'):
        SparseSample.from_csc(indptr, indices).pin(-1)


def test_last_layer_returns_row_ids_of_the_graph(emulated):
    """Which need be no columns."""
    emulated.configure()
    operator = emulated.operator('sample_layers')
    for indices in ([5, -3, 2**62 - 1], [-1, -(2**62), 7]):
        graph = torch.tensor([0, 3]), torch.tensor(indices)
        args = *graph, torch.tensor([0]), [-1], [make_key(0)], [0]
        assert operator(*plain_call(*args)[0])[1][0].tolist() == indices
        narrow = graph[0].int(), graph[1].clamp(-9, 9).int(), *args[2:]
        out = operator(*plain_call(*narrow)[0])
        assert out[1][0].tolist() == narrow[1].tolist()


def test_other_graphs_at_the_address_have_no_cache(extension):
    indptr, indices = cases.skewed_graph(0)
    met = torch.bincount(indices, minlength=80)
    cache = ListCache(indptr, indices, met, 10**6, CPU)
    args = indptr, indices[:-1].contiguous()
    args[0][-1] -= 1
    assert args[1].data_ptr() == indices.data_ptr()
    sample(extension, *args)
    assert cache.reads() == (0, 0)


def test_lists_are_chosen_by_their_worth():
    indptr = torch.tensor([0, 100, 104, 104, 108])
    met = torch.tensor([30, 2, 90, 4])
    for num_items, want in ((3, []), (4, [3]), (104, [0, 3]), (107, [0, 3])):
        out = choose_lists(indptr, 4, met, 4 * num_items + 32)
        assert out.tolist() == want
    assert choose_lists(indptr, 4, met, 0).numel() == 0
    assert choose_lists(indptr, 4, met, 10**6).tolist() == [0, 1, 3]


def test_samplers_count_their_reads(extension, driver, monkeypatch):
    monkeypatch.setattr(
        'torch_gsample.samplers.neighbor.node_wise.read_device',
        lambda *_: 'cuda',
    )
    monkeypatch.setattr(
        neighborhood.Neighborhood,
        'on',
        lambda self, device, kind, induced, cache_bytes: self.place(
            placement.Placement(CPU, True)
        ).cached(cache_bytes),
    )
    module = import_module('torch_gsample.ops.sample_neighbors')
    monkeypatch.setattr(module, '_operator', extension)
    sampler = NeighborSampler(some_data(), [3, 3], cache_bytes=10**6)
    inputs = NodeSamplerInput(torch.arange(8), torch.arange(8))
    out = sampler.sample_from_nodes(inputs)
    edges = out.row.numel()
    stats = sampler.stats()
    assert (stats['edges_read'], stats['edges_cached']) == (edges, edges)
