"""Graphs of format 1 are read, and written again as format 2."""

import functools
import os
import re
import signal
import sys

import pytest
import torch

from tests.samplers import graphs
from tests.storage import disk
from torch_gsample.storage import (
    ChunkedGraph,
    RandomReadSampler,
    StreamingSampler,
)
from torch_gsample.storage.format import HEADER

KINDS = {
    'plain': (disk.homogeneous, False, False),
    'weighted and timed': (disk.homogeneous, True, True),
    'typed': (disk.heterogeneous, True, True),
}


@pytest.fixture(params=KINDS)
def first(request, tmp_path):
    """A graph of version 1; columns continue over chunks."""
    data, *options = KINDS[request.param]
    graph = disk.write(tmp_path / 'first', data(), *options)
    return disk.make_first(graph.path)


def samples(graph, kind):
    node_type = graph.meta.node_types[0]
    seeds = torch.arange(min(graph.num_nodes[node_type], 40))
    timed = any(graph.meta.node_times)
    nodes = graphs.nodes(
        seeds, node_type, torch.full_like(seeds, 15) if timed else None
    )
    sampler = kind(graph, [3, -1], seed=1, rng_scope='epoch')
    if kind is StreamingSampler:
        sampler.prepare_epoch(nodes, 0)
    out = sampler.sample_from_nodes(nodes)
    if kind is StreamingSampler:
        sampler.close()
    return out


def permutation(graph):
    types = graph.num_edges
    return None if None in types else dict.fromkeys(types)


@pytest.mark.parametrize('kind', [RandomReadSampler, StreamingSampler])
@pytest.mark.parametrize('verify', ['always', 'once', 'never'])
def test_both_versions_give_the_same_samples(first, tmp_path, kind, verify):
    second = ChunkedGraph.write(
        tmp_path / 'second', first, chunk_bytes=400, alignment=512
    )
    assert (first.meta.version, second.meta.version) == (1, 2)
    outs = [
        samples(ChunkedGraph(graph.path, verify=verify), kind)
        for graph in (first, second)
    ]
    disk.assert_same(*outs, permutation(first))
    first.verify()
    second.verify()


def test_the_same_bytes_are_written_again(first, tmp_path):
    again = ChunkedGraph.write(
        tmp_path / 'again', first, chunk_bytes=400, alignment=512
    )
    for relation in first.meta.relations:
        paths = [g.path / relation.file for g in (first, again)]
        assert paths[0].read_bytes() == paths[1].read_bytes()
    for time in first.node_times():
        assert torch.equal(first.node_times()[time], again.node_times()[time])


def test_other_chunks_have_the_same_samples(first, tmp_path):
    other = ChunkedGraph.write(
        tmp_path / 'other',
        first,
        chunk_bytes=20_000,
        directories=[tmp_path / 'disk'],
    )
    assert len(other.meta.relations[0].chunks) < len(
        first.meta.relations[0].chunks
    )
    outs = [samples(graph, RandomReadSampler) for graph in (first, other)]
    disk.assert_same(*outs, permutation(first))


def test_a_damaged_graph_is_not_written_again(first, tmp_path):
    path = first.path / first.meta.relations[0].file
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match='the checksum of chunk'):
        ChunkedGraph.write(tmp_path / 'again', ChunkedGraph(first.path))
    assert os.listdir(tmp_path) == ['first']


def test_the_chunks_that_are_read_count_as_memory(tmp_path):
    graph = disk.write(tmp_path / 'g', disk.homogeneous(), chunk_bytes=4_096)
    largest = int(graph.meta.relations[0].chunks[:, 5].max())
    needed = 6 * 1_000 + 2 * largest
    message = f"'chunk_bytes' and what reading the graph takes, {needed} (got"
    options = {'chunk_bytes': 1_000, 'alignment': 512}
    with pytest.raises(ValueError, match=re.escape(message)):
        ChunkedGraph.write(
            tmp_path / 'h', graph, memory_limit=needed - 1, **options
        )
    ChunkedGraph.write(tmp_path / 'h', graph, memory_limit=needed, **options)


def test_an_upgrade_that_is_killed_leaves_the_old_graph(tmp_path):
    first = disk.write(tmp_path / 'first', disk.homogeneous(), True, True)
    path = disk.make_first(first.path).path

    def write_until(left):
        def hook(event, args):
            nonlocal left
            if event in ('open', 'os.rename') and str(tmp_path) in str(args):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        ChunkedGraph.write(tmp_path / 'second', ChunkedGraph(path))

    killed = 0
    while disk.in_a_fork(functools.partial(write_until, killed + 1)) != 0:
        killed += 1
        ChunkedGraph(path).verify()
        if (tmp_path / 'second').exists():
            break
    assert killed > 5
    ChunkedGraph(tmp_path / 'second').verify()


@pytest.mark.parametrize('version', [1, 2])
@pytest.mark.parametrize('when', ['always', 'once', 'never'])
def test_parts_are_checked_when_their_turn_is(tmp_path, version, when):
    """``once`` trusts a part until the file changes, by its time stamp."""
    data = disk.homogeneous()
    graph = disk.write(tmp_path / 'g', data, chunk_bytes=2_000)
    if version == 1:
        disk.make_first(graph.path)
    graph = ChunkedGraph(graph.path, verify=when)
    file, at = graph.path / 'edges-0.bin', 84
    sampler = RandomReadSampler(graph, [-1], seed=0, cache_bytes=0)
    nodes = graphs.nodes(torch.tensor([0]))
    sampler.sample_from_nodes(nodes)
    text = bytearray(file.read_bytes())
    text[-1] ^= 1  # padding, which no sample reads
    file.write_bytes(text)
    sampler.sample_from_nodes(nodes)  # other parts are not read
    text[-1] ^= 1
    text[at] ^= 1 << 6  # an offset of a node that is not read
    file.write_bytes(text)
    checks = graph.checked[0]
    if when == 'once':
        # As if the file had not changed.
        checks._file = sampler._reads.readers()[0]._blocks._file.identity()
        sampler.sample_from_nodes(nodes)
        checks._file = ()
    if when == 'never':
        sampler.sample_from_nodes(nodes)
        return
    with pytest.raises(ValueError, match='the checksum of'):
        sampler.sample_from_nodes(nodes)


def test_only_blocks_that_are_read_are_checked(tmp_path):
    """A first batch reads no chunk as a whole."""
    data = disk.homogeneous(2_000, 100_000)
    graph = disk.write(
        tmp_path / 'g', data, chunk_bytes=1 << 20, alignment=4096
    )
    assert len(graph.meta.relations[0].chunks) == 1
    sampler = RandomReadSampler(graph, [5], seed=0)
    sampler.sample_from_nodes(graphs.nodes(torch.tensor([1_000])))
    read = sampler.stats()['blocks_read']
    assert graph.checked[0]._whole.sum() == read < 10


def test_verify_is_checked(tmp_path):
    disk.write(tmp_path / 'g', disk.homogeneous())
    with pytest.raises(ValueError, match=r"'verify' must be one of .*'x'"):
        ChunkedGraph(tmp_path / 'g', verify='x')


def test_a_header_is_64_bytes():
    assert HEADER.size == 64
