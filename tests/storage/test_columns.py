"""Columns of a relation on disk, compared with plain loops over its edges."""

import threading

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from torch_gsample import ops
from torch_gsample.rng import make_key
from torch_gsample.storage import ChunkedGraph
from torch_gsample.storage.columns import pointers_of
from torch_gsample.storage.draw_columns import draw_columns
from torch_gsample.storage.hops import Frontier
from torch_gsample.storage.random_reads import RandomReads

NODES = 60


@pytest.fixture(scope='module')
def columns():
    """The edges of each node: a hub of 3,000, nodes without, and others."""
    generator = torch.Generator().manual_seed(0)
    degree = torch.randint(9, (NODES,), generator=generator)
    degree[7], degree[20:24] = 3_000, 0
    col = torch.repeat_interleave(degree)
    row = torch.randint(NODES, (len(col),), generator=generator)
    weight = torch.rand(len(col), generator=generator)
    return row, col, weight


@pytest.fixture(scope='module')
def graph(tmp_path_factory, columns):
    """Chunks of a block or two, so the hub continues over several."""
    row, col, weight = columns
    edges = Data(
        edge_index=torch.stack([row, col]), weight=weight, num_nodes=NODES
    )
    path = tmp_path_factory.mktemp('columns') / 'graph'
    return ChunkedGraph.write(
        path, edges, weight_attr='weight', chunk_bytes=4096
    )


def reader_of(graph, cache_bytes):
    return RandomReads(graph, cache_bytes).readers()[0]


@pytest.mark.parametrize('cache_bytes', [0, 4096, 3 * 4096, 1 << 20])
def test_bounds_items_and_ranges_equal_plain_loops(
    graph, columns, cache_bytes
):
    row, col, weight = columns
    reader = reader_of(graph, cache_bytes)
    assert len(graph.meta.relations[0].chunks) > 4
    first = torch.searchsorted(col, torch.arange(NODES + 1))
    nodes = torch.tensor([7, 59, 0, 7, 20, 23, 24, 6, 8, 7])
    for _ in range(3):  # from disk, then from the cache
        start, length = reader.bounds(nodes)
        assert start.tolist() == [int(first[v]) for v in nodes]
        assert length.tolist() == [int(first[v + 1] - first[v]) for v in nodes]
        position = torch.tensor([len(row) - 1, 0, 3_000, 1, 2_047, 0])
        neighbor, _ = reader.edges(position)
        assert neighbor.tolist() == row[position].tolist()
        start, indptr = reader.columns(nodes)
        found = reader.ranges('weight', start, indptr)
        want = torch.cat([weight[first[v] : first[v + 1]] for v in nodes])
        assert torch.equal(found, want)


def test_ranges_cross_blocks_that_are_apart_in_the_cache(tmp_path, columns):
    row, col, weight = columns
    edges = Data(
        edge_index=torch.stack([row, col]), weight=weight, num_nodes=NODES
    )
    graph = ChunkedGraph.write(
        tmp_path / 'graph', edges, weight_attr='weight', chunk_bytes=1 << 16
    )
    reader = reader_of(graph, 1 << 20)
    for position in range(len(row) - 1, -1, -256):  # the last block first
        reader.items('weight', torch.tensor([position]))
    start, indptr = torch.tensor([0]), torch.tensor([0, len(row)])
    for _ in range(2):  # the blocks of the first edges are read at first
        assert torch.equal(reader.ranges('weight', start, indptr), weight)


def test_no_nodes_have_no_edges(graph):
    reader, none = reader_of(graph, 1 << 20), torch.tensor([]).long()
    start, indptr = reader.columns(none)
    assert (start.tolist(), indptr.tolist()) == ([], [0])
    assert reader.ranges('weight', start, indptr).tolist() == []
    assert reader.items('neighbor', none).tolist() == []


def test_draws_equal_those_of_the_operator(columns):
    _, col, weight = columns
    length = torch.bincount(col, minlength=NODES)
    indptr, nodes = pointers_of(length), torch.arange(NODES)
    cumulated = ops.cumulate_weights(indptr, weight)
    frontier = Frontier(nodes, nodes * 3, None)
    for k in (-1, 0, 4, 100):
        for replace in (False, True):
            for cum_weight in (None, cumulated):
                options = {
                    'key': make_key(1, 2, 3),
                    'replace': replace and k >= 0,
                    'time_window': None,
                    'temporal_strategy': 'uniform',
                    'num_threads': 2,
                }
                given = indptr[:-1] + 5, indptr, frontier, k, 1, 2, options
                found = draw_columns(*given, cum_weight)
                want = ops.sample_columns(
                    indptr,
                    k,
                    key=options['key'],
                    call_id=1,
                    relation=2,
                    id=nodes,
                    root=nodes * 3,
                    start=indptr[:-1] + 5,
                    cum_weight=cum_weight,
                    replace=options['replace'],
                )
                assert all(map(torch.equal, found, want))


def test_threads_read_through_one_small_cache(graph, columns):
    row, _, _ = columns
    reader, wrong = reader_of(graph, 2 * 4096), []

    def read(seed):
        random = np.random.default_rng(seed)
        for _ in range(150):
            position = torch.from_numpy(random.integers(0, len(row), 50))
            neighbor, _ = reader.edges(position)
            if neighbor.tolist() != row[position].tolist():
                wrong.append(position)

    threads = [threading.Thread(target=read, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_keys_outside_of_the_graph_read_no_other_memory(graph):
    reader = reader_of(graph, 1 << 20)
    for key in (-(1 << 40), 1 << 40, (1 << 62) // 4):
        with pytest.raises((AssertionError, IndexError, OSError, ValueError)):
            reader.items('neighbor', torch.tensor([key]))
