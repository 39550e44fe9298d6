"""Flipped bits and truncations in the folder that a killed call left.

The next call raises an error that names the file and an offset, or its result
is the right one.
"""

import itertools
import os
import random
import re
import shutil
from pathlib import Path

import pytest
import torch
from torch_geometric import nn as pyg

from tests.storage.disk import in_a_fork
from tests.storage.inference.models import WIDTH, X, basic, edges
from torch_gsample.storage import infer
from torch_gsample.storage.inference.journal import Journal
from torch_gsample.storage.replaced import exchange

#: Flipped bits of each file; GSAMPLE_FLIPS=200 takes minutes.
FLIPS = int(os.environ.get('GSAMPLE_FLIPS', '25'))
CUTS = FLIPS // 3
EDGES = edges(400, 60, 60)
ROWS = X[:60]
#: Calls of a layer before the kill: within a layer, and when all are done.
KILLS = {'first layer': (0, 4), 'last layer': (1, 4), 'published': (9, 0)}


def model():
    return basic(pyg.GraphSAGE, torch.float32)


def deep_model():
    """Two layers return rows of one width, and the last one reads both."""
    torch.manual_seed(0)
    return pyg.GraphSAGE(WIDTH, 8, 3, out_channels=5, jk='max').eval()


def call(folder, net=None, **options):
    return infer(
        *(net or model(), EDGES, ROWS),
        out=folder / 'out',
        memory='1MiB',
        num_threads=1,
        **options,
    )


@pytest.fixture(params=KILLS)
def left(request, tmp_path):
    """A folder as a killed call left it, and the right result."""
    layer, count = KILLS[request.param]
    want = call(tmp_path)[:].clone()
    os.remove(tmp_path / 'out')

    def stop():
        net, calls = model(), [0]

        def end(*_, **options):
            calls[0] += 1
            if calls[0] > count:
                os._exit(3)

        if layer < 2:
            net.convs[layer].register_forward_hook(end)
        else:  # the link of the result is made, the folder is not removed
            Path.unlink = end
        call(tmp_path, net)

    assert os.waitstatus_to_exitcode(in_a_fork(stop)) == 3
    return tmp_path, want


def damaged(raw, rng):
    """Yields a file with one flipped bit each, and beginnings of it."""
    size = max(len(raw), 1)
    for _ in range(FLIPS if raw else 0):
        data = bytearray(raw)
        data[rng.randrange(size)] ^= 1 << rng.randrange(8)
        yield data
    for _ in range(CUTS):
        yield raw[: rng.randrange(size)]


def outcome(folder, want, net=None):
    """Whether a call has the right result; if not, its error is a good one."""
    try:
        got = call(folder, net)[:]
    except OSError as error:
        return str(folder) in str(error) and 'named'
    except ValueError as error:
        found = re.search(rf'{folder}/\S+, offset \d+: ', str(error))
        return found is not None and 'named'
    return torch.equal(got, want) and 'right'


def test_damage_is_named_or_harmless(left):
    folder, want = left
    work, safe = folder / '.out.infer', folder / 'safe'
    out = folder / 'out'
    published = out.exists()
    shutil.copytree(work, safe)
    rng, found = random.Random(0), []
    for name in sorted(os.listdir(safe)):
        raw = (safe / name).read_bytes()
        for data in damaged(raw, rng):
            shutil.rmtree(work, ignore_errors=True)
            shutil.copytree(safe, work)
            out.unlink(missing_ok=True)
            if published:  # by a link of the last layer's file
                os.link(*(work.glob('layer-1-*')), out)
            (work / name).write_bytes(data)
            found.append(outcome(folder, want))
            assert found[-1], (name, data)
    assert found.count('named') > FLIPS
    assert 'right' in found


def test_exchanged_files_are_named_or_harmless(tmp_path):
    want = call(tmp_path, deep_model())[:].clone()
    os.remove(tmp_path / 'out')

    def stop():
        net = deep_model()
        net.lin.register_forward_hook(lambda *_: os._exit(3))
        call(tmp_path, net)

    assert os.waitstatus_to_exitcode(in_a_fork(stop)) == 3
    work, safe, found = tmp_path / '.out.infer', tmp_path / 'safe', []
    shutil.copytree(work, safe)
    for names in itertools.combinations(sorted(os.listdir(safe)), 2):
        exchange(*(work / name for name in names))
        found.append(outcome(tmp_path, want, deep_model()))
        assert found[-1], names
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(safe, work)
        (tmp_path / 'out').unlink(missing_ok=True)
    assert found.count('named') == len(found) == 6


def test_a_journal_has_facts_or_an_error(tmp_path):
    path = tmp_path / 'journal'
    journal = Journal(path)
    for i in range(2):
        journal.add('a', rows=i, crc=7 * i)
    journal.close()
    raw = path.read_bytes()
    known = [{}, *({'a': {'rows': i, 'crc': 7 * i}} for i in range(3))]
    for size in range(len(raw)):
        path.write_bytes(raw[:size])
        cut = Journal(path)
        cut.close()
        assert cut.facts == known[raw[:size].count(b'\n')]
        assert path.read_bytes() == raw[: raw[:size].rfind(b'\n') + 1]
    for at in range(len(raw)):
        for bit in range(8):
            data = bytearray(raw)
            data[at] ^= 1 << bit
            path.write_bytes(data)
            if at == len(raw) - 1:  # as a line that was torn
                found = Journal(path)
                assert found.facts == known[1]
                found.close()
                continue
            line = raw[:at].rfind(b'\n') + 1
            with pytest.raises(ValueError, match=f'{path}, offset {line}: '):
                Journal(path)


def test_restart_needs_no_file_of_before(left):
    folder, want = left
    work = folder / '.out.infer'
    if (folder / 'out').exists():
        with pytest.raises(FileExistsError):
            call(folder, restart=True)
        return
    for path in work.iterdir():
        path.write_bytes(b'\x07' * 5_000)
    with pytest.raises(
        ValueError, match=r'manifest\.json, offset 0: .*restart'
    ):
        call(folder)
    assert torch.equal(call(folder, restart=True)[:], want)
    assert sorted(os.listdir(folder)) == ['out']
