"""Batches that are made ahead in a thread change nothing but the time."""

import gc
import subprocess
import sys
import threading

import pytest
import torch
from torch_geometric.sampler import BaseSampler

from tests.loader.batches import graph, loader_of, run, values
from torch_gsample import NeighborSampler
from torch_gsample.loader import NeighborLoader
from torch_gsample.loader.prefetch import Feed, _running, prefetched


def threads():
    return [
        t for t in threading.enumerate() if t.name == 'torch_gsample_prefetch'
    ]


class Watched(NeighborSampler):
    """Counts its batches, notes their threads, and may fail at one."""

    def __init__(self, *args, fail_at=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.fail_at = fail_at
        self.made_in = []
        self.made, self.handed_out = threading.Condition(), 0

    def hand_out(self, epoch, part):
        self.handed_out += 1

    def sample_from_nodes(self, inputs, **kwargs):
        if len(self.made_in) == self.fail_at:
            raise RuntimeError('out of ink')
        out = super().sample_from_nodes(inputs, **kwargs)
        with self.made:
            self.made_in.append(threading.current_thread())
            self.made.notify()
        return out


class NotKeyed(BaseSampler):
    """Hands on to another sampler, and is none of ours."""

    def __init__(self, sampler):
        self.sampler = sampler

    def sample_from_nodes(self, inputs, **kwargs):
        return self.sampler.sample_from_nodes(inputs, **kwargs)

    def sample_from_edges(self, inputs, neg_sampling=None):
        return self.sampler.sample_from_edges(inputs, neg_sampling)

    @property
    def edge_permutation(self):
        return self.sampler.edge_permutation


def watched_loader(prefetch=2, fail_at=None, **options):
    sampler = Watched(graph(), [4, 3], seed=0, fail_at=fail_at)
    return sampler, NeighborLoader(
        graph(), sampler=sampler, batch_size=6, prefetch=prefetch, **options
    )


@pytest.mark.parametrize('ahead', [1, 2, 5])
def test_batches_are_made_ahead_but_not_further(ahead):
    sampler, loader = watched_loader(ahead)
    for i, _ in enumerate(loader):
        wanted = min(i + 1 + ahead, 10)
        if i in (0, 3):
            with sampler.made:
                assert sampler.made.wait_for(
                    lambda n=wanted: len(sampler.made_in) == n, timeout=60
                )
        assert sampler.handed_out == wanted  # no more batches
    assert len(sampler.made_in) == 10
    assert threading.main_thread() not in sampler.made_in


def test_without_prefetching_batches_are_made_when_asked():
    sampler, loader = watched_loader(0)
    for i, _ in enumerate(loader):
        assert len(sampler.made_in) == i + 1
        assert threads() == []
    assert set(sampler.made_in) == {threading.main_thread()}


def test_making_an_iterator_starts_no_thread():
    sampler, loader = watched_loader()
    iterator = iter(loader)
    assert threads() == []
    del iterator
    assert sampler.made_in == []


@pytest.mark.parametrize('prefetch', [0, 1, 2, 100])
@pytest.mark.parametrize('shuffle', [False, True])
def test_prefetching_leaves_torchs_generator_to_the_caller(shuffle, prefetch):
    """Order of the seeds, dropout, random transforms: all as without it."""

    def noise(batch):
        batch.noise = torch.rand(3)
        return batch

    outs = []
    for ahead in (0, prefetch):
        loader = loader_of(prefetch=ahead, shuffle=shuffle, transform=noise)
        torch.manual_seed(7)
        outs.append(
            [(values(batch), torch.rand(2).tolist()) for batch in loader]
            + [torch.rand(1).tolist()]
        )
    assert outs[0] == outs[1]


def test_a_sampler_that_is_not_keyed_stays_in_the_callers_thread():
    """It may use torch's generator; PyG's own does."""
    sampler = Watched(graph(), [4, 3], seed=0)
    made, foreign = sampler.made_in, NotKeyed(sampler)
    for _ in NeighborLoader(graph(), sampler=foreign, batch_size=6):
        pass
    assert set(made) == {threading.main_thread()}
    for _ in NeighborLoader(graph(), sampler=foreign, prefetch=1):
        pass
    assert set(made) > {threading.main_thread()}


def test_an_error_reaches_the_caller_after_the_batches_before_it():
    sampler, loader = watched_loader(fail_at=4)
    seen = []
    with pytest.raises(RuntimeError, match='out of ink') as info:
        seen.extend(loader)
    assert len(sampler.made_in) == 4
    assert info.traceback[-1].name == 'sample_from_nodes'
    assert threads() == []
    sampler.fail_at = None
    assert len(list(loader)) == 10


def leave(loader):
    for _ in loader:
        raise KeyboardInterrupt


@pytest.mark.parametrize('when', ['break', 'raise', 'forget', 'close'])
def test_an_epoch_can_be_left_early(when):
    sampler, loader = watched_loader()
    expected = run(watched_loader()[1])
    if when == 'break':
        for _ in loader:
            break
    elif when == 'raise':
        with pytest.raises(KeyboardInterrupt):
            leave(loader)
    elif when == 'forget':
        iterator = iter(loader)
        next(iterator)
        del iterator
    else:
        iterator = iter(loader)
        next(iterator)
        iterator.close()
        with pytest.raises(StopIteration):
            next(iterator)
    gc.collect()
    assert threads() == []
    assert len(sampler.made_in) <= 4
    loader.set_epoch(0)
    assert run(loader) == expected


def test_leaving_an_epoch_does_not_wait_for_batches_that_are_due(monkeypatch):
    """One is in the making; the others would be thrown away."""
    sampler, loader = watched_loader(prefetch=8)
    started, go_on = threading.Event(), threading.Event()
    first = sampler.sample_from_nodes

    def slow(inputs, **kwargs):
        if sampler.made_in:
            started.set()
            go_on.wait(30)
        return first(inputs, **kwargs)

    sampler.sample_from_nodes = slow
    iterator = iter(loader)
    next(iterator)
    started.wait(30)
    close = Feed.close
    monkeypatch.setattr(Feed, 'close', lambda feed: (close(feed), go_on.set()))
    iterator.close()
    assert len(sampler.made_in) == 2


def test_passes_over_one_loader_do_not_disturb_each_other():
    expected = [run(loader) for loader in [loader_of()] for _ in range(2)]
    loader = loader_of()
    pairs = [
        (values(a), values(b)) for a, b in zip(loader, loader, strict=True)
    ]
    assert [list(own) for own in zip(*pairs, strict=True)] == expected


def test_passes_can_be_nested():
    loader = loader_of()
    count = 0
    for _ in loader:
        count += len(run(loader))
    assert count == 16
    assert loader.epoch == 5


def test_threads_may_iterate_their_own_loaders():
    expected, outs = run(loader_of()), {}

    def work(name):
        outs[name] = run(loader_of())

    workers = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert list(outs.values()) == [expected] * 3


def test_a_program_may_end_in_the_middle_of_an_epoch():
    """The thread must not be cut off inside an operator."""
    program = """
import torch
from torch_geometric.data import Data
from torch_gsample.loader import NeighborLoader
from torch_gsample.loader.prefetch import Feed, _running, prefetched
edge_index = torch.randint(0, 1000, (2, 50000))
loader = NeighborLoader(
    Data(edge_index=edge_index, num_nodes=1000), [9, 9, 9], prefetch=50
)
iterator = iter(loader)
next(iterator)
"""
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', program],
        capture_output=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b'')


def test_an_epoch_may_be_collected_in_its_own_thread():
    """As the garbage collector runs in any thread."""
    over, unraisable = threading.Event(), []

    def make_batches():
        for item in feed:
            if item == 3:
                cell.clear()  # the last reference
                over.set()
            yield item

    before = dict(_running)
    feed = Feed(range(10))
    cell = [prefetched(feed, make_batches, lambda: 2)]
    hook, sys.unraisablehook = sys.unraisablehook, unraisable.append
    try:
        next(cell[0])
        feed.advance()  # item 3
        over.wait(30)
        for thread in threads():
            thread.join()
    finally:
        sys.unraisablehook = hook
    assert not unraisable
    assert _running == before
