"""Fixtures and hooks shared by all tests."""

import functools
import gc
import os
import threading
from contextlib import suppress

# Before torch reads it. GNU OpenMP's threads spin for milliseconds after each
# call, on a processor that another test process needs.
os.environ.setdefault('OMP_WAIT_POLICY', 'passive')

import pytest
import torch
import torch._dynamo.guards
from torch._dynamo import trace_rules
from torch._subclasses.fake_tensor import FakeTensorMode

from tests import process_state, slow
from torch_gsample.codegen import build

# A machine with a GPU may lack it: tests of CUDA do without.
with suppress(ModuleNotFoundError):
    from hypothesis import settings

    # The same examples in every run: failures are reproducible.
    settings.register_profile('tests', derandomize=True, database=None)
    settings.load_profile('tests')

# No collection after each compilation: there is one at the end of each file.
torch._dynamo.config.run_gc_after_compile = False
# To log the time of guards, Dynamo flushes the processor's caches after each
# compilation.
torch._dynamo.guards.profile_guard_manager = lambda *_: 0.0
# No test reads the log, for which Dynamo writes a message, with the stack, for
# each object that a program changes.
if hasattr(torch._dynamo.config, 'side_effect_replay_policy'):  # not in 2.11
    torch._dynamo.config.side_effect_replay_policy = 'silent'
# Whether to trace the functions of a file depends on its path alone.
trace_rules.check_file = functools.cache(trace_rules.check_file)
# Entries would never be found again: each capture has new symbols for sizes.
torch._dynamo.config.fake_tensor_cache_enabled = False


def pytest_addoption(parser):
    parser.addoption(
        '--update-golden',
        action='store_true',
        help='rewrite golden files, to be reviewed like code',
    )


#: Long folders come first, so that no process is left alone with one at the
#: end. Tests that fork come before tests that compile: a small process forks
#: faster.
_LONG = (
    'tests/spark/',
    'tests/examples/',
    'tests/loader/',
    'tests/storage/',
    'tests/cuda/',
    'tests/compiler/',
    'tests/fusion/',
    'tests/core/',
)


def pytest_collection_modifyitems(items):
    """Sorts tests by the time of their folders, and marks slow ones."""
    names = slow.listed()
    for item in items:
        if item.nodeid in names:
            item.add_marker('slow')

    def rank(item):
        starts = (item.nodeid.startswith(path) for path in _LONG)
        return next((i for i, found in enumerate(starts) if found), len(_LONG))

    items.sort(key=rank)


def pytest_collection_finish():
    """Makes collections rarer: they took a tenth of each compilation."""
    _leave_out_of_collections()
    gc.set_threshold(50_000, 10, 10)


def _leave_out_of_collections():
    """Excludes all present objects from later collections.

    A collection that scans thousands of tests takes longer than most of them.
    """
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Assigns whole files to processes; tests with Spark share a process."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return 'tests/spark' if file.startswith('tests/spark/') else file

    return Scheduling(config, log)


@pytest.fixture(autouse=True, scope='module')
def _forget_what_a_file_compiled():
    """Frees millions of objects: a collection would take two seconds."""
    before = process_state.read(process_state.OF_FILES)
    attributes = process_state.read_attributes()
    yield
    torch._dynamo.reset()
    FakeTensorMode.cache_clear()
    _leave_out_of_collections()
    changed = process_state.restore(process_state.OF_FILES, before)
    changed += process_state.restore_attributes(attributes)
    assert not changed, 'the tests of this file left changes'


#: `torch.manual_seed` also records the stack for each absent kind of GPU.
_seed = (
    torch.manual_seed
    if torch.cuda.is_available()
    else torch.default_generator.manual_seed
)


@pytest.fixture(autouse=True)
def _same_state():
    """Resets the seed, given warnings and threads, and restores other state.

    Tests are independent of their order. A test that leaves changes fails.
    """
    _seed(12345)
    build._warned.clear()
    threads = torch.get_num_threads()
    before = process_state.read(process_state.OF_TESTS)
    yield
    # An epoch that is prepared ahead would run what the next test patches.
    for thread in threading.enumerate():
        if thread.name == 'torch_gsample_background':
            thread.join()
    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)
    changed = process_state.restore(process_state.OF_TESTS, before)
    assert not changed, 'the test left changes'
