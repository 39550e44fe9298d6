"""Times of the package's compiled algorithms, compared with eager ones.

Each runs without gradients, eager and compiled in turns; ``least`` is the
ratio of the fastest calls, ``median`` that of the medians. The first calls,
which compile and select layouts, are not timed.

    python benchmark/shelf.py --graphs small
    python benchmark/shelf.py --programs labor,saint_edge --rounds 20
"""

import argparse
import math
from collections.abc import Callable
from typing import Any

import torch
from algorithms import symmetric
from compile import WARM_UP, parser_of
from harness import Report, compare, machine, seed_batches
from neighbor import load_graph

import torch_gsample as gsample
from torch_gsample import SparseSample, algorithms
from torch_gsample.rng import make_key, program_scope


def shelf(A: SparseSample) -> dict[str, Callable[..., Any]]:
    """The algorithms, as functions of the graph and of seeds."""
    x = torch.rand(A.num_cols, 32)
    kind = torch.arange(A.num_cols) % 2
    relation, relations = torch.arange(A.num_edges) % 5, torch.rand(5, 32)
    path = [('n', 'to', 'n'), ('n', 'of', 'n')]
    vr_gcn = algorithms.VRGCN(A.num_cols, [32])
    bandit = algorithms.GCNBS(A.num_edges)
    distinct = algorithms.GCNBS(A.num_edges, replace=False)
    thanos = algorithms.Thanos(A.num_edges)
    return {
        'ladies-trained': lambda A, s: algorithms.ladies(
            A, s, [512] * 3, False, True
        ),
        'labor': lambda A, s: algorithms.labor(A, s, [10, 5]),
        'labor-1': lambda A, s: algorithms.labor(A, s, [10, 5], 1),
        'labor-star': lambda A, s: algorithms.labor(A, s, [10, 5], -1),
        'labor-weighted': lambda A, s: algorithms.labor(
            A, s, [10, 5], weighted=True
        ),
        'vr_gcn': lambda A, s: vr_gcn(A, s, [2, 2]),
        'gcn_bs': lambda A, s: bandit(A, s, [10, 5]),
        'gcn_bs-distinct': lambda A, s: distinct(A, s, [10, 5]),
        'thanos': lambda A, s: thanos(A, s, [10, 5]),
        'kgcn': lambda A, s: algorithms.kgcn(
            A, s, [10, 5], x[s], relations, relation
        ),
        'hgt': lambda A, s: algorithms.hgt(
            {('n', 'to', 'n'): A}, {'n': s}, [512, 512]
        ),
        'forest_fire': lambda A, s: algorithms.forest_fire(A, s, 0.4),
        'saint_node': lambda A, s: algorithms.saint_node(A, 2000),
        'saint_edge': lambda A, s: algorithms.saint_edge(A, 2000),
        'saint_edge 100': lambda A, s: algorithms.saint_edge(A, 100),
        'saint_frontier': lambda A, s: algorithms.saint_frontier(A, s, 2000),
        'deepwalk': lambda A, s: algorithms.deepwalk(A, s, 10),
        'node2vec': lambda A, s: algorithms.node2vec(A, s, 10, 2.0, 0.5),
        'pinsage': lambda A, s: algorithms.pinsage(A, s, 3, 20, 10),
        'pinsage-metapath': lambda A, s: algorithms.pinsage(
            {t: A for t in path}, s, 4, 20, 10, metapath=path
        ),
        'hetgnn': lambda A, s: algorithms.hetgnn(A, s, kind, [5, 5], 20, 4),
    }


def run(report: Report, name: str, args: argparse.Namespace) -> None:
    graph = load_graph(name)
    A = SparseSample.from_csc(
        graph.indptr, graph.indices, symmetric(graph), graph.num_rows
    )
    A.to_csr()  # eager programs keep this layout: neither side pays for it
    torch.set_num_threads(args.threads)
    seeds = seed_batches(graph.num_cols, args.batch_size, args.rounds)
    ratios = []
    for program, eager in shelf(A).items():
        if args.programs and program not in args.programs.split(','):
            continue
        torch._dynamo.reset()
        candidates = {
            key: keyed(function, A, seeds)
            for key, function in (
                ('eager', eager),
                ('compiled', gsample.compile(eager)),
            )
        }
        with torch.no_grad():
            for call in candidates.values():
                for i in range(WARM_UP):
                    call(i)
            times = compare(candidates, args.rounds)
        both, old = times['compiled'], times['eager']
        ratios.append(old.median / both.median)
        report.add(
            name,
            program,
            f'{old.median * 1e3:.2f}',
            f'{both.median * 1e3:.2f}',
            f'{ratios[-1]:.2f}x',
            f'{old.best / both.best:.2f}x',
        )
    mean = math.exp(sum(map(math.log, ratios)) / max(len(ratios), 1))
    report.add(name, 'geometric mean', '-', '-', f'{mean:.2f}x', '-')


def keyed(
    function: Callable[..., Any], A: SparseSample, seeds: list[torch.Tensor]
) -> Callable[[int], object]:
    """Returns a call of a program with the draws of a round."""

    def call(i: int) -> object:
        with program_scope(make_key(0, 0, i)):
            return function(A, seeds[i % len(seeds)])

    return call


def main() -> None:
    args = parser_of(__doc__).parse_args()
    report = Report(
        f'Compiled algorithms, {args.batch_size} seeds, {args.threads} '
        f'threads: {machine()}',
        ['graph', 'program', 'eager ms', 'compiled ms', 'median', 'least'],
    )
    for name in args.graphs.split(','):
        run(report, name, args)
    report.show()
    if args.markdown:
        args.markdown.write_text(report.markdown())


if __name__ == '__main__':
    main()
