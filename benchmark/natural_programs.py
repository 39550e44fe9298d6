"""Programs as users write them, on a graph on disk: batches alone or together.

Each program has operators of torch without a batched form (``isin``, ``topk``,
``cosine_similarity``, walks). 'alone' is the compiled program for each batch;
'together' one run of all batches, in which these operators are called for each
batch. Samples are compared bit by bit. Reads bypass the page cache (O_DIRECT),
with a cache of edges of the given size.

    python benchmark/natural_programs.py --nodes 500000 --edges 10000000
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from harness import Report, compare, machine, seed_batches

import torch_gsample as gsample
from torch_gsample.cli.arguments import parse_bytes
from torch_gsample.datasets import power_law
from torch_gsample.rng import make_key, program_scope
from torch_gsample.storage import ChunkedGraph


def programs(num_nodes: int) -> dict[str, Callable[[Any, Any], Any]]:
    """Returns programs on a graph of this size."""
    x = F.normalize(torch.randn(num_nodes, 16))

    def similar(A: Any, seeds: torch.Tensor) -> Any:
        S = A[:, seeds]
        source, target = S.edges()
        score = F.cosine_similarity(x[source], x[target])
        return S.individual_sample(10, score.abs() + 0.01)

    def without_seeds(A: Any, seeds: torch.Tensor) -> Any:
        layers = []
        for k in (10, 5):
            S = A[:, seeds]
            S = S.masked(~torch.isin(S.edges()[0], seeds))
            layers.append(S.individual_sample(k))
            seeds = layers[-1].nodes()
        return layers

    def around_walks(A: Any, seeds: torch.Tensor) -> Any:
        nodes = A.T.random_walk(seeds, 4).nodes.flatten()
        return A.induce(nodes[nodes >= 0].unique())

    def greatest_rows(A: Any, seeds: torch.Tensor) -> Any:
        rows = A[:, seeds].sum(dim=1).topk(256).indices
        return A[:, rows].individual_sample(5)

    def popular(A: Any, seeds: torch.Tensor) -> Any:
        S = A[:, seeds].individual_sample(20)
        node, count = S.coo()[0].unique(return_counts=True)
        return [S, A[:, node[count > 1]].individual_sample(20)]

    return {
        'cosine_similarity': similar,
        'isin': without_seeds,
        'walks, induced': around_walks,
        'topk': greatest_rows,
        'unique, counts': popular,
    }


def calls(
    program: Callable[[Any, Any], Any],
    A: Any,
    B: Any,
    groups: list[list[torch.Tensor]],
) -> dict[str, Callable[[int], Any]]:
    """Returns functions that sample a group of batches.

    Each has a matrix of its own: none finds edges in the other's cache.
    """
    torch._dynamo.reset()
    keys = torch.cat([make_key(0, 0, i) for i in range(len(groups[0]))])
    fast = gsample.compile(program)
    batched = gsample.super_batch(program, len(groups[0]))

    def alone(i: int) -> list[Any]:
        out = []
        for seeds, key in zip(
            groups[i % len(groups)], keys.split(1), strict=True
        ):
            with program_scope(key):
                out.append(fast(A, seeds))
        return out

    def together(i: int) -> Any:
        with program_scope(keys):
            return batched(B, groups[i % len(groups)])

    return {'alone': alone, 'together': together}


def assert_equal(first: Any, second: Any) -> None:
    """Compares the edges of samples."""
    if isinstance(first, (list, tuple)):
        for pair in zip(first, second, strict=True):
            assert_equal(*pair)
        return
    if not torch.equal(first.edge_id, second.edge_id):
        raise AssertionError('batches together differ from batches alone')


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--nodes', type=int, default=500_000)
    parser.add_argument('--edges', type=int, default=10_000_000)
    parser.add_argument('--batch-size', type=int, default=64)
    parser.add_argument('--together', type=int, default=32)
    parser.add_argument('--cache', default='64MiB')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--markdown', type=Path)
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    graph = power_law(args.nodes, args.edges, 2_000)
    edge_index = torch.stack([graph.indices, graph.col()]).long()
    seeds = seed_batches(
        args.nodes, args.batch_size, args.together * (args.rounds + 2)
    )
    groups = [
        seeds[i : i + args.together]
        for i in range(0, len(seeds), args.together)
    ]
    report = Report(
        f'Milliseconds a batch of {args.batch_size} seeds, {args.together} '
        f'together: {machine()}',
        ['program', 'alone', 'together', 'faster', 'MB a batch', 'together'],
    )
    with tempfile.TemporaryDirectory() as folder:
        stored = ChunkedGraph.write(f'{folder}/graph', edge_index)
        for name, program in programs(args.nodes).items():
            matrices = [
                ChunkedGraph(stored.path, direct=True).matrix(
                    cache_bytes=parse_bytes(args.cache)
                )
                for _ in range(2)
            ]
            called = calls(program, *matrices, groups)
            found, read = [], []
            for call, A in zip(called.values(), matrices, strict=True):
                call(0), call(0)  # compiles
                before = A.stats()['bytes']
                found.append(call(1))
                read.append((A.stats()['bytes'] - before) / 1e6)
            assert_equal(*found)
            times = compare(called, args.rounds)
            ms = [1e3 * times[k].median / args.together for k in called]
            megabytes = [size / args.together for size in read]
            report.add(name, *ms, f'{ms[0] / ms[1]:.1f}x', *megabytes)
    report.show()
    if args.markdown:
        args.markdown.write_text(report.markdown())


if __name__ == '__main__':
    main()
