"""Contents of scratch files are read unchanged, or not at all."""

import os
import random

import numpy as np
import pytest
import torch
from torch_geometric.sampler import SamplerOutput

from tests.storage.disk import in_a_fork
from torch_gsample.samplers.output.attributes import AttributedOutput
from torch_gsample.storage import FeatureFile
from torch_gsample.storage.crc32c import BLOCK
from torch_gsample.storage.packed_rows import PackedRows
from torch_gsample.storage.reading import page_aligned
from torch_gsample.storage.sample_spill import SampleSpill
from torch_gsample.storage.scratch_file import ScratchFile

FLIPS = 200


def test_flipped_bits_of_packed_rows_are_found(tmp_path):
    x = torch.arange(10_000.0).view(100, 100)
    file = FeatureFile.write(tmp_path / 'x', x)
    rows, ends = np.arange(0, 100, 2), np.array([0, 50])
    packed = PackedRows(tmp_path, file.row_bytes, ends, direct=False)
    packed.pack(rows, file.scan(1 << 20), 1 << 20)
    want = packed.read(0).copy()
    memory = page_aligned(5 * BLOCK)

    def pieces():
        return [part.copy() for _, part in packed.pieces(0, memory)]

    assert len(pieces()) == 2
    draws, found = random.Random(0), 0
    for _ in range(FLIPS):
        at, bit = draws.randrange(want.size), 1 << draws.randrange(8)
        old = os.pread(packed._file.fd, 1, at)
        os.pwrite(packed._file.fd, bytes([old[0] ^ bit]), at)
        with pytest.raises(ValueError, match='offset 0: the checksum of rows'):
            packed.read(0)
        with pytest.raises(ValueError, match='offset 0: the checksum of rows'):
            pieces()
        os.pwrite(packed._file.fd, old, at)
        found += 1
    assert found == FLIPS
    assert np.array_equal(packed.read(0), want)
    assert np.array_equal(np.concatenate(pieces()), want)
    for size in range(0, want.size, 997):
        os.ftruncate(packed._file.fd, size)
        with pytest.raises(OSError, match='the file ends too early'):
            packed.read(0)
        with pytest.raises(OSError, match='the file ends too early'):
            pieces()


def test_flipped_bits_of_spilled_samples_are_found(tmp_path):
    spill = SampleSpill(tmp_path)
    sample = SamplerOutput(torch.arange(500), None, torch.ones(7), None)
    draws = random.Random(0)
    for _ in range(FLIPS):
        spilled = spill.add(sample)
        # Parts begin at multiples of 64 bytes, and end at any.
        parts = np.cumsum([0, *(-(-n // 64) * 64 for n in spilled.sizes)])
        part = draws.randrange(len(spilled.sizes))
        at = draws.randrange(spilled.sizes[part])
        at += spilled.offset + int(parts[part])
        old, bit = os.pread(spill._file.fd, 1, at), draws.randrange(8)
        os.pwrite(spill._file.fd, bytes([old[0] ^ 1 << bit]), at)
        with pytest.raises(ValueError, match='the checksum of a sample'):
            spill.take(spilled)
    spill.close()


def test_samples_come_back_as_they_were(tmp_path):
    spill = SampleSpill(tmp_path)
    row = torch.arange(12).view(3, 4).T
    sample = SamplerOutput(
        node=torch.arange(5),
        row=row,
        col=row,
        edge=torch.empty(0, dtype=torch.int32),
        num_sampled_nodes=[3, 2],
        metadata=(None, torch.tensor(3.5)),
    )
    spilled = [spill.add(sample) for _ in range(3)]
    for i in (1, 0, 2):
        out = spill.take(spilled[i])
        assert type(out) is SamplerOutput
        assert out.row is out.col
        assert torch.equal(out.row, row)
        assert out.edge.dtype == torch.int32
        assert out.metadata[1] == 3.5
        assert out.num_sampled_nodes == [3, 2]
        assert out.node.data_ptr() % 64 == 0
        out.node += 1  # memory of its own
    with_grad = torch.ones(3, requires_grad=True)
    for value in (with_grad, lambda: 0, torch.nn.Linear(1, 1)):
        sample = AttributedOutput(torch.arange(3), None, None, None)
        sample.attributes.edge[None] = {'w': value}
        assert spill.add(sample) is None
    spill.close()


def test_a_closed_scratch_file_takes_no_space(tmp_path):
    """A forked process may hold it, and does not empty it."""
    file = ScratchFile(tmp_path)
    file.write(0, bytes(1 << 20))
    assert in_a_fork(file.close) == 0
    other = os.dup(file.fd)
    assert os.fstat(other).st_size == 1 << 20
    file.close()
    file.close()
    assert os.fstat(other).st_size == 0
    os.close(other)
