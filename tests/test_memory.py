"""Memory that is freed stays with the process while there is enough."""

import os
import re
import resource
import time
from pathlib import Path

import pytest
import torch

from tests.fresh import FORKS
from torch_gsample import cli, keep_memory, memory

MIB = 1 << 20
SIZE = 100 * MIB


def resident():
    """Bytes in memory that only this process has."""
    text = Path('/proc/self/smaps_rollup').read_text()
    return int(re.search(r'^Rss: +(\d+) kB', text, re.MULTILINE)[1]) * 1024


def pages_of_steps(size=SIZE):
    """How many fresh pages a tensor takes that came and went before."""
    found = []
    for _ in range(4):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        torch.ones(size // 4)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        found.append(after - before)
    return min(found[1:])


def kept_and_given_back():
    usual = pages_of_steps()
    assert keep_memory()
    assert keep_memory()  # a second call changes nothing
    kept, held = pages_of_steps(), resident()
    assert not keep_memory(False)
    return usual, kept, held - resident(), pages_of_steps(6 * SIZE)


def forked():
    keep_memory()
    pages_of_steps()
    child = os.fork()
    if child == 0:
        pages = pages_of_steps(6 * SIZE)
        os._exit(pages > 100_000 and memory._watch.thread is None)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def scarce():
    memory._SECONDS = 0.01
    keep_memory()
    pages_of_steps()
    held = resident()
    memory.is_scarce = lambda: True
    until = time.monotonic() + 20
    while held - resident() < 0.9 * SIZE and time.monotonic() < until:
        time.sleep(0.01)
    return held - resident()


def on_one_thread(function):
    torch.set_num_threads(1)
    return function()


def in_fresh_process(function):
    with FORKS.Pool(1) as pool:
        return pool.apply(on_one_thread, [function])


def test_freed_memory_is_used_again_until_it_is_given_back():
    usual, kept, freed, after = in_fresh_process(kept_and_given_back)
    assert min(usual, after) > 20_000
    assert kept < 500
    assert freed > 0.9 * SIZE


def test_a_forked_process_gives_memory_back():
    assert in_fresh_process(forked) == 1


def test_memory_is_given_back_while_the_system_has_little():
    assert in_fresh_process(scarce) > 0.9 * SIZE


def test_available_memory_is_read():
    assert memory.is_scarce() in (True, False)
    assert memory._numbers('/proc/meminfo')['MemTotal:'] > 1000
    assert memory._numbers('/proc/no/such/file') == {}


@pytest.mark.parametrize('keep', [0, 1 << 30, None, '1'])
def test_memory_is_kept_or_not(keep):
    with pytest.raises(TypeError, match="keep_memory: 'keep' must be a bool"):
        keep_memory(keep)


def test_other_c_libraries_are_left_alone(monkeypatch):
    monkeypatch.setattr(memory, '_library', lambda: None)
    assert not keep_memory()


@pytest.mark.parametrize('option', [[], ['--keep-memory']])
def test_a_script_keeps_memory_on_request(option, tmp_path, capsys):
    script = tmp_path / 'script.py'
    script.write_text(
        'from torch_gsample import memory\n'
        'print(memory._watch.thread is not None)\n'
    )
    assert cli.main(['run', *option, str(script)]) == 0
    assert capsys.readouterr().out == f'{bool(option)}\n'
    assert memory._watch.thread is None
