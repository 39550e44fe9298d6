"""Graphs on disk for the tests, and what equal samples are."""

import errno
import json
import os
import random
import resource
import signal
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import HeteroData

from tests.samplers import graphs
from torch_gsample import NeighborSampler
from torch_gsample.storage import ChunkedGraph
from torch_gsample.storage.crc32c import block_checksums
from torch_gsample.storage.format import BLOCKS_OF_FILE, GraphMeta, seal

MEMORY = 64 << 20


def timed(data, seed=0):
    """Adds weights (a third are 0), and times of nodes and of edges."""
    generator = torch.Generator().manual_seed(seed)
    hetero = isinstance(data, HeteroData)
    nodes = [data[t] for t in data.node_types] if hetero else [data]
    for store in nodes:
        size = (store.num_nodes,)
        store.time = torch.randint(0, 20, size, generator=generator)
    for store in [s for _, s in data.edge_items()] if hetero else [data]:
        size = (store.edge_index.shape[1],)
        store.edge_time = torch.randint(0, 20, size, generator=generator)
        weight = torch.rand(size, generator=generator)
        store.weight = weight * (weight > 0.33)
    return data


def homogeneous(num_nodes=60, num_edges=900):
    return timed(graphs.homogeneous(num_nodes, num_edges))


def heterogeneous():
    return timed(graphs.heterogeneous())


def write(path, data, weighted=False, temporal=False, **options):
    options = {'chunk_bytes': 400, 'alignment': 512} | options
    return ChunkedGraph.write(
        path,
        data,
        weight_attr='weight' if weighted else None,
        time_attr=('time', 'edge_time') if temporal else None,
        **options,
    )


def edit(path, change):
    """Changes `meta.json`; its own checksum is right."""
    meta = json.loads((path / 'meta.json').read_text())
    second = meta.pop('checksum', None) is not None
    change(meta)
    text = seal(meta) if second else json.dumps(meta)
    (path / 'meta.json').write_text(text)


def mend(path):
    """Makes the checksums of edges and times right again."""
    path = Path(path)

    def change(fields):
        generation = int(fields['generation'], 16)
        meta = GraphMeta([], [], [], [], [], fields['alignment'])
        meta.generation = generation
        for i, name in enumerate(fields['node_times']):
            if name is not None:
                data = (path / name).read_bytes()
                fields['time_checksums'][i] = meta.file_checksum(name, data)
        for i, relation in enumerate(fields['relations']):
            data = np.fromfile(path / relation['file'], np.uint8)
            data = data[: len(data) // meta.block_bytes * meta.block_bytes]
            table = block_checksums(
                data, i * BLOCKS_OF_FILE, generation, meta.block_bytes
            )
            name = Path(relation['file']).stem + '.crc'
            table.tofile(path / name)
            data = table.view(np.uint8)
            relation['checksum'] = meta.file_checksum(name, data)

    edit(path, change)


def make_first(path):
    """Makes a graph one of version 1, as earlier releases wrote it."""
    path = Path(path)
    meta = json.loads((path / 'meta.json').read_text())
    for name in ('checksum', 'generation', 'directories'):
        del meta[name]
    meta['version'] = 1
    for i, name in enumerate(meta['node_times']):
        if name is not None:
            data = (path / name).read_bytes()
            meta['time_checksums'][i] = zlib.crc32(data)
    for relation in meta['relations']:
        del relation['checksum']
        data = (path / relation['file']).read_bytes()
        for row in relation['chunks']:
            row.append(zlib.crc32(data[row[4] : row[4] + row[5]]))
    for file in path.glob('*.crc'):
        file.unlink()
    (path / 'meta.json').write_text(json.dumps(meta))
    return ChunkedGraph(path)


def in_memory(data, num_neighbors, weighted=False, temporal=False, **options):
    return NeighborSampler(
        data,
        num_neighbors,
        weight_attr='weight' if weighted else None,
        time_attr=('time', 'edge_time') if temporal else None,
        **options,
    )


def assert_same(out, want, permutation):
    """Asserts that two samples are equal; edges have their original ids."""
    for name in ('node', 'row', 'col', 'batch'):
        assert_equal(getattr(out, name), getattr(want, name))
    assert out.num_sampled_nodes == want.num_sampled_nodes
    assert out.num_sampled_edges == want.num_sampled_edges
    assert_equal(out.edge, original(want.edge, permutation))
    for a, b in zip(out.metadata, want.metadata, strict=True):
        assert_equal(a, b)


def original(edge, permutation):
    if isinstance(edge, dict):
        return {t: original(e, permutation[t]) for t, e in edge.items()}
    return edge if permutation is None else permutation[edge]


def assert_equal(a, b):
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_equal(a[key], b[key])
    elif a is None:
        assert b is None
    else:
        assert a.dtype == b.dtype
        assert torch.equal(a, b)


def fill_a_disk(limit, write):
    """Expects an error of a full disk that names a file and an offset.

    A limit of the size of files stands for the disk.
    """

    def fail():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        named = r"File too large \(writing offset \d+\): '/.*[.]"
        with pytest.raises(OSError, match=named) as caught:
            write()
        raise caught.value

    assert os.waitstatus_to_exitcode(in_a_fork(fail)) == errno.EFBIG


def in_a_fork(function):
    """Runs a function in a process of its own; returns its wait status."""
    pid = os.fork()
    if pid == 0:
        torch.set_num_threads(1)  # threads of the parent are not there
        try:
            function()
        except OSError as error:
            os._exit(error.errno)
        except BaseException:
            os._exit(255)
        os._exit(0)
    return os.waitpid(pid, 0)[1]


def kill_at_random(function, times):
    """Kills processes that run a function; yields whether each was killed."""
    draws, seconds = random.Random(0), 0.02
    for _ in range(times):
        pid = os.fork()
        if pid == 0:
            torch.set_num_threads(1)  # threads of the parent are not there
            try:
                function()
            finally:
                os._exit(0)
        time.sleep(draws.random() * seconds)
        os.kill(pid, signal.SIGKILL)
        is_killed = os.WIFSIGNALED(os.waitpid(pid, 0)[1])
        # About half of them are killed, however fast the machine is.
        seconds *= 1.2 if is_killed else 0.8
        yield is_killed
