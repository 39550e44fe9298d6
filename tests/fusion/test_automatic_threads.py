"""Threads that share a model of an unchanged script."""

import copy
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tests.fusion.models import Hand, batches, graph
from torch_gsample.fusion import AutomaticFusion, fuse
from torch_gsample.fusion.fused_model import FusedModel
from torch_gsample.fusion.modules import FusedLayer

NUM_THREADS = 4


@pytest.fixture(scope='module')
def samples():
    fusion = AutomaticFusion(min_nodes=0)  # loaders mark batches meanwhile
    found = batches(graph(torch.float32), count=5)
    fusion.undo()
    return found


@pytest.fixture
def small_steps():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.parametrize('by_name', [False, True])
def test_threads_may_call_a_model_first_at_once(by_name, samples, small_steps):
    for _ in range(20):
        fusion, model = AutomaticFusion(min_nodes=0), Hand()
        begin = threading.Barrier(NUM_THREADS)

        def train(first, model=model, begin=begin):
            begin.wait()
            for i in range(4):
                batch = samples[(first + i) % len(samples)]
                edges = {'edge_index': batch.edge_index}
                args = () if by_name else tuple(edges.values())
                out = model(batch.x, *args, **(edges if by_name else {}))
                out[: batch.batch_size].sum()

        with ThreadPoolExecutor(NUM_THREADS) as pool:
            list(pool.map(train, range(NUM_THREADS)))
        assert isinstance(model, FusedModel)
        fusion.undo()
        hooks = [m._forward_pre_hooks for m in model.modules()]
        assert not any(hooks)


def test_threads_may_call_a_model_and_its_part(samples, small_steps):
    for _ in range(20):
        fusion, part = AutomaticFusion(min_nodes=0), Hand()
        model = torch.nn.Sequential()
        model.part = part
        model.forward = lambda x, edges, part=part: part(x, edges) * 2
        want = [part(b.x, b.edge_index.plain).detach() for b in samples]
        begin = threading.Barrier(NUM_THREADS)

        def call(first, model=model, part=part, want=want, begin=begin):
            begin.wait()
            for i in range(first, first + 5):
                batch, expected = samples[i % 5], want[i % 5]
                edges = batch.edge_index
                if i % 3 == 0:
                    out = model(batch.x, edges.plain) / 2
                    assert torch.allclose(out, expected, atol=1e-5)
                    continue
                out = part(batch.x, edges)
                if i % 3 == 1:
                    out = model(batch.x, edges) / 2
                n = batch.batch_size
                assert torch.allclose(out[:n], expected[:n], atol=1e-5)

        with ThreadPoolExecutor(NUM_THREADS) as pool:
            list(pool.map(call, range(NUM_THREADS)))
        fusion.undo()


def test_the_rows_that_a_thread_reads_later_count(samples):
    fusion, model = AutomaticFusion(min_nodes=0), Hand()
    out = model(samples[0].x, samples[0].edge_index)

    def train():
        for batch in samples[1:]:
            model(batch.x, batch.edge_index)[: batch.batch_size].sum()

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    out.sum()  # all rows
    for batch in samples[1:3]:
        assert len(model(batch.x, batch.edge_index)) == batch.num_nodes
    fusion.undo()


@pytest.mark.parametrize('by_name', [False, True])
def test_a_thread_that_ended_reads_no_more(by_name, samples):
    fusion, model = AutomaticFusion(min_nodes=0), Hand()

    def train(batch):
        edges = {'edge_index': batch.edge_index}
        args = () if by_name else tuple(edges.values())
        out = model(batch.x, *args, **(edges if by_name else {}))
        out[: batch.batch_size].sum()

    for batch in samples[:3]:
        thread = threading.Thread(target=train, args=[batch])
        thread.start()
        thread.join()
    assert isinstance(model, FusedModel)
    fusion.undo()


def _pickled(model):
    return pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize('copied', [copy.deepcopy, _pickled])
@pytest.mark.filterwarnings('error:fuse')
def test_a_model_is_copied_while_other_threads_copy_and_call_it(
    copied, samples, small_steps
):
    fusion = fuse(Hand(), min_nodes=0, verbose=False)
    model, batch = fusion.model, samples[0]
    model(batch.x, batch.edge_index)

    def copies(_):
        for _ in range(30):
            out = copied(model)
            assert isinstance(out, FusedModel)
            assert all(isinstance(conv, FusedLayer) for conv in out.convs)

    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(copies, i) for i in range(2)]
        while not all(future.done() for future in running):
            model(batch.x, batch.edge_index)
        for future in running:
            future.result()


def test_a_module_that_refers_to_itself_is_copied(samples):
    model = fuse(Hand(), min_nodes=0, verbose=False).model
    model.parents = [model]
    assert (out := copy.deepcopy(model)).parents[0] is out
    assert isinstance(out, FusedModel)
