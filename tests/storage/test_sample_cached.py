"""Batches of which all blocks are cached are sampled in place, by one call."""

import ctypes
import threading

import numpy as np
import pytest
import torch

from tests.samplers import graphs
from tests.storage import disk
from tests.storage.test_bad_input import flip, place
from tests.storage.test_equality import OPTIONS
from torch_gsample.rng import batch_scope
from torch_gsample.storage import (
    ChunkedGraph,
    RandomReadSampler,
    sample_cached,
)
from torch_gsample.storage.block_cache import BlockCache
from torch_gsample.storage.crc32c import functions

# If edges bound later hops, samples need times of edges between hops.
SAMPLED_IN_PLACE = [name for name in OPTIONS if 'edge' not in name]
SEEDS = torch.tensor([3, 17, 3, 59, 0, 30, 31, 32, 17])


def read_in_place(sampler, monkeypatch, *inputs):
    """Caches the blocks of batches; the sampler reads none from now on."""
    for _ in range(40):  # more than the sampler skips
        for i, batch in enumerate(inputs):
            with batch_scope(0, i % 3):
                sampler.sample_from_nodes(batch)

    def fail(*_):
        raise AssertionError('a block was not cached')

    monkeypatch.setattr(sampler, 'begin_batch', fail)


def pair(path, data, fanouts, options, write, **reading):
    """A sampler on disk, and that of the same graph in memory."""
    own = {
        key: value
        for key, value in options.items()
        if key not in ('weighted', 'temporal')
    }
    stored = {key: options[key] for key in options.keys() - own.keys()}
    graph = disk.write(path, data, **stored, **write)
    sampler = RandomReadSampler(graph, fanouts, seed=3, **reading, **own)
    return sampler, disk.in_memory(data, fanouts, seed=3, **options)


def compare(sampler, want, inputs, batch=0):
    with batch_scope(0, batch):
        disk.assert_same(
            sampler.sample_from_nodes(inputs),
            want.sample_from_nodes(inputs),
            want.edge_permutation,
        )


def inputs_of(options, node_type=None):
    time = torch.arange(len(SEEDS)) * 5 % 23
    time = time if options.get('temporal') else None
    return graphs.nodes(SEEDS, node_type, time, torch.arange(len(SEEDS)))


@pytest.mark.parametrize('chunk_bytes', [400, 1 << 20])
@pytest.mark.parametrize('name', SAMPLED_IN_PLACE)
def test_cached_samples_are_equal(tmp_path, monkeypatch, name, chunk_bytes):
    options, write = OPTIONS[name], {'chunk_bytes': chunk_bytes}
    sampler, want = pair(
        tmp_path / 'graph', disk.homogeneous(), [4, -1, 2], options, write
    )
    inputs = inputs_of(options)
    read_in_place(sampler, monkeypatch, *3 * [inputs])
    for i in range(3):
        compare(sampler, want, inputs, batch=i)


@pytest.mark.parametrize(
    'name', [name for name in SAMPLED_IN_PLACE if name != 'bidirectional']
)
def test_cached_samples_of_several_types_are_equal(
    tmp_path, monkeypatch, name
):
    options, data = OPTIONS[name], disk.heterogeneous()
    node_type = data.node_types[0]
    sampler, want = pair(
        tmp_path / 'graph', data, [3, 2], options, {'chunk_bytes': 400}
    )
    inputs = inputs_of(options, node_type)
    inputs.node %= data[node_type].num_nodes
    read_in_place(sampler, monkeypatch, inputs)
    compare(sampler, want, inputs)


@pytest.mark.parametrize('weighted', [False, True])
def test_columns_of_many_blocks_are_equal(tmp_path, monkeypatch, weighted):
    data = disk.homogeneous(num_nodes=300, num_edges=60_000)
    data.edge_index[1, :40_000] = 7
    options = {'weighted': weighted, 'temporal': True, 'time_window': 9}
    sampler, want = pair(
        tmp_path / 'graph', data, [20, 10], options, {'chunk_bytes': 1 << 16}
    )
    inputs = inputs_of(options)
    inputs.node[0] = 7
    # Blocks are read in another order than the file's.
    for first in torch.arange(300).roll(150).split(50):
        time = torch.full((len(first),), 22)
        sampler.sample_from_nodes(
            graphs.nodes(first, None, time, torch.arange(len(first)))
        )
    read_in_place(sampler, monkeypatch, inputs)
    compare(sampler, want, inputs)


def test_items_are_hits_whichever_way_they_are_read(tmp_path):
    sampler, _ = pair(tmp_path / 'graph', disk.homogeneous(), [4, 2], {}, {})
    inputs = inputs_of({})
    sampler.sample_from_nodes(inputs)
    before = sampler.stats()
    out = sampler.sample_from_nodes(inputs)
    after = sampler.stats()
    columns = sum(out.num_sampled_nodes[:2])
    items = 2 * columns + 2 * len(out.row)  # bounds; neighbours and ids
    assert after['hits'] - before['hits'] == items
    assert after['misses'] == before['misses']


def test_a_cache_that_is_too_small_is_tried_now_and_then(
    tmp_path, monkeypatch
):
    sampler, _ = pair(
        tmp_path / 'graph', disk.homogeneous(), [4], {}, {}, cache_bytes=0
    )
    calls, tried, inputs = [], [], inputs_of({})
    own = functions().gsample_sample_cached
    monkeypatch.setattr(
        functions(),
        'gsample_sample_cached',
        lambda *args: calls.append(args) or own(*args),
    )
    for batch in range(60):
        before = len(calls)
        sampler.sample_from_nodes(inputs)
        tried += [batch] * (len(calls) - before)
    assert tried == [0, 1, 3, 7, 15, 31, 47]


