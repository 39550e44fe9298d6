"""Time and memory of sampling a graph from disk.

An epoch is streamed, and the same epoch's columns are read edge by edge and
chunk by chunk. Reads bypass the page cache (O_DIRECT): it is cold for all. If
the graph has to be written first, that is part of the memory peak: run it
twice.

    python benchmark/storage.py --graph /data/big.gsg --nodes 20000000 \
        --edges 500000000 --memory 1GiB
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from harness import Report, machine
from neighbor import load_npz
from torch_geometric.nn import GraphSAGE
from torch_geometric.sampler import NodeSamplerInput

from torch_gsample import CSC, Graph, ops
from torch_gsample.cli.arguments import parse_bytes
from torch_gsample.datasets import power_law_edges
from torch_gsample.rng import EPOCH_SCOPE, make_key
from torch_gsample.storage import (
    ChunkedGraph,
    RandomReadSampler,
    StreamingSampler,
)
from torch_gsample.storage.chunks import chunk_arrays
from torch_gsample.storage.format import LENGTH, OFFSET
from torch_gsample.storage.reading import ReadAhead, page_aligned

SECTOR = 512
FANOUTS = [15, 10, 5]


def generate(
    path: Path,
    nodes: int,
    edges: int,
    chunk_bytes: int,
    directories: Sequence[str] = (),
) -> None:
    """Writes a graph without holding it."""
    batches = power_law_edges(nodes, edges, min(nodes // 20, 1_000_000))
    ChunkedGraph.write(
        path,
        batches,
        num_nodes=nodes,
        num_edges=edges,
        chunk_bytes=chunk_bytes,
        directories=directories,
        progress=True,
    )


def sequential_seconds(graph: ChunkedGraph, hops: int) -> float:
    """Reads all chunks in order, as many times as an epoch does."""
    meta = graph.meta.relations[0]
    ranges = meta.chunks[:, [OFFSET, LENGTH]].tolist()
    start = time.perf_counter()
    for _ in range(hops):
        with ReadAhead(graph.open(meta), ranges) as chunks:
            for _ in chunks:
                pass
    return time.perf_counter() - start


def edges_a_second_one_by_one(graph: ChunkedGraph, count: int) -> float:
    """Reads single sectors, one per edge, many in flight."""
    meta = graph.meta.relations[0]
    file = graph.open(meta)  # several, if it is dealt over directories
    sectors = graph.meta.sizes[meta.file] // SECTOR
    offset = np.random.default_rng(0).integers(0, sectors, count) * SECTOR
    out = page_aligned(count * SECTOR)
    start = time.perf_counter()
    file.read_ranges(offset, np.full(count, SECTOR), out)
    return count / (time.perf_counter() - start)


def sampled_edges(sampler: StreamingSampler, epoch: int) -> int:
    results = sampler._find(epoch)
    assert results is not None
    arrays = results.facts['arrays'].items()
    return sum(
        array['size'] for name, array in arrays if name.endswith('-row')
    )


def read_all(graph: ChunkedGraph) -> tuple[torch.Tensor, torch.Tensor]:
    """Reads a homogeneous graph into memory, as ``indptr``, ``indices``."""
    meta = graph.meta.relations[0]
    file = graph.open(meta)
    indptr = torch.zeros(meta.num_cols + 1, dtype=torch.int64)
    indices = torch.empty(meta.num_edges, dtype=torch.int32)
    for i, row in enumerate(meta.chunks.tolist()):
        data = page_aligned(row[LENGTH])
        file.read(row[OFFSET], data)
        arrays = chunk_arrays(file.path, meta, i, data)
        start, nodes, first, edges = row[:4]
        ends = torch.from_numpy(arrays['offset'][1:])
        indptr[start + 1 : start + nodes + 1] = ends + first
        neighbors = torch.from_numpy(arrays['neighbor'])
        indices[first : first + edges] = neighbors
    return indptr, indices


def batch_times(
    graph: ChunkedGraph,
    sampler: StreamingSampler,
    batches: Sequence[torch.Tensor],
) -> dict[tuple[str, int], np.ndarray]:
    """Returns medians per batch, looked up and sampled in memory, in turns.

    Elapsed and processor seconds ``[2]`` for each number of threads.
    """
    indptr, indices = read_all(graph)
    known = Graph.from_csc(CSC(indptr, indices, indptr.numel() - 1))
    key = make_key(sampler.seed, 0, EPOCH_SCOPE)
    most, out = torch.get_num_threads(), {}
    kinds: dict[str, Callable[[torch.Tensor], Any]] = {
        'looked up': lambda batch: sampler.sample_from_nodes(
            NodeSamplerInput(None, batch)
        ),
        'in memory': lambda batch: ops.sample_neighbors(
            known, batch, FANOUTS, key
        ),
    }
    for threads in sorted({1, most}):
        torch.set_num_threads(threads)
        times: dict[str, list[np.ndarray]] = {kind: [] for kind in kinds}
        for batch in batches:
            nodes = []
            for kind, run in kinds.items():
                start = np.array([time.perf_counter(), time.process_time()])
                nodes.append(run(batch).node)
                end = np.array([time.perf_counter(), time.process_time()])
                times[kind].append(end - start)
            assert torch.equal(*nodes)
        for kind, found in times.items():
            out[kind, threads] = np.median(found[1:] or found, axis=0)
    torch.set_num_threads(most)
    return out


def hidden_parts(
    sampler: StreamingSampler, seeds: torch.Tensor, batch_size: int
) -> dict[str, float]:
    """The fraction of preparation hidden by concurrent work.

    The concurrent work takes as long as preparation alone: either waiting, as
    for training on another device, or training GraphSAGE in one thread on
    batches of the epoch, which takes processors from the preparation.
    """
    start = time.perf_counter()
    sampler.prepare_epoch(seeds, 10)
    alone = time.perf_counter() - start
    sampler.set_epoch(10)
    batches = list(seeds.split(batch_size))
    model = GraphSAGE(64, 64, 3, 64)
    optimizer = torch.optim.Adam(model.parameters())

    def train(part: list[torch.Tensor], seconds: float) -> int:
        end, done = time.perf_counter() + seconds, 0
        for batch in part:
            out = sampler.sample_from_nodes(NodeSamplerInput(None, batch))
            edge_index = torch.stack([out.row, out.col])
            model(torch.rand(len(out.node), 64), edge_index).sum().backward()
            optimizer.step()
            done += 1
            if time.perf_counter() > end:
                break
        return done

    train(batches, 0)  # the first one allocates
    hidden, threads = {}, torch.get_num_threads()
    sampler.trigger = 2.0  # not by itself
    for name in ('waiting', 'training'):
        torch.set_num_threads(1 if name == 'training' else threads)
        start = time.perf_counter()
        done = train(batches, alone) if name == 'training' else 0
        without = time.perf_counter() - start if done else alone
        torch.set_num_threads(threads)
        sampler.prepare_ahead(11)
        start = time.perf_counter()
        torch.set_num_threads(1 if done else threads)
        train(batches[:done], 1e9) if done else time.sleep(alone)
        sampler.finish_preparing()
        more = time.perf_counter() - start - without
        hidden[name] = 1 - more / alone
        sampler._keep_latest(11)
    torch.set_num_threads(threads)
    return hidden


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add('--graph', type=Path, help='made if it does not exist')
    add('--stripe', action='append', default=[], help='a further directory')
    add('--npz', help='what it is made of: relations, see neighbor.py')
    add('--nodes', type=int, default=200_000)
    add('--edges', type=int, default=5_000_000)
    add('--chunk', type=parse_bytes, default='64MiB')
    add('--memory', type=parse_bytes, default='1GiB')
    add('--seeds', type=float, default=0.01, help='part of the nodes')
    add('--batch-size', type=int, default=1024)
    add('--reads', type=int, default=100_000, help='single reads to time')
    args = parser.parse_args()
    folder = tempfile.TemporaryDirectory()
    path = args.graph or Path(folder.name) / 'graph'
    if not path.exists() and args.npz:
        data, size = load_npz(args.npz), args.chunk
        ChunkedGraph.write(
            path, data, chunk_bytes=size, directories=args.stripe
        )
    elif not path.exists():
        generate(path, args.nodes, args.edges, args.chunk, args.stripe)
    graph = ChunkedGraph(path, direct=True)
    num_nodes = graph.num_nodes[None]
    generator = torch.Generator().manual_seed(0)
    seeds = torch.randperm(num_nodes, generator=generator)
    seeds = seeds[: max(1, int(num_nodes * args.seeds))].clone()
    report = Report(f'{graph}; {machine()}', ['what', 'value'])
    sampler = StreamingSampler(
        graph, FANOUTS, seed=0, memory_limit=args.memory
    )
    start = time.perf_counter()
    sampler.prepare_epoch(seeds, 0)
    seconds = time.perf_counter() - start
    edges = sampled_edges(sampler, 0)
    report.add('edges of an epoch', f'{edges:,}')
    report.add('seconds to prepare it', seconds)
    report.add('peak resident MiB', peak())
    measure(args, graph, sampler, seeds, edges, seconds, report)
    sampler.close()
    report.show()


def peak() -> int:
    """The operating system's peak memory of this process, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def measure(
    args: argparse.Namespace,
    graph: ChunkedGraph,
    sampler: StreamingSampler,
    seeds: torch.Tensor,
    edges: int,
    seconds: float,
    report: Report,
) -> None:
    """Compares the epoch with reads, and looks up its batches."""
    read = sequential_seconds(graph, len(FANOUTS))
    report.add('seconds to read its chunks alone', read)
    report.add('preparing / reading', seconds / read)
    one_by_one = edges_a_second_one_by_one(graph, args.reads)
    report.add('edges a second, a read an edge', f'{one_by_one:,.0f}')
    report.add('streamed / a read an edge', edges / seconds / one_by_one)
    batches = seeds.split(args.batch_size)[:16]
    for name, one, most in (
        ('looked up', sampler, 16),
        ('read at random', RandomReadSampler(graph, FANOUTS, seed=0), 2),
    ):
        start, count = time.perf_counter(), 0
        for batch in batches[:most]:
            out = one.sample_from_nodes(NodeSamplerInput(None, batch))
            count += out.row.numel()
        took = time.perf_counter() - start
        report.add(f'edges a second, {name}', f'{count / took:,.0f}')
    report.add('peak resident MiB with lookups', peak())
    times = batch_times(graph, sampler, batches)
    for (kind, threads), found in times.items():
        name = f'ms a batch, {kind}, threads: {threads}'
        elapsed, processor = 1e3 * found
        report.add(name, f'{elapsed:.1f} (processor {processor:.1f})')
    for threads in sorted({threads for _, threads in times}):
        ratio = times['looked up', threads] / times['in memory', threads]
        name = f'looked up / in memory, threads: {threads}'
        report.add(name, '{:.2f} (processor {:.2f})'.format(*ratio))
    parts = hidden_parts(sampler, seeds, args.batch_size)
    for name, part in parts.items():
        report.add(f'hidden behind {name}', part)


if __name__ == '__main__':
    main()
