"""Feeds damaged feature files and scratch files to all that reads them.

    python -m tests.storage.fuzz_features SECONDS

An input is a list of decisions, as in ``fuzz.py``: which small file is damaged
and how, whether checksums are set right again, and what is read of it. Build
the extension with sanitizers to see what C++ does.
"""

import os
import random
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch_geometric.sampler import SamplerOutput

from tests.storage.fuzz import Decisions, damage_bytes
from torch_gsample.storage import FeatureFile
from torch_gsample.storage.crc32c import BLOCK, block_checksums, crc32c
from torch_gsample.storage.packed_rows import PackedRows
from torch_gsample.storage.sample_spill import SampleSpill

ROWS = 60
_KINDS = (
    (torch.float32, 3),
    (torch.float16, 130),
    (torch.int8, 21),
    (torch.float32, 1_300),
)


@cache
def bases() -> list[tuple[bytes, torch.Tensor]]:
    """Small files, and their rows."""
    out = []
    for dtype, width in _KINDS:
        with tempfile.TemporaryDirectory() as folder:
            x = torch.arange(ROWS * width).view(ROWS, width) % 97
            file = FeatureFile.write(f'{folder}/x', x.float(), dtype=dtype)
            out.append((file.path.read_bytes(), file[:]))
    return out


def set_checksums(data: bytearray) -> None:
    """Makes the checksums of rows, table and header right."""
    blocks, generation = np.frombuffer(data, '<i8', 2, 32).tolist()
    generation %= 1 << 64
    end = BLOCK + blocks * BLOCK
    if 0 < blocks < 1_000 and end <= len(data):
        rows = np.frombuffer(bytes(data[BLOCK:end]), np.uint8)
        sums = block_checksums(rows, 0, generation)
        table = bytearray(data[end:])
        size = min(sums.nbytes, len(table))
        table[:size] = sums.tobytes()[:size]
        data[end:] = table
        data[48:52] = crc32c(bytes(table)).to_bytes(4, 'little')
    data[4092:4096] = crc32c(bytes(data[:4092])).to_bytes(4, 'little')


def must_name(error: Exception, path: Path) -> None:
    if str(path) not in str(error):
        raise AssertionError('it names no file') from error


def read(path: Path, want: torch.Tensor, decide: Decisions) -> str:
    """Reads a file in all ways; rows of an undamaged file are right."""
    verify = ('always', 'once', 'never')[decide.number(3, 1)]
    direct, engine = decide.number(2, 1) == 1, decide.number(3, 1)
    index = torch.tensor([decide.number(70, 1) - 3 for _ in range(9)])
    gap, outcome = decide.number(9, 1), 'whole'
    try:
        file = FeatureFile(
            path,
            verify=verify,
            direct=direct,
            engine=('auto', 'io_uring', 'threads')[engine],
        )
    except (ValueError, OSError) as error:
        must_name(error, path)
        return 'refused'
    for action in (
        lambda: file.read(index, gap),
        lambda: file.read(index % max(min(len(file), ROWS), 1), gap),
        lambda: list(file.scan(decide.number(20_000))),
        file.verify,
        lambda: file[:],
    ):
        try:
            action()
        except IndexError:
            assert index.min() < 0 or index.max() >= len(file)
        except (ValueError, OSError) as error:
            must_name(error, path)
            outcome = 'damaged'
    return outcome


def scratch(folder: Path, decide: Decisions) -> str:
    """Damages packed rows or a sample; they are right or an error."""
    flips, size = 1 + decide.number(3, 1), decide.number(7, 1)
    if decide.number(2, 1):
        drawn = [decide.number(ROWS, 1) for _ in range(size)]
        lists = [np.unique(np.array(drawn, int))] * 3
        ends = np.cumsum([0, *map(len, lists)])
        data = np.arange(ROWS * 5, dtype=np.uint8).reshape(ROWS, 5)
        file = PackedRows(folder, 5, ends, decide.number(2, 1) == 1)
        joined = np.concatenate(lists).astype(np.uint32)
        file.pack(joined, [(0, data[:7]), (7, data[7:])], 3 * BLOCK)
        want, ask = data[lists[0]], lambda: file.read(0)
        end = max(want.size, 1)
    else:
        file, nodes = SampleSpill(folder), torch.arange(size)
        spilled = file.add(SamplerOutput(nodes, nodes, None, None))
        want, ask = nodes.numpy(), lambda: file.take(spilled).node.numpy()
        end = file.nbytes
    fd = file._file.fd
    for _ in range(flips):
        at = decide.number(end)
        if decide.number(8, 1) == 0:
            os.ftruncate(fd, at)
        elif not file._file.direct:
            os.pwrite(fd, bytes([decide.number(256, 1)]), at)
    try:
        got = ask()
    except (ValueError, OSError) as error:
        must_name(error, folder)
        return 'damaged'
    finally:
        file.close()
    assert np.array_equal(got, want)
    return 'whole'


def one_input(data: bytes) -> str:
    """Reads the files of an input; returns the outcome."""
    decide = Decisions(data)
    with tempfile.TemporaryDirectory(dir='/dev/shm') as folder:
        if decide.number(4, 1) == 0:
            return scratch(Path(folder), decide)
        base, want = bases()[decide.number(len(bases()), 1)]
        text = bytearray(base)
        for _ in range(decide.number(5, 1)):
            if decide.number(2, 1):  # the header, padded with zeros
                head = text[:128]
                damage_bytes(head, decide)
                text[:128] = head
            else:
                damage_bytes(text, decide)
        if decide.number(4, 1) > 0 and len(text) > BLOCK:
            set_checksums(text)
        path = Path(folder) / 'x'
        path.write_bytes(text)
        return read(path, want, decide)


def read_randomly(seconds: float, seed: int) -> dict[str, int]:
    """Reads inputs at random; returns how many came out how."""
    generator, counts = random.Random(seed), {}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        data = generator.randbytes(generator.randrange(4, 60))
        try:
            outcome = one_input(data)
        except BaseException:
            print('input:', data.hex(), flush=True)
            raise
        counts[outcome] = counts.get(outcome, 0) + 1
    return counts


if __name__ == '__main__':
    torch.set_num_threads(1)
    print(read_randomly(float(sys.argv[1]), time.time_ns()))
