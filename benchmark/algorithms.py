"""Times of whole algorithms, and of the operators they consist of.

``batches`` compares LADIES and FastGCN with the same algorithms in SciPy and
torch-sparse, and ShaDow and GraphSAINT with PyG's own loaders. ``operators``
compares extraction and selection with the time of their memory accesses alone.
Peers are measured if they are installed.

    python benchmark/algorithms.py --graphs small
    python benchmark/algorithms.py --parts batches --markdown results.md
"""

import argparse
import importlib.util
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import torch
from harness import (
    Report,
    compare,
    copier,
    machine,
    random_reader,
    seed_batches,
)
from neighbor import load_graph
from peer_algorithms import (
    Batch,
    scipy_fastgcn,
    scipy_ladies,
    scipy_matrix,
    torch_sparse_fastgcn,
    torch_sparse_ladies,
    torch_sparse_matrix,
)
from torch import Tensor
from torch_geometric import loader as pyg_loader
from torch_geometric.data import Data

from torch_gsample import CSC, SparseSample
from torch_gsample import loader as our_loader
from torch_gsample.algorithms import fastgcn, ladies
from torch_gsample.rng import make_key, program_scope
from torch_gsample.sparse_sample import NodeProbs

PARTS = ('batches', 'operators')
FANOUTS = [4096] * 3
BATCH_SIZE = 1024
ROOTS, WALK_LENGTH = 2000, 3
DEPTH, NEIGHBORS = 2, 10
HAS_TORCH_SPARSE = importlib.util.find_spec('torch_sparse') is not None

Call = Callable[[int], object]


def symmetric(graph: CSC) -> Tensor:
    """Weights of the edges of a graph, normalised by both degrees."""
    degree = graph.indptr.diff()
    out = torch.bincount(graph.indices, minlength=graph.num_rows)
    total = degree.repeat_interleave(degree) * out[graph.indices]
    return total.to(torch.float32).rsqrt()


def on_seeds(batch: Batch, seeds: list[Tensor]) -> Call:
    return lambda i: batch(i, seeds[i % len(seeds)])


def keyed(batch: Callable[[Tensor], object]) -> Batch:
    def call(i: int, seeds: Tensor) -> object:
        with program_scope(make_key(0, 0, i)):
            return batch(seeds)

    return call


def layer_wise(graph: CSC, seeds: list[Tensor]) -> Iterator[tuple]:
    """Yields each algorithm with its candidates."""
    value = symmetric(graph)
    A = SparseSample.from_csc(
        graph.indptr, graph.indices, value, graph.num_rows
    )
    q = NodeProbs((A**2).sum(dim=1))
    matrix = scipy_matrix(graph, value)
    adj_t = torch_sparse_matrix(graph, value) if HAS_TORCH_SPARSE else None
    candidates = {
        'ours': keyed(lambda nodes: ladies(A, nodes, FANOUTS)),
        'SciPy': scipy_ladies(matrix, FANOUTS),
    }
    if adj_t is not None:
        candidates['torch-sparse'] = torch_sparse_ladies(adj_t, FANOUTS)
    yield 'LADIES', {n: on_seeds(c, seeds) for n, c in candidates.items()}
    candidates = {
        'ours': keyed(lambda nodes: fastgcn(A, nodes, FANOUTS, q)),
        'SciPy': scipy_fastgcn(matrix, FANOUTS),
    }
    if adj_t is not None:
        candidates['torch-sparse'] = torch_sparse_fastgcn(adj_t, FANOUTS)
    yield 'FastGCN', {n: on_seeds(c, seeds) for n, c in candidates.items()}


def endless(loader: Iterable) -> Call:
    """Returns a function that returns the next batch of a loader."""

    def batches() -> Iterator[object]:
        while True:
            yield from loader

    iterator = batches()
    return lambda _: next(iterator)


def loaders(graph: CSC, seeds: list[Tensor]) -> Iterator[tuple]:
    """Yields each loader with its candidates."""
    edge_index = torch.stack([graph.indices.long(), graph.col()])
    data = Data(edge_index=edge_index, num_nodes=graph.num_cols)
    # A prefetching thread of ours would run during the peer's turn.
    sources = {'ours': (our_loader, {'seed': 0, 'prefetch': 0})}
    if HAS_TORCH_SPARSE:
        sources['PyG'] = pyg_loader, {}
    candidates = {
        name: endless(
            source.ShaDowKHopSampler(
                data,
                DEPTH,
                NEIGHBORS,
                torch.cat(seeds),
                batch_size=BATCH_SIZE,
                **options,
            )
        )
        for name, (source, options) in sources.items()
    }
    yield 'ShaDow', candidates
    candidates = {
        name: endless(
            source.GraphSAINTRandomWalkSampler(
                data, ROOTS, WALK_LENGTH, num_steps=64, **options
            )
        )
        for name, (source, options) in sources.items()
    }
    yield 'GraphSAINT', candidates


