"""Neighbours of batches of events: our hook compared with TGM's.

`python benchmark/temporal_hooks.py` measures the processor time of TGM's
`RecencyNeighborHook` in an epoch, and of ours instead. Both return the last k
neighbours before each batch, one hop, of a log with distinct times, and take
turns: all tensors must be equal. One thread. `--features 172` adds features of
events. It needs `tgm-lib`.
"""

import argparse
import time
from typing import Any

import torch
from tgm import DGBatch
from tgm.hooks import RecencyNeighborHook

from torch_gsample.relational import RecentNeighborHook

KEYS = ['edge_src', 'edge_dst'], ['edge_time', 'edge_time']
TURN = 50
FOUND = 'nbr_nids', 'nbr_edge_time', 'nbr_edge_x', 'seed_nids', 'seed_times'


class Graph:
    """The attributes of a graph that TGM's hook reads."""

    device = torch.device('cpu')

    def __init__(self, edge_x_dim: int):
        self.edge_x_dim = edge_x_dim


def check(hooks: list[Any], graph: Graph, batches: list[Any]) -> None:
    """Compares the results of two hooks, in all batches."""
    for parts in batches:
        one, other = (hook(graph, DGBatch(*parts)) for hook in hooks)
        for name in FOUND:
            [found], [want] = getattr(one, name), getattr(other, name)
            assert torch.equal(found, want), f'{name} must be equal'


def measure(hooks: list[Any], graph: Graph, batches: list[Any]) -> list[float]:
    """Returns the processor seconds of each hook for all batches.

    Hooks take turns after several batches, because reading the clock is slow.
    """
    total = [0.0] * len(hooks)
    for first in range(0, len(batches), TURN):
        turn = batches[first : first + TURN]
        for i, hook in enumerate(hooks):
            given = [DGBatch(*parts) for parts in turn]
            start = time.process_time()
            while given:
                hook(graph, given.pop(0))
            total[i] += time.process_time() - start
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--events', type=int, default=100_000)
    parser.add_argument('--nodes', type=int, default=10_000)
    parser.add_argument('--batch-size', type=int, default=200)
    parser.add_argument('--k', type=int, default=20)
    parser.add_argument('--features', type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    count, half = args.events, args.nodes // 2
    skewed = torch.rand(2, count, generator=generator) ** 2 * half
    src, dst = skewed.int()
    log = [src, dst + half, torch.arange(1, count + 1)]
    x = torch.rand(count, args.features, generator=generator)
    theirs = RecencyNeighborHook(args.nodes, [args.k], *KEYS)
    start = time.perf_counter()
    ours = RecentNeighborHook(
        *log, args.nodes, [args.k], *KEYS, edge_x=x if args.features else None
    )
    once = time.perf_counter() - start
    parts = [*log, x] if args.features else log
    batches = list(
        zip(*(part.split(args.batch_size) for part in parts), strict=True)
    )
    hooks, graph = [theirs, ours], Graph(args.features)
    check(hooks, graph, batches)
    theirs.reset_state()
    other, own = measure(hooks, graph, batches)
    print(
        f'{count:,} events, batches of {args.batch_size}, last {args.k}, '
        f'{args.features} features'
    )
    print(f'TGM           {other / len(batches) * 1e3:8.3f} ms a batch')
    print(
        f'torch_gsample {own / len(batches) * 1e3:8.3f} ms a batch, ', end=''
    )
    print(f'{once:.2f} s once')
    print(f'ratio {other / own:.1f}, the same neighbours in all batches')


if __name__ == '__main__':
    main()
