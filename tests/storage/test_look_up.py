"""Drawn columns are taken whole, of any length and dtype, by any threads."""

import numpy as np
import pytest
import torch

from torch_gsample.storage import drawn as drawn_module
from torch_gsample.storage.drawn import Drawn
from torch_gsample.storage.sampled_nodes import SampledNodes
from torch_gsample.storage.spill import Folder
from torch_gsample.storage.spill_array import SpillArray

LENGTHS = [0, 3, 8, 9, 0, 17, 40, 1, 5, 2]


def open_arrays(folder):
    return [SpillArray(folder.arrays[n]) for n in ('indptr', 'row', 'edge')]


def take(columns, drawn, threads=1):
    """Takes all that the seeds drew; returns nodes, rows, columns and ids."""
    out = [torch.full((int(drawn.offset[-1]),), -1) for _ in range(3)]
    for part in drawn.parts():
        columns.take(columns, drawn, part, threads, out)
    columns.end_hop()
    return columns.all()[0].tolist(), *(part.tolist() for part in out)


@pytest.mark.parametrize('threads', [1, 3])
@pytest.mark.parametrize('limit', [0, 1 << 30], ids=['disk', 'memory'])
@pytest.mark.parametrize('row_type', [torch.int32, torch.int64])
@pytest.mark.parametrize('edge_type', [torch.int32, torch.int64])
def test_columns_are_taken(
    tmp_path, monkeypatch, threads, limit, row_type, edge_type
):
    monkeypatch.setattr(drawn_module, '_COLUMNS', 700)
    row = np.random.default_rng(1).integers(0, 200, sum(LENGTHS))
    edge = -np.arange(100, 185)
    folder = Folder(tmp_path, limit)
    indptr = np.cumsum([0, *LENGTHS])
    folder.write('indptr', [torch.from_numpy(indptr)])
    folder.write('row', [torch.from_numpy(row).to(row_type)])
    folder.write('edge', [torch.from_numpy(edge).to(edge_type)])
    place = np.random.default_rng(0).integers(0, 10, 2_000)
    seeds = torch.from_numpy(np.random.default_rng(2).permutation(2_000))
    columns = SampledNodes(seeds, 2_000, 0, 0, 4_000)
    found = take(columns, Drawn.look_up(*open_arrays(folder), place), threads)
    items = np.concatenate([np.arange(*indptr[i : i + 2]) for i in place])
    assert found[0] == seeds.tolist()  # every row is a seed
    assert seeds[found[1]].tolist() == row[items].tolist()
    length = np.diff(indptr)[place]
    assert found[2] == np.repeat(np.arange(2_000), length).tolist()
    assert found[3] == edge[items].tolist()
    folder.remove()


def test_rows_are_numbered_by_first_occurrence_behind_repeated_seeds():
    seeds, row = torch.tensor([4, 6, 4, 1]), torch.tensor([9, 6, 4, 9, 2])
    for below in (10, 1 << 40):  # a table of nodes, and one of hashes
        columns = SampledNodes(seeds, below, 0, 0, 10)
        assert columns.repeated.tolist() == [0, 0, 2, 0]
        drawn = Drawn.of_columns(torch.tensor([0, 1, 1, 4, 5]), row, row)
        node, rows, cols, edge = take(columns, drawn)
        assert node == [4, 6, 4, 1, 9, 2]
        assert (rows, cols) == ([4, 1, 0, 4, 5], [0, 2, 2, 2, 3])
        assert edge == row.tolist()


def test_trees_have_nodes_of_their_own():
    seeds, row = torch.tensor([4, 6]), torch.tensor([6, 4, 6, 4])
    columns = SampledNodes(seeds, 10, 2, 5, 10)
    drawn = Drawn.of_columns(torch.tensor([0, 2, 4]), row, row)
    node, rows, _, _ = take(columns, drawn)
    assert (node, rows) == ([4, 6, 6, 4], [2, 0, 1, 3])
    assert columns.all()[1].tolist() == [5, 6, 5, 6]


def test_malformed_columns_are_not_taken(tmp_path):
    folder = Folder(tmp_path, 1 << 20)
    for name, values in (
        ('indptr', [0, 2, 1, 9]),
        ('row', [0, 0, 0]),
        ('edge', [0, 0, 0]),
    ):
        folder.write(name, [torch.tensor(values)])
    arrays = open_arrays(folder)
    Drawn.look_up(*arrays, np.array([0]))
    for column in (1, 2):
        with pytest.raises(AssertionError, match='malformed'):
            Drawn.look_up(*arrays, np.array([0, column]))
    folder.remove()


@pytest.mark.parametrize('wrong', [-1, 10, 1 << 40])
def test_a_row_that_is_no_node_is_refused(wrong):
    columns = SampledNodes(torch.tensor([0]), 10, 0, 0, 10)
    row = torch.tensor([1, wrong])
    drawn = Drawn.of_columns(torch.tensor([0, 2]), row, row)
    with pytest.raises(AssertionError, match='not in the graph'):
        take(columns, drawn)
