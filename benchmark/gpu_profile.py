"""Times of the kernels of a call on a GPU.

    python benchmark/gpu_profile.py --graph large --out kernels.jsonl
    ncu --clock-control none --kernel-name-base demangled -k regex:gsample \
        python benchmark/gpu_profile.py --once

Times are microseconds per call, from torch's profiler; `--once` only makes
each call, for an external profiler. `--device cpu` is a dry run.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from neighbor import load_graph
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from torch_gsample import CSC, Graph, ops
from torch_gsample.rng import make_key

SEEDS = 196_615  # of an epoch, as of ogbn-products
ROUNDS = 3


def calls(graph: CSC, device: str) -> dict[str, Callable[[int], object]]:
    """Returns calls, as functions of the round's number."""
    there = Graph.from_csc(graph.to(device))
    at = there[None].indptr, there[None].indices
    generator = torch.Generator().manual_seed(12)
    epoch = torch.randperm(graph.num_cols, generator=generator)
    epoch = epoch[:SEEDS].to(device)

    def seeds(size: int, i: int) -> Tensor:
        parts = epoch.split(size)
        return parts[i % len(parts)]

    def neighbors(size: int, fanouts: list[int]) -> Callable[[int], object]:
        return lambda i: ops.sample_neighbors(
            there, seeds(size, i), fanouts, make_key(0, 0, i)
        )

    return {
        '[15, 10, 5] of 1,024 seeds': neighbors(1024, [15, 10, 5]),
        '[25, 10] of 512 seeds': neighbors(512, [25, 10]),
        'layers of [15, 10, 5]': lambda i: ops.sample_layers(
            there, seeds(1024, i), [15, 10, 5], [make_key(0, 0, i)] * 3
        ),
        'DeepWalk': lambda i: ops.random_walk(
            *at, epoch, 80, key=make_key(0, 0, i)
        ),
        'node2vec': lambda i: ops.node2vec_walk(
            *at, epoch, 80, 2.0, 0.5, key=make_key(0, 0, i)
        ),
    }


def synchronize(device: str) -> None:
    if device != 'cpu':
        torch.cuda.synchronize()


def kernels(
    call: Callable[[int], object], device: str
) -> Iterator[dict[str, Any]]:
    """Yields the kernels of a call, and microseconds and launches of each."""
    for i in range(ROUNDS):
        call(i)
    synchronize(device)
    kinds = [ProfilerActivity.CPU]
    kinds += [ProfilerActivity.CUDA] * (device != 'cpu')
    with profile(activities=kinds) as found:
        for i in range(ROUNDS):
            call(i)
        synchronize(device)
    of_device = (
        'self_cpu_time_total'
        if device == 'cpu'
        else ('self_device_time_total')
    )
    for event in found.key_averages():
        time = getattr(event, of_device) / ROUNDS
        if time > 1:
            launches = round(event.count / ROUNDS, 2)
            yield {'kernel': event.key, 'us': time, 'launches': launches}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--graph', default='large')
    parser.add_argument('--device', default='cuda')
    parser.add_argument('--once', action='store_true')
    parser.add_argument('--out', type=Path, help='a line of JSON a kernel')
    args = parser.parse_args()
    for name, call in calls(load_graph(args.graph), args.device).items():
        if args.once:
            call(0)
            synchronize(args.device)
            continue
        print(name, flush=True)
        for row in kernels(call, args.device):
            print(
                f'{row["us"]:10.1f} us {row["launches"]:6} x  '
                f'{row["kernel"][:90]}',
                flush=True,
            )
            if args.out:
                with args.out.open('a') as file:
                    file.write(json.dumps({'call': name, **row}) + '\n')


if __name__ == '__main__':
    main()
