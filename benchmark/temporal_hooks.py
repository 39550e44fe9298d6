"""Neighbours of batches of events: our hook and TGM's, equal ones.

`python benchmark/temporal_hooks.py` answers one question: how long does an
epoch of TGM's loader take with its `RecencyNeighborHook`, and with ours in its
place? Both return the last k neighbours before each batch, one hop, of a log
whose times differ: all tensors must be equal. One thread. It needs `tgm-lib`.
"""

import argparse
import time

import torch
from tgm import DGBatch
from tgm.hooks import RecencyNeighborHook

from torch_gsample.relational import RecentNeighborHook

KEYS = ['edge_src', 'edge_dst'], ['edge_time', 'edge_time']


class Graph:
    """What the hook of TGM asks its graph for."""

    device, edge_x_dim = torch.device('cpu'), 0


def epoch(hook, log: tuple, size: int) -> tuple[float, list]:
    """Returns the seconds of the hook in an epoch, and what it found."""
    spent, found = 0.0, []
    for first in range(0, len(log[0]), size):
        batch = DGBatch(*(part[first : first + size] for part in log))
        start = time.perf_counter()
        batch = hook(Graph, batch)
        spent += time.perf_counter() - start
        found.append((batch.nbr_nids[0], batch.nbr_edge_time[0]))
    return spent, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--events', type=int, default=100_000)
    parser.add_argument('--nodes', type=int, default=10_000)
    parser.add_argument('--batch-size', type=int, default=200)
    parser.add_argument('--k', type=int, default=20)
    args = parser.parse_args()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    count, half = args.events, args.nodes // 2
    skewed = torch.rand(2, count, generator=generator) ** 2 * half
    src, dst = skewed.int()
    log = src, dst + half, torch.arange(1, count + 1)
    theirs = RecencyNeighborHook(args.nodes, [args.k], *KEYS)
    start = time.perf_counter()
    ours = RecentNeighborHook(*log, args.nodes, [args.k], *KEYS)
    once = time.perf_counter() - start
    spent, want = epoch(theirs, log, args.batch_size)
    own, got = epoch(ours, log, args.batch_size)
    for one, other in zip(want, got, strict=True):
        assert all(map(torch.equal, one, other)), 'they must be equal'
    batches = len(want)
    print(f'{count:,} events, batches of {args.batch_size}, last {args.k}')
    print(f'TGM           {spent / batches * 1e3:8.2f} ms a batch')
    print(f'torch_gsample {own / batches * 1e3:8.2f} ms a batch, ', end='')
    print(f'{once:.2f} s once')
    print(f'ratio {spent / own:.1f}, the same neighbours in all batches')


if __name__ == '__main__':
    main()
