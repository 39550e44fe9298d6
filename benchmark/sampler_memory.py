"""Peak memory of a sampler, as in Table 9 of gSampler.

MiB of a batch beyond the graph: the peak of the process (`VmHWM`), so that all
memory counts. Each sampler runs in a separate process; ``first`` is the first
call, with the values computed once per graph, and for ``compiled`` with the
compilation; ``later`` is the maximum of five later calls.

    python benchmark/sampler_memory.py --graphs small,medium
"""

import argparse
import multiprocessing
from typing import Any

import torch
from algorithms import symmetric
from compile import parser_of, programs
from harness import Report, machine, seed_batches
from neighbor import load_graph
from vertex_memory import peak

import torch_gsample as gsample
from torch_gsample import SparseSample
from torch_gsample.rng import make_key, program_scope

WAYS = 'eager', 'compiled'
CALLS = 5


def measure(
    name: str, sampler: str, way: str, args: argparse.Namespace
) -> tuple[float, float]:
    """Returns the peaks of the first and of later calls, in MiB."""
    graph = load_graph(name)
    A = SparseSample.from_csc(
        graph.indptr, graph.indices, symmetric(graph), graph.num_rows
    )
    torch.set_num_threads(args.threads)
    program: Any = programs(A)[sampler]
    if way == 'compiled':
        program = gsample.compile(program)
    seeds = seed_batches(graph.num_cols, args.batch_size, CALLS + 1)

    def call(i: int) -> object:
        with program_scope(make_key(0, 0, i)), torch.no_grad():
            return program(A, seeds[i])

    peaks = [peak(lambda _, i=i: call(i)) for i in range(CALLS + 1)]
    scale = 1e6 / 2**20  # `peak` counts in MB
    return peaks[0] * scale, max(peaks[1:]) * scale


def run(report: Report, name: str, args: argparse.Namespace) -> None:
    tiny = SparseSample.from_edge_index(torch.tensor([[0], [1]]))
    context = multiprocessing.get_context('spawn')
    for sampler in programs(tiny):
        if args.programs and sampler not in args.programs.split(','):
            continue
        cells = []
        for way in WAYS:
            with context.Pool(1) as pool:
                job = pool.apply(measure, (name, sampler, way, args))
            cells += [f'{mib:.0f}' for mib in job]
        report.add(name, sampler, *cells)


def main() -> None:
    args = parser_of(__doc__).parse_args()
    report = Report(
        f'Peak memory of samplers in MiB, {args.batch_size} seeds, '
        f'{args.threads} threads: {machine()}',
        ['graph', 'sampler']
        + [f'{way}, {when}' for way in WAYS for when in ('first', 'later')],
    )
    for name in args.graphs.split(','):
        run(report, name, args)
    report.show()
    if args.markdown:
        args.markdown.write_text(report.markdown())


if __name__ == '__main__':
    main()
