"""A forked child must not wait for threads and workers of its parent."""

import os
import signal
import threading

import pytest
import torch

from tests.loader.batches import graph
from tests.samplers import graphs
from torch_gsample import ProgramSampler
from torch_gsample.algorithms import graphsage
from torch_gsample.loader import (
    GraphSAINTNodeSampler,
    HGTLoader,
    LinkNeighborLoader,
    NeighborLoader,
    ShaDowKHopSampler,
    WalkLoader,
)
from torch_gsample.storage import ChunkedGraph, StreamingSampler

#: Seconds after which a child that waits is ended by a signal.
PATIENCE = 100


def in_child(work):
    """What a forked child says of the error of ``work``, or of its result.

    An empty text means that the child was ended, as it had waited too long.
    """
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(PATIENCE)
        try:
            text = f'got {work()}'
        except BaseException as error:
            text = f'{type(error).__name__}: {error}'
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        text = said.read()
    os.waitpid(pid, 0)
    return text


def compiled(**options):
    sampler = ProgramSampler(
        graph(),
        graphsage,
        [2],
        seed=0,
        compile=True,
        options={'super_batch': 2},
    )
    return NeighborLoader(graph(), sampler=sampler, **options)


LOADERS = {
    'neighbor': lambda **k: NeighborLoader(graph(), [4, 3], **k),
    'link': lambda **k: LinkNeighborLoader(graph(), [4, 3], **k),
    'hgt': lambda **k: HGTLoader(graphs.heterogeneous(), [2], 'user', **k),
    'shadow': lambda **k: ShaDowKHopSampler(graph(), 1, 2, **k),
    'saint': lambda batch_size, **k: GraphSAINTNodeSampler(
        graph(), 2, num_steps=5, **k
    ),
    'walk': lambda **k: WalkLoader(30, list, **k),
    'look_ahead': compiled,
}


@pytest.mark.parametrize('name', LOADERS)
def test_a_child_is_told_that_an_iterator_is_its_parents(name):
    loader = LOADERS[name](batch_size=3)
    iterator = iter(loader)
    next(iterator)
    said = in_child(lambda: next(iterator))
    assert said.startswith(
        f'RuntimeError: {type(loader).__name__}: an iterator must be used in '
        f'the process that created it ({os.getpid()}) (got '
    )
    assert len(list(iterator)) == len(loader) - 1


@pytest.mark.parametrize('options', [{}, {'prefetch': 0}], ids=str)
def test_a_child_leaves_the_workers_of_its_parent_alone(options):
    loader = LOADERS['neighbor'](batch_size=20, num_workers=1, **options)
    iterator = iter(loader)
    next(iterator)
    assert 'the process that created it' in in_child(lambda: next(iterator))
    assert len(list(iterator)) == 2


def test_workers_that_persist_are_those_of_one_process():
    loader = LOADERS['neighbor'](
        batch_size=20, num_workers=1, persistent_workers=True
    )
    assert len(list(loader)) == 3
    assert 'the process that created it' in in_child(lambda: len(list(loader)))
    assert len(list(loader)) == 3


@pytest.mark.parametrize('begun', [False, True])
def test_a_child_begins_an_iterator_of_its_own(begun):
    loader = LOADERS['neighbor'](batch_size=6)
    if begun:
        iterator = iter(loader)
        next(iterator)
    assert in_child(lambda: len(list(loader))) == 'got 10'
    if begun:
        assert len(list(iterator)) == 9


def test_without_threads_a_child_goes_on():
    iterator = iter(LOADERS['neighbor'](batch_size=6, prefetch=0))
    next(iterator)
    assert in_child(lambda: len(list(iterator))) == 'got 9'
    assert len(list(iterator)) == 9


def test_a_child_is_told_that_an_epoch_is_prepared_by_its_parent(
    tmp_path, monkeypatch
):
    data, leave = graph(), threading.Event()
    chunks = ChunkedGraph.write(tmp_path / 'graph', data.edge_index)
    sampler = StreamingSampler(chunks, [2], seed=0)
    sampler.prepare_epoch(torch.arange(60), epoch=0)
    prepare = sampler._prepare
    monkeypatch.setattr(
        sampler, '_prepare', lambda *args: (leave.wait(60), prepare(*args))
    )
    sampler.prepare_ahead(1)
    said = in_child(sampler.finish_preparing)
    leave.set()
    assert said.startswith(
        'RuntimeError: StreamingSampler: an epoch must be awaited in the '
        f'process that prepares it ({os.getpid()}) (got '
    )
    sampler.finish_preparing()
    assert sampler._find(1) is not None
    sampler.close()
