"""What all tests share."""

import gc
import os

# Before torch reads it. Threads of GNU's OpenMP spin for milliseconds after
# each call, on the processor of another process of tests.
os.environ.setdefault('OMP_WAIT_POLICY', 'passive')

import pytest
import torch
import torch._dynamo.guards
from hypothesis import settings
from torch._subclasses.fake_tensor import FakeTensorMode

# The same examples in every run: what fails once fails again.
settings.register_profile('tests', derandomize=True, database=None)
settings.load_profile('tests')

# Each compilation ends with a collection: files end with one, too.
torch._dynamo.config.run_gc_after_compile = False
# To log how long guards take, Dynamo empties the processor's caches after each
# compilation.
torch._dynamo.guards.profile_guard_manager = lambda *_: 0.0
# No entry would be found again: the sizes of each capture are new symbols.
torch._dynamo.config.fake_tensor_cache_enabled = False


def pytest_addoption(parser):
    parser.addoption(
        '--update-golden',
        action='store_true',
        help='write golden files anew, to be reviewed like code',
    )


#: What takes long comes first: no process is left alone with it at the end.
#: Before all that compiles comes what forks: a small process forks faster.
_SLOW = (
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
    """Sorts tests by how long their folders take."""

    def rank(item):
        starts = (item.nodeid.startswith(path) for path in _SLOW)
        return next((i for i, slow in enumerate(starts) if slow), len(_SLOW))

    items.sort(key=rank)


def pytest_collection_finish():
    """Makes collections rarer: they were a tenth of each compilation."""
    _leave_out_of_collections()
    gc.set_threshold(50_000, 10, 10)


def _leave_out_of_collections():
    """Leaves all objects out of collections from now on.

    One that scans thousands of tests takes longer than most of them.
    """
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Files go to processes whole; those with Spark share a process."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return 'tests/spark' if file.startswith('tests/spark/') else file

    return Scheduling(config, log)


@pytest.fixture(autouse=True, scope='module')
def _forget_what_a_file_compiled():
    """Millions of objects otherwise: two seconds for a collection."""
    yield
    torch._dynamo.reset()
    FakeTensorMode.cache_clear()
    _leave_out_of_collections()


#: `torch.manual_seed` also notes the stack for each kind of GPU that is not
#: there.
_seed = (
    torch.manual_seed
    if torch.cuda.is_available()
    else torch.default_generator.manual_seed
)


@pytest.fixture(autouse=True)
def _same_state():
    """Tests draw the same, by as many threads, whatever ran before them."""
    _seed(12345)
    threads = torch.get_num_threads()
    yield
    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)
