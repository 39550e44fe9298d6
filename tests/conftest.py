"""What all tests share."""

import gc
import os

# Before torch reads it. Threads of GNU's OpenMP spin for milliseconds after
# each call, on the processor of another process of tests.
os.environ.setdefault('OMP_WAIT_POLICY', 'passive')

import pytest
import torch
from hypothesis import settings

# The same examples in every run: what fails once fails again.
settings.register_profile('tests', derandomize=True, database=None)
settings.load_profile('tests')


def pytest_addoption(parser):
    parser.addoption(
        '--update-golden',
        action='store_true',
        help='write golden files anew, to be reviewed like code',
    )


#: What takes long, longest first: no process is left alone with it at the end.
_SLOW = (
    'tests/spark/',
    'tests/examples/',
    'tests/cuda/',
    'tests/compiler/',
    'tests/loader/',
    'tests/core/',
)


def pytest_collection_modifyitems(items):
    """Sorts tests by how long their folders take."""

    def rank(item):
        starts = (item.nodeid.startswith(path) for path in _SLOW)
        return next((i for i, slow in enumerate(starts) if slow), len(_SLOW))

    items.sort(key=rank)


def pytest_collection_finish():
    """Leaves what was there before the first test out of collections.

    One that scans thousands of tests takes longer than most of them. And
    rarer ones: they were a tenth of each compilation.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 10, 10)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Files go to processes whole; those with Spark share a process."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return 'tests/spark' if file.startswith('tests/spark/') else file

    return Scheduling(config, log)


@pytest.fixture(autouse=True)
def _same_state():
    """Tests draw the same, by as many threads, whatever ran before them."""
    torch.manual_seed(12345)
    threads = torch.get_num_threads()
    yield
    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)
