"""Times of sampling from disk for several chunk sizes.

A graph is written with chunks of several sizes. An epoch is streamed, for many
and for few seeds, and batches are read at random, with no cache except the
sampler's. All reads bypass the page cache (O_DIRECT). Sizes take turns, for
several rounds, and the least time of each counts.

    python benchmark/chunk_size.py --nodes 5000000 --edges 100000000
"""

import argparse
import tempfile
import time
from pathlib import Path

import torch
from harness import Report, machine
from torch_geometric.sampler import NodeSamplerInput

from torch_gsample.cli.arguments import parse_bytes
from torch_gsample.datasets import power_law_edges
from torch_gsample.storage import (
    ChunkedGraph,
    RandomReadSampler,
    StreamingSampler,
)
from torch_gsample.storage.format import LENGTH

FANOUTS = [15, 10]
SIZES = ['256KiB', '1MiB', '4MiB', '16MiB', '64MiB', '256MiB']


def stream(graph: ChunkedGraph, seeds: torch.Tensor, memory: int) -> float:
    """Returns the seconds to prepare an epoch, without checking chunks."""
    graph = ChunkedGraph(graph.path, direct=True)
    sampler = StreamingSampler(graph, FANOUTS, seed=0, memory_limit=memory)
    start = time.perf_counter()
    sampler.prepare_epoch(seeds, 0)
    seconds = time.perf_counter() - start
    sampler.close()
    return seconds


def read(graph: ChunkedGraph, batches: list[torch.Tensor]) -> list[float]:
    """Returns the seconds of the first batch, and of a later one."""
    graph = ChunkedGraph(graph.path, direct=True)
    sampler = RandomReadSampler(graph, FANOUTS, seed=0, cache_bytes=64 << 20)
    times = []
    for batch in batches:
        start = time.perf_counter()
        sampler.sample_from_nodes(NodeSamplerInput(None, batch))
        times.append(time.perf_counter() - start)
    return [times[0], sum(times[1:]) / (len(times) - 1)]


def measure(graph: ChunkedGraph, args: argparse.Namespace) -> list[float]:
    """Returns all measured seconds of a graph."""
    generator = torch.Generator().manual_seed(0)
    nodes = torch.randperm(args.nodes, generator=generator)
    many, few = nodes[: max(args.nodes // 20, 1)], nodes[:64].clone()
    batches = list(nodes[: 8 * args.batch_size].split(args.batch_size))
    return [
        stream(graph, many.clone(), args.memory),
        stream(graph, few, args.memory),
        *read(graph, batches),
    ]


def main() -> None:
    """Prints a row for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add('--nodes', type=int, default=200_000)
    add('--edges', type=int, default=5_000_000)
    add('--memory', type=parse_bytes, default='2GiB')
    add('--batch-size', type=int, default=1024)
    add('--rounds', type=int, default=3)
    add('--sizes', type=parse_bytes, nargs='+', default=None)
    add('--folder', type=Path, help='where graphs are written for a while')
    args = parser.parse_args()
    sizes = args.sizes or list(map(parse_bytes, SIZES))
    best: dict[int, list[float]] = {}
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        graphs = {}
        for size in sizes:
            edges = power_law_edges(args.nodes, args.edges, args.nodes // 20)
            graphs[size] = ChunkedGraph.write(
                f'{folder}/{size}',
                edges,
                num_nodes=args.nodes,
                chunk_bytes=size,
            )
        for _ in range(args.rounds):
            for size, graph in graphs.items():
                now = measure(graph, args)
                best[size] = list(map(min, best.get(size, now), now))
    names = ['stream 5 % s', 'stream 64 s', 'first batch ms', 'batch ms']
    report = Report(
        f'{args.nodes:,} nodes, {args.edges:,} edges; {machine()}',
        ['chunk MiB', 'chunks', 'buffers MiB', *names],
    )
    for size, (many, few, first, batch) in best.items():
        table = graphs[size].meta.relations[0].chunks
        report.add(
            size / 2**20,
            len(table),
            2 * int(table[:, LENGTH].max()) / 2**20,
            many,
            few,
            1e3 * first,
            1e3 * batch,
        )
    report.show()


if __name__ == '__main__':
    main()
