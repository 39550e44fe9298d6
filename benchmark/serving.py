"""Latency of requests that sample around a few nodes.

Client threads request the sample and the features of some seeds in sequence,
by `sampler.tensors` and `gather_rows`, and by the code of PyG's loader for a
batch. Without pyg-lib and torch-sparse, PyG's loader runs on our sampler, and
shows the cost of PyG's part.

    python benchmark/serving.py --seeds 1 32 --threads 1 4
"""

import argparse
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from harness import machine
from small_batches import FANOUTS, debian
from torch import Tensor
from torch_geometric import loader as pyg_loader
from torch_geometric.data import Data
from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE

from torch_gsample import NeighborSampler
from torch_gsample.datasets import power_law
from torch_gsample.ops import gather_rows

Ask = Callable[[Tensor], object]


def large(num_features: int) -> Data:
    """1.5 M nodes and 30 M edges, synthetic."""
    graph = power_law(1_500_000, 30_000_000, 20_000)
    edge_index = torch.stack([graph.indices.long(), graph.col().long()])
    x = torch.rand(1_500_000, num_features)
    return Data(edge_index=edge_index, x=x)


GRAPHS = {'debian': debian, 'power_law': large}


def services(data: Data) -> dict[str, Ask]:
    """Returns the functions that answer a request."""
    sampler = NeighborSampler(data, FANOUTS, seed=0, num_threads=1)
    x = data.x
    assert x is not None
    if WITH_PYG_LIB or WITH_TORCH_SPARSE:
        other = pyg_loader.NeighborLoader(data, FANOUTS)
    else:
        other = pyg_loader.NodeLoader(data, sampler)

    def ours(seeds: Tensor) -> object:
        sample = sampler.tensors(seeds)
        assert isinstance(sample.node, Tensor)
        return sample, gather_rows(x, sample.node, num_threads=1)

    return {
        'ours': ours,
        'PyG': other.collate_fn,
    }


def waits(
    ask: Ask, data: Data, num_seeds: int, num_threads: int, requests: int
) -> np.ndarray:
    """Returns the seconds of each request of all threads."""
    begin = threading.Barrier(num_threads)
    found: list[list[float]] = [[] for _ in range(num_threads)]
    assert data.num_nodes is not None
    num_nodes = data.num_nodes

    def client(number: int) -> None:
        generator = torch.Generator().manual_seed(number)
        size = (requests + 20, num_seeds)
        seeds = torch.randint(num_nodes, size, generator=generator)
        begin.wait()
        for row in seeds:
            start = time.perf_counter()
            answer = ask(row)
            found[number].append(time.perf_counter() - start)
            del answer

    threads = [
        threading.Thread(target=client, args=(i,)) for i in range(num_threads)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return np.concatenate([seconds[20:] for seconds in found])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--graphs', nargs='+', default=['debian'])
    parser.add_argument('--seeds', type=int, nargs='+', default=[1, 32])
    parser.add_argument('--threads', type=int, nargs='+', default=[1, 4])
    parser.add_argument('--requests', type=int, default=1000)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--features', type=int, default=100)
    parser.add_argument('--out', type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    lines = [
        machine(),
        '',
        '| graph | seeds | client threads | ours: median, p99 (us) | PyG | '
        'ratio |',
        '|---|---|---|---|---|---|',
    ]
    for name in args.graphs:
        data = GRAPHS[name](args.features)
        asked = services(data)
        for num_seeds in args.seeds:
            for num_threads in args.threads:
                parts: dict[str, list[np.ndarray]] = {n: [] for n in asked}
                for _ in range(args.rounds):  # in turn
                    for key, ask in asked.items():
                        size = num_seeds, num_threads, args.requests
                        parts[key].append(waits(ask, data, *size))
                shown = [
                    np.percentile(np.concatenate(parts[key]), [50, 99]) * 1e6
                    for key in asked
                ]
                ratio = shown[1] / shown[0]
                lines.append(
                    f'| {name} | {num_seeds} | {num_threads} | '
                    + ' | '.join(f'{a:,.0f}, {b:,.0f}' for a, b in shown)
                    + f' | {ratio[0]:.1f}x, {ratio[1]:.1f}x |'
                )
    text = '\n'.join(lines) + '\n'
    print(text)
    if args.out is not None:
        args.out.write_text(text)


if __name__ == '__main__':
    main()
