"""Feature files that are damaged, cut, replaced, or never finished."""

import errno
import functools
import os
import random
import signal
import sys

import pytest
import torch

from tests.storage.disk import fill_a_disk, in_a_fork, kill_at_random
from tests.storage.test_damage import flip
from torch_gsample.storage import FeatureFile
from torch_gsample.storage.crc32c import BLOCK, crc32c
from torch_gsample.storage.feature_format import _HEADER, MAGIC, VERSION
from torch_gsample.storage.reading import file_identity

FLIPS = 200
X = torch.arange(10_000.0).view(100, 100)
DTYPES = torch.float32, torch.int8


@pytest.fixture(params=DTYPES, ids=str)
def path(request, tmp_path):
    return FeatureFile.write(tmp_path / 'x', X, dtype=request.param).path


def regions(path):
    meta = FeatureFile(path).meta
    size = os.path.getsize(path)
    assert size == meta.file_size
    return {
        'header': range(BLOCK),
        'rows': range(BLOCK, meta.table_at),
        'table': range(meta.table_at, size),
    }


@pytest.mark.parametrize('region', ['header', 'rows', 'table'])
@pytest.mark.parametrize('when', ['always', 'once'])
def test_each_flipped_bit_is_found(path, region, when):
    """The error names the file and where the damage is."""
    draws, found = random.Random(0), 0
    places = regions(path)[region]
    for _ in range(FLIPS):
        at, mask = draws.choice(places), 1 << draws.randrange(8)
        flip(path, at, mask)
        with pytest.raises(ValueError, match=r'x, offset \d+: ') as caught:
            FeatureFile(path, verify=when)[:]
        if region == 'rows':
            offset = at // BLOCK * BLOCK
            assert f'x, offset {offset}: the checksum' in str(caught.value)
            with pytest.raises(ValueError, match=f'offset {offset}: the che'):
                FeatureFile(path).verify()
        flip(path, at, mask)
        found += 1
    assert found == FLIPS
    FeatureFile(path).verify()


def test_a_flipped_bit_of_other_rows_is_not_read(path):
    flip(path, regions(path)['rows'][-1], 1)
    FeatureFile(path)[[0]]
    with pytest.raises(ValueError, match='the checksum of block'):
        FeatureFile(path)[[99]]
    FeatureFile(path, verify='never')[[99]]


def test_every_truncation_is_found_when_it_is_opened(path):
    for size in range(os.path.getsize(path) - 1, -1, -1):
        os.truncate(path, size)
        with pytest.raises(ValueError, match=r'x, offset \d+: '):
            FeatureFile(path, verify='never')


def test_a_file_that_is_cut_while_it_is_open_is_an_error(path):
    for direct in (False, True):
        for engine in ('io_uring', 'threads'):
            file = FeatureFile(path, direct=direct, engine=engine)
            size = os.path.getsize(path)
            text = path.read_bytes()
            os.truncate(path, 2 * BLOCK)
            with pytest.raises(OSError, match='the file ends too early'):
                file[[99]]
            path.write_bytes(text)
            assert size == os.path.getsize(path)


def test_a_longer_file_is_an_error(path):
    with open(path, 'ab') as file:
        file.write(b'\0')
    with pytest.raises(ValueError, match=r'its size must be \d+ \(got'):
        FeatureFile(path)


def test_blocks_are_checked_when_their_turn_is(path):
    """``once`` trusts a block until the file changes, by its time stamp."""
    once, always = FeatureFile(path), FeatureFile(path, verify='always')
    want = once[[0]], always[[0]]
    facts = os.stat(path)
    flip(path, BLOCK + 9, 1)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    seen = once._identity
    for file in (once, always):  # as if it had not changed
        file._identity = file_identity(os.stat(path))
    once[[0]]
    once._identity = seen
    with pytest.raises(ValueError, match='the checksum of block 0'):
        always[[0]]
    with pytest.raises(ValueError, match='the checksum of block 0'):
        once[[0]]  # its ctime has changed
    flip(path, BLOCK + 9, 1)
    assert torch.equal(once[[0]], want[0])
    assert torch.equal(always[[0]], want[1])
    assert once._checked[0]
    assert not once._checked[1:].any()


SOUND = {'code': 1, 'rows': 4, 'row_bytes': 12, 'blocks': 1, 'dims': 1}
HOSTILE = {
    'its dtype must be one of': {'code': 99},
    'its rows must be in .* -1': {'rows': -1},
    r'its rows must be in \[0, 2\^48\)': {'rows': 1 << 60},
    'a row must have at most 8 dimensions': {'dims': 9, 'others': 1},
    r'each in \[1, 2\^48\) \(got \[-5\]\)': {'first': -5},
    r'\(got \[0\]\)': {'first': 0},
    r'\(got \[4611686018427387904\]\)': {'first': 1 << 62},
    r'bytes of a row and blocks must be \(12, 1\)': {'row_bytes': 0},
    'bytes of a row and blocks': {'blocks': 1 << 40},
    'its size must be': {'rows': 1 << 40, 'blocks': 12 << 28},
}


