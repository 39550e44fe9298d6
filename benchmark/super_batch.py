"""Where does it pay to sample several batches in one run?

Milliseconds of a batch when 1, 2, 4, ... batches run together, and which size
is chosen by itself. ``alone`` is the compiled sampler, called for each batch.

    python benchmark/super_batch.py --graphs small
    python benchmark/super_batch.py --graphs large --markdown results.md
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from algorithms import symmetric
from compile import programs
from harness import Report, compare, machine, seed_batches
from neighbor import load_graph

from torch_gsample import SparseSample, super_batch
from torch_gsample.rng import make_key, program_scope

SIZES = 1, 2, 4, 8, 16
SAMPLERS = 'GraphSAGE', 'LADIES 512', 'FastGCN', 'ShaDow', 'GraphSAINT'


def calls(
    program: Callable[..., Any], A: SparseSample, seeds: list[torch.Tensor]
) -> tuple[dict[str, Callable[[int], object]], Callable[[], int]]:
    """Returns functions that sample all batches, and what size is chosen."""
    torch._dynamo.reset()
    # Two compilations of one function would share their limit of recompiles.
    alone = torch.compile(
        lambda A, s: program(A, s), backend='gsample', fullgraph=True
    )
    for batch in seeds:
        torch._dynamo.decorators.mark_unbacked(batch, 0)
    auto = super_batch(program)
    together = {size: super_batch(program, size) for size in SIZES[1:]}

    def run_alone(i: int) -> object:
        out = []
        for j, batch in enumerate(seeds):
            with program_scope(make_key(0, i, j)):
                out.append(alone(A, batch))
        return out

    def run(function: Any) -> Callable[[int], object]:
        def keyed(i: int) -> object:
            keys = [make_key(0, i, j) for j in range(len(seeds))]
            with program_scope(torch.cat(keys)):
                return function(A, seeds)

        return keyed

    for i in range(8):  # its search ends
        run(auto)(i)
    candidates = {'alone': run_alone, 'auto': run(auto)}
    candidates |= {str(size): run(f) for size, f in together.items()}
    return candidates, lambda: auto.size


def run(report: Report, name: str, args: argparse.Namespace) -> None:
    graph = load_graph(name)
    A = SparseSample.from_csc(
        graph.indptr, graph.indices, symmetric(graph), graph.num_rows
    )
    A.to_csr()
    torch.set_num_threads(args.threads)
    chosen = args.programs.split(',') if args.programs else SAMPLERS
    for sampler in chosen:
        for batch_size in map(int, args.batch_sizes.split(',')):
            seeds = seed_batches(graph.num_cols, batch_size, args.batches)
            with torch.no_grad():
                candidates, size = calls(programs(A)[sampler], A, seeds)
                times = compare(candidates, args.rounds)
            median = {
                key: t.median * 1e3 / len(seeds) for key, t in times.items()
            }
            report.add(
                Path(name).resolve().parent.name if '/' in name else name,
                sampler,
                batch_size,
                *(f'{median[key]:.3f}' for key in candidates if key != 'auto'),
                size(),
                f'{median["alone"] / median["auto"]:.2f}x',
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--graphs', default='small')
    parser.add_argument('--programs', help='names, with commas between')
    parser.add_argument('--batch-sizes', default='64,1024')
    parser.add_argument('--batches', type=int, default=16)
    parser.add_argument('--rounds', type=int, default=9)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--markdown', type=Path, help='write the table there')
    args = parser.parse_args()
    report = Report(
        f'Milliseconds of a batch in a super-batch, {args.threads} threads: '
        f'{machine()}',
        ['graph', 'sampler', 'seeds', 'alone']
        + [str(size) for size in SIZES[1:]]
        + ['chosen', 'speed-up'],
    )
    for name in args.graphs.split(','):
        run(report, name, args)
    report.show()
    if args.markdown:
        args.markdown.write_text(report.markdown())


if __name__ == '__main__':
    main()
