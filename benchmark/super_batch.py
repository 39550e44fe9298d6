"""Gain of sampling several batches in one run.

Milliseconds per batch when 1, 2, 4, ... batches run together, and with the
automatically selected size. ``alone`` is the compiled sampler, called for each
batch; ``MiB`` is the memory of the tensors of a run of 8, and with half of it
as a budget. Times are processor time of one thread, which a busy machine does
not disturb.

    python benchmark/super_batch.py --graphs small
    python benchmark/super_batch.py --graphs large --markdown results.md
"""

import argparse
import time
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

SIZES = 2, 8, 16
SAMPLERS = (
    *('GraphSAGE', 'LADIES 512', 'LADIES 4000', 'FastGCN'),
    *('ShaDow', 'GraphSAINT', 'heterogeneous'),
)


def run_keyed(function: Any, A: Any, seeds: list[torch.Tensor], i: int) -> Any:
    keys = [make_key(0, i, j) for j in range(len(seeds))]
    with program_scope(torch.cat(keys)):
        return function(A, seeds)


def calls(
    program: Callable[..., Any], A: SparseSample, seeds: list[torch.Tensor]
) -> tuple[dict[str, Callable[[int], object]], Any]:
    """Returns functions that sample all batches, and the self-tuning one."""
    torch._dynamo.reset()
    auto = super_batch(program)
    together = {size: super_batch(program, size) for size in SIZES}

    def run_alone(i: int) -> object:
        out = []
        for j, batch in enumerate(seeds):
            with program_scope(make_key(0, i, j)):
                out.append(together[SIZES[0]].alone(A, batch))
        return out

    def run(function: Any) -> Callable[[int], object]:
        return lambda i: run_keyed(function, A, seeds, i)

    candidates = {'alone': run_alone}
    candidates |= {str(size): run(f) for size, f in together.items()}
    candidates['auto'] = run(auto)
    for i in range(30):  # its search ends, and layouts are chosen
        run(auto)(i)
        if auto.search.is_decided:
            break
    for name in candidates:
        for i in range(6 if name == '16' else 3):
            candidates[name](i)
    return candidates, auto


def peaks(
    program: Callable[..., Any], A: SparseSample, seeds: list[torch.Tensor]
) -> tuple[float, float]:
    """MiB of a run of eight batches, and of runs with half of it as budget."""
    eight = peak(super_batch(program, 8, memory_budget=2**62), A, seeds)
    half = super_batch(program, 8, memory_budget=int(eight / 2))
    return eight / 2**20, peak(half, A, seeds) / 2**20


def peak(function: Any, A: SparseSample, seeds: list[torch.Tensor]) -> int:
    """The peak bytes of runs, over their measured sizes."""
    found, note = [], function.search.note_memory

    def note_memory(sizes: list[int], peak: int) -> None:
        found.append(peak)
        note(sizes, peak)

    function.search.note_memory = note_memory
    for i in range(3):
        run_keyed(function, A, seeds, i)
    return max(found)


def run(report: Report, name: str, args: argparse.Namespace) -> None:
    graph = load_graph(name)
    A = SparseSample.from_csc(
        graph.indptr, graph.indices, symmetric(graph), graph.num_rows
    )
    A.to_csr()
    torch.set_num_threads(1)
    chosen = args.programs.split(',') if args.programs else SAMPLERS
    for sampler in chosen:
        program = programs(A)[sampler]
        for batch_size in map(int, args.batch_sizes.split(',')):
            seeds = seed_batches(graph.num_cols, batch_size, args.batches)
            with torch.no_grad():
                candidates, auto = calls(program, A, seeds)
                times = compare(
                    candidates, args.rounds, clock=time.process_time
                )
                memory = peaks(program, A, seeds)
            best = {key: t.best * 1e3 / len(seeds) for key, t in times.items()}
            report.add(
                Path(name).resolve().parent.name if '/' in name else name,
                sampler,
                batch_size,
                *(f'{milliseconds:.2f}' for milliseconds in best.values()),
                auto.search.best,
                f'{best["alone"] / best["auto"]:.2f}x',
                '{:.1f} / {:.1f}'.format(*memory),
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--graphs', default='small')
    parser.add_argument('--programs', help='names, with commas between')
    parser.add_argument('--batch-sizes', default='64,1024')
    parser.add_argument('--batches', type=int, default=16)
    parser.add_argument('--rounds', type=int, default=9)
    parser.add_argument('--markdown', type=Path, help='write the table there')
    args = parser.parse_args()
    report = Report(
        f'Milliseconds of a batch in a super-batch: {machine()}',
        ['graph', 'sampler', 'seeds', 'alone']
        + [str(size) for size in SIZES]
        + ['auto', 'chosen', 'speed-up', 'MiB: 8 / half'],
    )
    for name in args.graphs.split(','):
        run(report, name, args)
    report.show()
    if args.markdown:
        args.markdown.write_text(report.markdown())


if __name__ == '__main__':
    main()
