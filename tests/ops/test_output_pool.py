"""Memory of large outputs is used again, and lent to the system meanwhile."""

import re
from pathlib import Path

import torch

from tests.fresh import FORKS
from torch_gsample import ops

MIB = 1 << 20
#: More than the pool keeps without lending it to the system.
SIZE = 300 * MIB


def large_output():
    values, index = torch.ones(1000, 1024), torch.arange(SIZE // 4096) % 1000
    return ops.gather_rows(values, index, num_threads=1)


def memory_of_process(name):
    """Bytes of a counter of this process."""
    text = Path('/proc/self/smaps_rollup').read_text()
    found = re.search(rf'^{name}: +(\d+) kB', text, re.MULTILINE)
    return int(found[1]) * 1024


def in_fresh_process(function):
    with FORKS.Pool(1) as pool:
        return pool.apply(function)


def lent_and_used_again():
    out = large_output()
    address, resident = out.data_ptr(), memory_of_process('Rss')
    del out
    # The system may have taken some of it already.
    taken = resident - memory_of_process('Rss')
    lent = memory_of_process('LazyFree') + taken
    again = large_output()
    grown = memory_of_process('Rss') - resident
    same = again.data_ptr() == address
    return lent, same and bool((again == 1).all()), grown


def freed_above_the_bound():
    base = memory_of_process('Rss')
    outs = [large_output() for _ in range(8)]
    full = memory_of_process('Rss') - base
    del outs
    return full, memory_of_process('Rss') - base


def test_idle_outputs_are_lent_to_the_system():
    lent, same, grown = in_fresh_process(lent_and_used_again)
    assert lent >= 0.9 * SIZE
    assert same
    assert grown < 8 * MIB


def test_idle_memory_has_a_bound():
    full, idle = in_fresh_process(freed_above_the_bound)
    # A sanitizer gives back other memory meanwhile: not all of it is seen.
    assert full > 2048 * MIB + 128 * MIB
    assert idle <= 2048 * MIB + 16 * MIB
