"""Neighbours of batches of events: our hook and TGM's, equal ones.

`python benchmark/temporal_hooks.py` answers one question: how much processor
time does TGM's `RecencyNeighborHook` take in an epoch, and ours in its place?
Both return the last k neighbours before each batch, one hop, of a log whose
times differ, and take each batch in turn: all tensors must be equal. One
thread. `--features 172` adds features of events. It needs `tgm-lib`.
"""

import argparse
import time
from typing import Any

import torch
from tgm import DGBatch
from tgm.hooks import RecencyNeighborHook
from torch import Tensor

from torch_gsample.relational import RecentNeighborHook

KEYS = ['edge_src', 'edge_dst'], ['edge_time', 'edge_time']
FOUND = 'nbr_nids', 'nbr_edge_time', 'nbr_edge_x', 'seed_nids', 'seed_times'


class Graph:
    """What the hook of TGM asks its graph for."""

    device = torch.device('cpu')

    def __init__(self, edge_x_dim: int):
        self.edge_x_dim = edge_x_dim


def call(
    hook: Any, graph: Graph, parts: list[Tensor]
) -> tuple[float, list[Tensor]]:
    """Returns the processor time of a hook for a batch, and what it found."""
    batch = DGBatch(*parts)
    start = time.thread_time()
    batch = hook(graph, batch)
    spent = time.thread_time() - start
    return spent, [getattr(batch, name)[0] for name in FOUND]


def epoch(
    hooks: list[Any], graph: Graph, log: list[Tensor], size: int
) -> tuple[list[float], int]:
    """Returns the seconds of each hook in an epoch, and its batches."""
    total, batches = [0.0] * len(hooks), 0
    for first in range(0, len(log[0]), size):
        parts = [part[first : first + size] for part in log]
        outs = [call(hook, graph, parts) for hook in hooks]
        for i, (spent, found) in enumerate(outs):
            total[i] += spent
            same = map(torch.equal, found, outs[0][1])
            assert all(same), 'they must be equal'
        batches += 1
    return total, batches


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
    graph = Graph(args.features)
    (other, own), batches = epoch([theirs, ours], graph, parts, args.batch_size)
    print(
        f'{count:,} events, batches of {args.batch_size}, last {args.k}, '
        f'{args.features} features'
    )
    print(f'TGM           {other / batches * 1e3:8.3f} ms a batch')
    print(f'torch_gsample {own / batches * 1e3:8.3f} ms a batch, ', end='')
    print(f'{once:.2f} s once')
    print(f'ratio {other / own:.1f}, the same neighbours in all batches')


if __name__ == '__main__':
    main()
