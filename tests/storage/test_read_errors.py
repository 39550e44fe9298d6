"""A disk that fails is an error with file and offset, and loses nothing.

The kernel itself refuses the reads: of a file that is replaced, below its
descriptor, by memory where nothing is mapped (EIO).
"""

import contextlib
import errno
import os

import pytest
import torch
from torch_geometric.nn import GraphSAGE
from torch_geometric.sampler import NodeSamplerInput

from torch_gsample.storage import (
    ChunkedGraph,
    FeatureFile,
    RandomReadSampler,
    StreamingSampler,
    infer,
)
from torch_gsample.storage.reading import File

NODES = 200


@pytest.fixture
def broken(monkeypatch):
    """Returns a context in which reads of a file fail."""
    opened, failing, init = [], set(), File.__init__
    memory = os.open('/proc/self/mem', os.O_RDONLY)

    def fail(file):
        # Pages below the first one that may be mapped; see mmap_min_addr.
        os.dup2(memory, file.fd)

    def opening(self, path, direct=False):
        init(self, path, direct)
        opened.append(self)
        if path in failing:
            fail(self)

    @contextlib.contextmanager
    def context(path):
        def files():
            return [f for f in opened if f.path == path and f.fd >= 0]

        failing.add(path)
        for file in files():
            fail(file)
        yield
        failing.clear()
        good = os.open(path, os.O_RDONLY)
        for file in files():
            os.dup2(good, file.fd)
        os.close(good)

    monkeypatch.setattr(File, '__init__', opening)
    yield context
    os.close(memory)


@pytest.fixture
def graph(tmp_path):
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(NODES, (2, 4000), generator=generator)
    path = tmp_path / 'g'
    return ChunkedGraph.write(
        path, edge_index, num_nodes=NODES, chunk_bytes=4096
    )


def batch(sampler):
    return sampler.sample_from_nodes(NodeSamplerInput(None, torch.arange(9)))


def streamed(graph):
    sampler = StreamingSampler(graph, [3, 2], seed=0)

    def read():
        sampler.prepare_epoch(torch.arange(9), 0)
        return batch(sampler).node

    return read


def by_random_reads(engine):
    def make(graph):
        sampler = RandomReadSampler(
            graph, [3, 2], seed=0, cache_bytes=0, engine=engine
        )
        return lambda: batch(sampler).node

    return make


def columns(graph):
    matrix = graph.matrix(cache_bytes=0)
    return lambda: matrix[:, torch.arange(9)].row()


def inferred(graph):
    model = GraphSAGE(4, 4, 1).eval()
    x = torch.rand(NODES, 4)
    out = graph.path.parent / 'out.gsf'
    return lambda: infer(model, graph, x, out=out, memory='64MiB')[:]


READERS = {
    'streamed': streamed,
    'threads': by_random_reads('threads'),
    'auto': by_random_reads('auto'),
    'columns': columns,
    'inferred': inferred,
    'verified': lambda graph: lambda: graph.verify() or torch.empty(0),
}


@pytest.mark.parametrize('name', READERS)
def test_the_error_names_file_and_offset(graph, broken, name):
    path = graph.path / graph.meta.relations[0].file
    read = READERS[name](graph)
    with broken(path), pytest.raises(OSError, match=r'offset \d+') as error:
        read()
    assert error.value.errno == errno.EIO
    assert error.value.filename == str(path)
    got = read()  # the same objects continue when the disk does
    fresh = ChunkedGraph(graph.path)
    if name != 'inferred':
        assert torch.equal(got, READERS[name](fresh)())
    else:
        assert got.shape == (NODES, 4)


@pytest.mark.parametrize('engine', ['threads', 'auto'])
def test_features_that_cannot_be_read(tmp_path, broken, engine):
    x = torch.rand(300, 40)
    path = tmp_path / 'x.gsf'
    FeatureFile.write(path, x)
    file = FeatureFile(path, engine=engine)
    index = torch.tensor([250, 3])
    with broken(path), pytest.raises(OSError, match=r'offset \d+') as error:
        file[index]
    assert error.value.errno == errno.EIO
    assert error.value.filename == str(path)
    assert torch.equal(file[index], x[index])
