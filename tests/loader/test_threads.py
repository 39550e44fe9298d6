"""`num_threads` bounds whatever makes a batch, and nothing else."""

import threading

import pytest
import torch

from tests.samplers import graphs
from torch_gsample.loader import LinkNeighborLoader, NeighborLoader

DATA = graphs.homogeneous()


@pytest.fixture(autouse=True)
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def seen_by(loader, consume=list):
    """How many threads a batch was made with, and the caller has meanwhile."""
    made, had = [], []
    collate = type(loader)._make_sample

    class Watching(type(loader)):
        def _make_sample(self, index):
            made.append(torch.get_num_threads())
            return collate(self, index)

    loader.__class__ = Watching
    for _ in loader:
        had.append(torch.get_num_threads())
    return set(made), set(had)


def in_a_new_thread():
    found = []
    thread = threading.Thread(
        target=lambda: found.append(torch.get_num_threads())
    )
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize('prefetch', [0, 2])
@pytest.mark.parametrize(('given', 'used'), [(1, 1), (None, 2), (8, 2)])
def test_a_bound_is_that_of_the_batch(prefetch, given, used):
    loader = NeighborLoader(
        DATA, [2], batch_size=5, num_threads=given, prefetch=prefetch
    )
    for _ in range(2):
        assert seen_by(loader) == ({used}, {2})
        assert torch.get_num_threads() == 2
        assert in_a_new_thread() == 2


def test_a_loader_of_links_has_a_bound():
    loader = LinkNeighborLoader(
        DATA, [2], DATA.edge_index, batch_size=30, num_threads=1
    )
    assert seen_by(loader) == ({1}, {2})


@pytest.mark.parametrize('prefetch', [0, 2])
def test_a_failed_batch_leaves_the_caller_its_threads(prefetch):
    def fail(out):
        raise RuntimeError('of a transform')

    loader = NeighborLoader(
        DATA,
        [2],
        num_threads=1,
        prefetch=prefetch,
        transform_sampler_output=fail,
    )
    with pytest.raises(RuntimeError, match='of a transform'):
        next(iter(loader))
    assert torch.get_num_threads() == in_a_new_thread() == 2


@pytest.mark.parametrize('prefetch', [0, 2])
def test_a_pass_that_is_left_leaves_the_caller_its_threads(prefetch):
    loader = NeighborLoader(DATA, [2], num_threads=1, prefetch=prefetch)
    next(iter(loader))
    assert torch.get_num_threads() == in_a_new_thread() == 2
