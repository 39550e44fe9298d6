"""Time per seed for several batch sizes.

As in Figure 6 of gSampler: microseconds per seed, of ``eager`` and
``compiled`` programs, for batches of 16 to 4,096 seeds.

    python benchmark/batch_size.py --graphs small --markdown results.md
"""

import argparse

import torch
from ablation import one_by_one
from algorithms import symmetric
from compile import parser_of, programs
from harness import Report, compare, machine, seed_batches
from neighbor import load_graph

import torch_gsample as gsample
from torch_gsample import SparseSample

SIZES = 16, 64, 256, 1024, 4096
BATCHES = 4
WAYS = 'eager', 'compiled'


def run(report: Report, name: str, args: argparse.Namespace) -> None:
    graph = load_graph(name)
    A = SparseSample.from_csc(
        graph.indptr, graph.indices, symmetric(graph), graph.num_rows
    )
    torch.set_num_threads(args.threads)
    for sampler, program in programs(A).items():
        if args.programs and sampler not in args.programs.split(','):
            continue
        torch._dynamo.reset()
        functions = dict(
            zip(WAYS, (program, gsample.compile(program)), strict=True)
        )
        cells: dict[str, list[str]] = {way: [] for way in WAYS}
        for size in SIZES:
            seeds = seed_batches(graph.num_cols, size, BATCHES)
            calls = {
                way: one_by_one(function, A, seeds)
                for way, function in functions.items()
            }
            with torch.no_grad():
                times = compare(calls, args.rounds)
            for way in WAYS:
                seconds = times[way].median / (BATCHES * size)
                cells[way].append(f'{seconds * 1e6:.1f}')
        for way in WAYS:
            report.add(name, sampler, way, *cells[way])


def main() -> None:
    args = parser_of(__doc__).parse_args()
    report = Report(
        f'Microseconds a seed by batch size, {args.threads} threads: '
        f'{machine()}',
        ['graph', 'batch size of', 'way', *map(str, SIZES)],
    )
    for name in args.graphs.split(','):
        run(report, name, args)
    report.show()
    if args.markdown:
        args.markdown.write_text(report.markdown())


if __name__ == '__main__':
    main()