def test_errors_of_cached_batches_name_seeds(tmp_path):
    sampler, _ = pair(tmp_path / 'graph', disk.homogeneous(), [4], {}, {})
    sampler.sample_from_nodes(inputs_of({}))
    for seed in (-1, 60):
        with pytest.raises(IndexError, match=rf'\[0, 60\) \(got {seed}\)'):
            sampler.sample_from_nodes(graphs.nodes(torch.tensor([seed])))


@pytest.mark.parametrize('name', ['offset', 'neighbor', 'weight'])
def test_hostile_numbers_in_cached_blocks_are_found(tmp_path, name):
    path = tmp_path / 'graph'
    disk.write(path, disk.homogeneous(), True, True)
    at = place(ChunkedGraph(path), name, chunk=3, item=name == 'offset')
    flip(path, at + (7 if name == 'offset' else 3), checksum=True)
    sampler = RandomReadSampler(
        ChunkedGraph(path), [-1], use_weights=name == 'weight'
    )
    nodes = torch.arange(60)
    inputs, messages = graphs.nodes(nodes, time=nodes * 0 + 30), set()
    for _ in range(4):  # reads blocks at first, then finds them cached
        with pytest.raises(ValueError, match=r'offset \d+: ') as caught:
            sampler.sample_from_nodes(inputs)
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_any_edge_ids_of_cached_blocks_are_only_returned(tmp_path):
    path = tmp_path / 'graph'
    graph = disk.write(path, disk.homogeneous())
    at = place(graph, 'edge_id', chunk=3)
    width = graph.meta.relations[0].widths['edge_id']
    flip(path, at + width - 1, checksum=True)
    inputs, found = graphs.nodes(torch.arange(60)), []
    for cache_bytes in (0, 1 << 20):
        sampler = RandomReadSampler(
            ChunkedGraph(path), [-1], cache_bytes=cache_bytes
        )
        for _ in range(3):  # reads blocks at first, then finds them cached
            found.append(sampler.sample_from_nodes(inputs).edge)
    assert all(torch.equal(edge, found[0]) for edge in found)
    wrong = (found[0] < 0) | (found[0] >= len(found[0]))
    assert int(wrong.sum()) == 1


class _Allocated(ctypes.Structure):
    """``struct mallinfo2`` of glibc."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *('arena', 'ordblks', 'smblks', 'hblks', 'hblkhd', 'usmblks'),
            *('fsmblks', 'uordblks', 'fordblks', 'keepcost'),
        )
    )


def test_samples_that_ctrl_c_interrupts_are_freed(tmp_path, monkeypatch):
    mallinfo = getattr(ctypes.CDLL(None), 'mallinfo2', None)
    if mallinfo is None:
        pytest.skip('needs glibc 2.33')
    mallinfo.restype = _Allocated
    sampler, want = pair(tmp_path / 'graph', disk.homogeneous(), [4], {}, {})
    inputs = inputs_of({})
    read_in_place(sampler, monkeypatch, inputs)

    def interrupt(*_):
        raise KeyboardInterrupt

    def sample(times):
        for _ in range(times):
            with pytest.raises(KeyboardInterrupt):
                sampler.sample_from_nodes(inputs)

    with monkeypatch.context() as patch:
        patch.setattr(sample_cached, '_written', interrupt)
        sample(100)
        before = mallinfo().uordblks
        sample(1000)
        # A sample has more than 200 bytes.
        assert mallinfo().uordblks - before < 100_000
    compare(sampler, want, inputs)


@pytest.mark.parametrize('capacity', [1, 6, 40])
def test_threads_sample_while_others_insert_blocks(tmp_path, capacity):
    options = {'weighted': True}
    sampler, want = pair(
        tmp_path / 'graph',
        disk.homogeneous(),
        [4, 3],
        options,
        {'chunk_bytes': 4096},
        cache_bytes=capacity * 4096,
    )
    batches = [graphs.nodes(torch.arange(i, 60, 30)) for i in range(30)]
    failed = []

    def sample():
        try:
            for _ in range(5):
                for i, inputs in enumerate(batches):
                    with batch_scope(0, i):
                        disk.assert_same(
                            sampler.sample_from_nodes(inputs),
                            want.sample_from_nodes(inputs),
                            want.edge_permutation,
                        )
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=sample) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed[0]


def waits_for(guard, lock, work):
    """Whether work waits for a lock (std::shared_mutex is one of pthread)."""
    pthread, guard = ctypes.CDLL(None), ctypes.c_void_p(guard)
    thread = threading.Thread(target=work)
    getattr(pthread, f'pthread_rwlock_{lock}')(guard)
    try:
        thread.start()
        thread.join(0.2)
        waited = thread.is_alive()
    finally:
        pthread.pthread_rwlock_unlock(guard)
    thread.join()
    return waited


def test_a_sample_in_place_waits_for_inserted_blocks(tmp_path, monkeypatch):
    sampler, _ = pair(tmp_path / 'graph', disk.homogeneous(), [4], {}, {})
    inputs = inputs_of({})
    read_in_place(sampler, monkeypatch, inputs)
    [blocks] = sampler._reads.files()

    def sample():
        sampler.sample_from_nodes(inputs)

    assert waits_for(blocks.cached_blocks.guard, 'wrlock', sample)
    assert not waits_for(blocks.cached_blocks.guard, 'rdlock', sample)


def test_inserted_blocks_wait_for_samples_in_place():
    cache = BlockCache(4, 2)

    def insert():
        cache.insert(np.array([1]), np.ones(4096, np.uint8))

    assert waits_for(cache.blocks.guard, 'rdlock', insert)
    assert cache.find(np.array([4096]), np.empty(1, np.int32)).size == 0
