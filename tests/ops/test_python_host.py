"""Python's threads and signals around a long call."""

import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from tests.ops.compare import assert_equal_tensors
from tests.ops.neighbors import sample_one
from torch_gsample.rng import make_key
from torch_gsample.testing import random_graph

ROOT = Path(__file__).resolve().parents[2]

# 8,000 successive draws among 20,000 edges take some 30 ms a seed.
SLOW_CALL = """
    import torch
    from torch_gsample import CSC, Graph, ops
    from torch_gsample.rng import make_key

    n = 20_000
    indptr = torch.full((n + 1,), n)
    indptr[0] = 0
    indices = torch.arange(n)
    graph = Graph.from_csc(CSC(indptr, indices, n))
    graph = graph.with_weights({None: torch.ones(n)})

    def slow_call(num_seeds):
        seeds = torch.zeros(num_seeds, dtype=torch.int64)
        ops.sample_neighbors(graph, seeds, [8_000], make_key(0))
"""

SLOW_WALK = """
    import torch
    from torch_gsample import ops
    from torch_gsample.rng import make_key

    indptr, indices = torch.arange(1001), torch.arange(1000).roll(1)
    length = 30_000

    def slow_call(num_seeds):
        args = (indptr, indices, torch.zeros(num_seeds, dtype=torch.int64))
        WALK
"""
WALKS = {
    'random': 'ops.random_walk(*args, length, key=make_key(0))',
    'node2vec': 'ops.node2vec_walk(*args, length, 2, 3, key=make_key(0))',
}
SLOW = {
    'neighbors': SLOW_CALL,
    **{name: SLOW_WALK.replace('WALK', call) for name, call in WALKS.items()},
}


# Whoever runs the tests in the background may have told them to ignore it.
INTERRUPTED = """
    import signal, sys, time
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for program in sys.argv[1:]:
        exec(program)
        try:
            print('ready', flush=True)
            while True:  # a walk may take less than half a second
                slow_call(2_000)
        except KeyboardInterrupt:
            print(time.process_time(), flush=True)
            slow_call(1)  # works again
"""


def processor_seconds(pid):
    """Seconds that other processes do not lengthen, of a process so far."""
    return time.clock_gettime(~pid << 3 | 2)  # as clock_getcpuclockid(3)


def test_ctrl_c_ends_a_long_call():
    """In one process, which takes longer to start than to run."""
    programs = map(textwrap.dedent, [INTERRUPTED, *SLOW.values()])
    child = subprocess.Popen(
        [sys.executable, '-c', *programs],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    with child:
        for name in SLOW:
            assert child.stdout.readline() == 'ready\n', name
            time.sleep(0.5)  # the call runs
            sent = processor_seconds(child.pid)
            child.send_signal(signal.SIGINT)
            assert 0 < float(child.stdout.readline()) - sent < 2, name
        child.communicate(timeout=60)
    assert child.returncode == 0


def test_other_python_threads_run_during_a_call():
    scope = {}
    exec(textwrap.dedent(SLOW_CALL), scope)
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.wait(0.01):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.monotonic()
    scope['slow_call'](100)
    end = time.monotonic()
    stop.set()
    thread.join()
    inside = [t for t in ticks if begin + 0.02 < t < end - 0.02]
    assert end - begin > 0.2
    assert len(inside) >= 5


def test_python_threads_sample_at_a_time():
    graphs = [random_graph(n, 10 * n, seed=n) for n in (500, 5_000, 50_000)]

    def sample(i):
        graph = graphs[i % 3]
        return sample_one(
            graph.indptr,
            graph.indices,
            torch.arange(i % 7, graph.num_cols, 13),
            [4, 3],
            key=make_key(i),
            disjoint=i % 2 == 0,
        )

    wanted = [sample(i) for i in range(42)]
    with ThreadPoolExecutor(4) as executor:
        for _ in range(3):
            for out, want in zip(
                executor.map(sample, range(42)), wanted, strict=True
            ):
                assert_equal_tensors(out, want)
