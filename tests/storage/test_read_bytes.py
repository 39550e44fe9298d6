"""Bytes at any offset are read once, and checked."""

import numpy as np
import pytest
import torch

from torch_gsample.storage import ChunkedGraph
from torch_gsample.storage.checked_blocks import PIECE
from torch_gsample.storage.reading import File


@pytest.fixture
def graph(tmp_path):
    edge_index = torch.randint(1000, (2, 300_000))
    return ChunkedGraph.write(
        tmp_path / 'g', edge_index, num_nodes=1000, chunk_bytes=1 << 18
    )


@pytest.mark.parametrize('begin', [0, 1, 4095, 4096, 70_001])
@pytest.mark.parametrize('size', [0, 1, 4096, 5000, PIECE + 9])
def test_blocks_are_read_once(graph, monkeypatch, begin, size):
    meta = graph.meta.relations[0]
    want = np.fromfile(graph.path / meta.file, np.uint8)[begin : begin + size]
    read, seen = File.read_ranges, [0]

    def counted(self, offset, size, out, engine='auto'):
        seen[0] += int(size.sum())
        return read(self, offset, size, out, engine)

    monkeypatch.setattr(File, 'read_ranges', counted)
    monkeypatch.setattr(File, 'read', None)
    out = np.zeros(size, np.uint8)
    graph.checked[0].read_bytes(graph.open(meta), begin, out)
    assert (out == want).all()
    assert seen[0] <= size + 2 * 4096


def test_damage_is_found(graph):
    meta = graph.meta.relations[0]
    with open(graph.path / meta.file, 'r+b') as file:
        file.seek(9000)
        byte = file.read(1)
        file.seek(9000)
        file.write(bytes([byte[0] ^ 1]))
    graph = ChunkedGraph(graph.path)
    checked, file = graph.checked[0], graph.open(meta)
    checked.read_bytes(file, 12_288, np.empty(10, np.uint8))
    with pytest.raises(ValueError, match='offset 8192'):
        checked.read_bytes(file, 8190, np.empty(10, np.uint8))
