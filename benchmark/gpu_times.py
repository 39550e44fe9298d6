"""Latency, pipelined and kernel-only times of a call on a GPU.

*Latency* is the time from a call on an idle device to its results. *Pipelined*
is the time per call in a sequence: the host prepares one call while the device
runs another, if the operator does not wait. *Kernels* is the device's time
alone.
"""

from collections.abc import Callable, Iterator

from gpu_bounds import Bench, Row
from gpu_launches import FANOUTS, most_edges, one_relation
from gpu_profile import kernels

from torch_gsample import ops
from torch_gsample.rng import make_key

Call = Callable[[int], object]
IN_A_ROW = 16  # calls of a pipelined round


def times_apart(bench: Bench) -> Iterator[Row]:
    """Three times of samples, which wait for sizes or not, and of walks."""
    for name, call in calls(bench).items():
        latency, _ = bench.milliseconds(call, rounds=25)
        yield Row(f'{name}, latency', latency)
        yield Row(f'{name}, pipelined', pipelined(bench, call))
        yield Row(f'{name}, kernels', kernels_only(bench, call))


def calls(bench: Bench) -> dict[str, Call]:
    """Returns calls, as functions of the round's number."""
    batches = bench.batches(1024)
    graph = one_relation(*bench.graph)
    most = [most_edges(1024, FANOUTS)]

    def sample(i: int) -> object:
        seeds, key = batches[i % len(batches)], make_key(0, 0, i)
        return ops.sample_neighbors(graph, seeds, FANOUTS, key)

    # Only a key on the device saves a copy that waits.
    keys = [make_key(0, 0, i).to(bench.device) for i in range(IN_A_ROW)]

    def padded(i: int) -> object:
        seeds, key = batches[i % len(batches)], keys[i % IN_A_ROW]
        return ops.sample_neighbors(graph, seeds, FANOUTS, key, max_edges=most)

    def walk(i: int) -> object:
        seeds = batches[i % len(batches)]
        return ops.random_walk(*bench.graph, seeds, 80, key=make_key(0, 0, i))

    return {
        f'{FANOUTS} of 1,024 seeds': sample,
        f'padded {FANOUTS} of 1,024 seeds': padded,
        'DeepWalk of 1,024 seeds': walk,
    }


def pipelined(bench: Bench, call: Call) -> float:
    """Milliseconds per call of a sequence without waits."""

    def in_a_row(i: int) -> None:
        for j in range(IN_A_ROW):
            call(IN_A_ROW * i + j)

    ms, _ = bench.milliseconds(in_a_row, rounds=5)
    return ms / IN_A_ROW


def kernels_only(bench: Bench, call: Call) -> float:
    """Milliseconds of the kernels and copies of a call."""
    device = bench.device.type
    return sum(row['us'] for row in kernels(call, device)) / 1e3
