"""Forked processes do not wait for threads of their parents."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator

import pytest
import torch

from torch_gsample import forget
from torch_gsample.codegen import build
from torch_gsample.compiler.cache import InvariantCache
from torch_gsample.locks import new_lock
from torch_gsample.samplers.counts import Counts


@pytest.fixture
def busy() -> Iterator[Callable[[Callable[[], object]], None]]:
    """Runs a function in a thread, which often pauses inside it."""
    interval, over = sys.getswitchinterval(), threading.Event()
    threads = []

    def begin(function: Callable[[], object]) -> None:
        def work() -> None:
            while not over.is_set():
                function()

        threads.append(threading.Thread(target=work))
        threads[0].start()

    sys.setswitchinterval(1e-6)
    yield begin
    over.set()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)


def _forked(function: Callable[[], object]) -> bool:
    """Whether a function returns in a forked process."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)  # the load of the machine is unknown
        try:
            function()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def _counting() -> Callable[[], object]:
    counts = Counts()
    return lambda: counts.add([[2, 3, 4]], [[5, 6]], wait=0.1)


def _caching() -> Callable[[], object]:
    cache = InvariantCache(lambda x: (x,))
    x = torch.arange(3)
    return lambda: cache(x)


@pytest.mark.parametrize('make', [_counting, _caching, lambda: forget])
def test_a_fork_while_a_thread_counts_or_caches_does_not_hang(make, busy):
    function = make()
    busy(function)
    assert all(_forked(function) for _ in range(20))


def test_a_fork_while_a_kernel_is_built_builds_it_again(tmp_path, monkeypatch):
    monkeypatch.setenv('GSAMPLE_CACHE_DIR', str(tmp_path))
    begun, may_end = threading.Event(), threading.Event()

    def compiled(compiler, source, path, flags):
        begun.set()
        may_end.wait()
        build.write(path, b'library')

    monkeypatch.setattr(build, '_compile', compiled)
    thread = threading.Thread(target=lambda: build.build('source').close())
    thread.start()
    begun.wait()
    try:
        assert _forked(lambda: (may_end.set(), build.build('source').close()))
    finally:
        may_end.set()
        thread.join()


@pytest.mark.parametrize('kind', [threading.Lock, threading.RLock])
def test_a_lock_of_another_thread_is_free_in_a_forked_process(kind):
    lock = new_lock(kind)
    held, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            may_end.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert _forked(lambda: lock.acquire())
        assert not lock.acquire(timeout=0.01)  # it is still held here
    finally:
        may_end.set()
        thread.join()