def run_batches(report: Report, name: str, args: argparse.Namespace) -> None:
    graph = load_graph(name)
    seeds = seed_batches(graph.num_cols, BATCH_SIZE, 16)
    for part in (layer_wise, loaders):
        for algorithm, candidates in part(graph, seeds):
            for threads in args.threads:
                torch.set_num_threads(threads)
                times = compare(candidates, args.rounds)
                ours = times.pop('ours').median
                best = min((t.median for t in times.values()), default=None)
                report.add(
                    name,
                    algorithm,
                    threads,
                    f'{ours * 1e3:.1f}',
                    ', '.join(
                        f'{n} {t.median * 1e3:.0f}' for n, t in times.items()
                    )
                    or '-',
                    '-' if best is None else f'{best / ours:.1f}x',
                )


def line_bytes(A: SparseSample, cols: Tensor) -> int:
    """Bytes of the cache lines that hold the rows of some columns."""
    layout = A.csc
    line = 64 // layout.indices.element_size()
    begin = layout.indptr[cols].long()
    end = layout.indptr[cols + 1].long()
    lines = (end - 1).div(line, rounding_mode='floor') - begin // line + 1
    return 64 * int(lines[end > begin].sum())


def run_operators(report: Report, name: str, args: argparse.Namespace) -> None:
    """Times operators of one step, and the memory accesses they need.

    Operators, the copy and the random reads that bound them take turns on one
    thread, so that a noisy machine disturbs them alike.
    """
    torch.set_num_threads(1)
    graph = load_graph(name)
    n, k = 100_000, 10
    cols = seed_batches(graph.num_cols, min(n, graph.num_cols), 1)[0]
    A = SparseSample.from_csc(
        graph.indptr, graph.indices, num_rows=graph.num_rows
    )
    sub = A[:, cols]
    probs = sub.sum(dim=1)
    edges, n = sub.num_edges, cols.numel()
    item = graph.indices.element_size()
    sampled = int(sub.degree(0).clamp(max=k).sum())
    copy, copied = copier()
    readers = {
        'first edges': random_reader(graph.num_edges, graph.indices.dtype),
        'pointers': random_reader(graph.num_cols, graph.indptr.dtype),
        'edges': random_reader(edges, graph.indices.dtype),
        'edge ids': random_reader(edges, torch.int64),
        'weights': random_reader(graph.num_rows, torch.int64),
    }
    # Random reads of single positions, and sequential reads and writes: whole
    # cache lines for a column's edges.
    bounds: dict[str, tuple[Callable, dict[str, int], int]] = {
        'extract': (
            lambda: A[:, cols],
            {'pointers': n, 'first edges': n},
            line_bytes(A, cols) + edges * (item + 8),
        ),
        'individual_sample': (
            lambda: sub.individual_sample(k),
            {'edges': sampled, 'edge ids': sampled},
            n * 2 * item + sampled * (item + 8),
        ),
        'collective_sample': (
            lambda: sub.collective_sample(4096, probs, replace=True),
            {'weights': 4096},
            edges * item + graph.num_rows * (4 + 8 + 8),
        ),
    }
    candidates = {o: keyed_call(call) for o, (call, _, _) in bounds.items()}
    candidates.update({r: read for r, (read, _) in readers.items()})
    times = compare({**candidates, 'copy': copy}, args.rounds)
    for operator, (_, reads, size) in bounds.items():
        time = times[operator].median
        read = sum(
            count * times[place].median / readers[place][1]
            for place, count in reads.items()
        )
        stream = size * times['copy'].median / copied
        report.add(
            name,
            operator,
            f'{time * 1e3:.2f}',
            f'{read * 1e3:.2f}',
            f'{stream * 1e3:.2f}',
            f'{time / max(read, stream):.1f}x',
        )


def keyed_call(call: Callable[[], object]) -> Call:
    def run(i: int) -> object:
        with program_scope(make_key(0, 0, i)):
            return call()

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--graphs', default='large,medium,small')
    parser.add_argument('--parts', default=','.join(PARTS))
    parser.add_argument('--threads', default='1,2')
    parser.add_argument('--rounds', type=int, default=9)
    parser.add_argument('--markdown', type=Path, help='write the tables there')
    args = parser.parse_args()
    args.threads = [int(t) for t in args.threads.split(',')]
    batches = Report(
        f'Batches of {BATCH_SIZE} seeds, {FANOUTS} nodes a layer; {ROOTS} '
        f'walks of length {WALK_LENGTH}: {machine()}',
        ['graph', 'algorithm', 'threads', 'ours ms', 'peers ms', 'speed-up'],
    )
    operators = Report(
        '100,000 columns, 10 edges a column, 4,096 rows; one thread',
        ['graph', 'operator', 'ms', 'random reads ms', 'streams ms']
        + ['of the bound'],
    )
    reports = []
    for part, report, run in (
        ('batches', batches, run_batches),
        ('operators', operators, run_operators),
    ):
        if part in args.parts.split(','):
            reports.append(report)
            for name in args.graphs.split(','):
                run(report, name, args)
            report.show()
    if args.markdown:
        args.markdown.write_text('\n'.join(r.markdown() for r in reports))


if __name__ == '__main__':
    main()