@pytest.mark.parametrize('message', HOSTILE)
def test_forged_headers_are_refused(path, message):
    """They have the right checksum; nothing of their sizes is allocated."""
    field = {**SOUND, 'first': 3, **HOSTILE[message]}
    keys = 'code', 'rows', 'row_bytes', 'blocks'
    facts = [field[key] for key in keys]
    shape = field['first'], *[field.get('others', 0)] * 7
    header = bytearray(BLOCK)
    _HEADER.pack_into(
        header, 0, MAGIC, VERSION, *facts, 7, 0, field['dims'], *shape
    )
    header[-4:] = crc32c(header[:-4]).to_bytes(4, 'little')
    path.write_bytes(header.ljust(3 * BLOCK, b'\0'))
    with pytest.raises(ValueError, match=rf'x, offset \d+: .*{message}'):
        FeatureFile(path, verify='never')


def test_wrong_beginnings_are_named(path):
    text = path.read_bytes()
    for at, new, message in (
        (0, b'GSFEATUR', "offset 0: it must begin with b'gsFEATUR'"),
        (8, b'\2', r'offset 8: its version must be 1 \(got 2\)'),
        (2_000, b'\1', 'offset 4092: the checksum of the header'),
    ):
        path.write_bytes(text[:at] + new + text[at + len(new) :])
        with pytest.raises(ValueError, match=message):
            FeatureFile(path)
    with pytest.raises(OSError, match='No such file'):
        FeatureFile(path.parent / 'none')
    with pytest.raises(OSError, match='directory'):
        FeatureFile(path.parent)


def files(folder):
    return sorted(os.listdir(folder))


def test_an_error_leaves_nothing(tmp_path):
    def pieces():
        yield X
        raise RuntimeError('no more')

    with pytest.raises(RuntimeError, match='no more'):
        FeatureFile.write(tmp_path / 'x', pieces())
    assert files(tmp_path) == []


def test_a_file_is_never_overwritten(tmp_path):
    file = FeatureFile.write(tmp_path / 'x', X)
    with pytest.raises(FileExistsError, match="'path' must not exist yet"):
        FeatureFile.write(tmp_path / 'x', X + 1)
    assert torch.equal(FeatureFile(file.path)[:], X)
    assert files(tmp_path) == ['x']


def test_the_second_of_two_writers_fails(tmp_path):
    def pieces():
        yield X
        FeatureFile.write(tmp_path / 'x', X + 1)  # meanwhile

    with pytest.raises(FileExistsError, match="'path' must not exist yet"):
        FeatureFile.write(tmp_path / 'x', pieces())
    assert torch.equal(FeatureFile(tmp_path / 'x')[:], X + 1)
    assert files(tmp_path) == ['x']


def test_a_file_system_without_links_is_enough(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EPERM, 'no links')

    monkeypatch.setattr(os, 'link', refuse)
    file = FeatureFile.write(tmp_path / 'x', X)
    assert torch.equal(file[:], X)
    assert files(tmp_path) == ['x']


def test_a_crash_leaves_no_half_of_a_file(tmp_path):
    """The process is killed at one step after the other."""

    def write_until(folder, left):
        def hook(event, args):
            nonlocal left
            steps = 'open', 'os.link', 'os.remove', 'os.rmdir', 'os.listdir'
            if event in steps and str(folder) in str(args):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        FeatureFile.write(folder / 'x', X)

    for step in range(1, 40):
        folder = tmp_path / f'{step}'
        folder.mkdir()
        status = in_a_fork(functools.partial(write_until, folder, step))
        if status == 0:
            break
        assert os.WTERMSIG(status) == signal.SIGKILL
        if (folder / 'x').exists():
            FeatureFile(folder / 'x').verify()
        FeatureFile.write(folder / 'y', X)  # sweeps
        assert set(files(folder)) <= {'x', 'y'}
    assert 5 <= step < 39
    assert files(folder) == ['x']


def test_writers_that_are_killed_at_any_moment_leave_nothing(tmp_path):
    killed = 0

    def write():
        FeatureFile.write(tmp_path / 'x', [X] * 200)

    for is_killed in kill_at_random(write, 100):
        killed += is_killed
        if (tmp_path / 'x').exists():
            FeatureFile(tmp_path / 'x').verify()
            os.remove(tmp_path / 'x')
    assert killed > 30
    FeatureFile.write(tmp_path / 'last', X)
    assert files(tmp_path) == ['last']


@pytest.mark.parametrize('limit', [0, 4_096, 20_000])
def test_a_full_disk_is_named_and_left_empty(tmp_path, limit):
    fill_a_disk(limit, lambda: FeatureFile.write(tmp_path / 'x', X))
    assert files(tmp_path) == []
    FeatureFile.write(tmp_path / 'x', X).verify()


def test_a_read_only_folder_is_named(tmp_path):
    os.chmod(tmp_path, 0o555)

    def write():
        if os.getuid() == 0:
            os.setuid(65534)
        with pytest.raises(PermissionError, match=str(tmp_path)) as caught:
            FeatureFile.write(tmp_path / 'x', X)
        raise caught.value

    status = in_a_fork(write)
    assert os.waitstatus_to_exitcode(status) == errno.EACCES
    assert files(tmp_path) == []


def test_a_read_only_file_is_read(path):
    os.chmod(path, 0o444)
    assert FeatureFile(path)[:].shape == X.shape
