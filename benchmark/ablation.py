"""The gain of each group of passes, as in Figure 10 of gSampler.

Milliseconds of a batch: eager, and compiled with more and more passes.
``plain`` is the captured program; ``computation`` hoists and fuses, ``layout``
also selects layouts, ``super-batch`` also runs eight batches together ('-' if
batches cannot run together). With ``--without``, each pass is left out alone,
and its column is the ratio of a batch's time without the pass ('-' if the
program does not change). All variants come from one capture.

    python benchmark/ablation.py --graphs small
    python benchmark/ablation.py --graphs small --without
    python benchmark/ablation.py --graphs large --markdown results.md
"""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from algorithms import symmetric
from compile import WARM_UP, parser_of, programs
from harness import Report, compare, machine, seed_batches
from neighbor import load_graph

import torch_gsample as gsample
from torch_gsample import SparseSample
from torch_gsample.compiler.backend import optimize
from torch_gsample.compiler.compiled import Compiled
from torch_gsample.compiler.lowering import lower
from torch_gsample.compiler.options import Options
from torch_gsample.compiler.pipeline import PASSES
from torch_gsample.rng import make_key, program_scope

BATCHES = 8
#: Batches per round with ``--without``.
FEW = 2
COMPUTATION = [p.name for p in PASSES if p.name != 'select_layout']
STEPS = {'plain': [], 'computation': COMPUTATION, 'layout': None}
ALONE = [
    p.name for p in PASSES if p.name not in ('canonicalize', 'super_batch')
]

Call = Callable[[int], object]


def one_by_one(
    function: Callable[..., Any], A: SparseSample, seeds: list[torch.Tensor]
) -> Call:
    """Returns a function that samples all batches in sequence."""

    def run(i: int) -> object:
        out = []
        for j, batch in enumerate(seeds):
            with program_scope(make_key(0, i, j)):
                out.append(function(A, batch))
        return out

    return run


def group_by_group(
    program: Callable[..., Any], A: SparseSample, seeds: list[torch.Tensor]
) -> dict[str, Call]:
    """Returns the program with more and more passes."""

    def together(i: int) -> object:
        keys = [make_key(0, i, j) for j in range(BATCHES)]
        with program_scope(torch.cat(keys)):
            return batched(A, seeds)

    out = {'eager': one_by_one(program, A, seeds)}
    for name, passes in STEPS.items():
        options = {} if passes is None else {'passes': passes}
        compiled = gsample.compile(program, **options)
        out[name] = one_by_one(compiled, A, seeds)
    batched = gsample.super_batch(program, BATCHES)
    together(0)
    if any('several batches' in note for note in batched.notes):
        out['super-batch'] = together
    return out


class Variants:
    """A backend that compiles one capture with all passes, and without each.

    Dynamo's capture takes a second, the backend a tenth of it. A program that
    a pass does not change is not compiled without it.
    """

    def __init__(self) -> None:
        self.functions: dict[str, Callable[..., Any]] = {}
        self.chosen = 'all'

    def __call__(self, gm: Any, inputs: Any, **_: Any) -> Callable[..., Any]:
        program, everything = optimize(gm, Options())
        self.functions['all'] = lower(program)
        for name in ALONE:
            passes = tuple(p.name for p in PASSES if p.name != name)
            program, trace = optimize(gm, Options(passes=passes))
            if trace.text != everything.text:
                self.functions[name] = lower(program)
        return lambda *args: self.functions[self.chosen](*args)


def without_each(
    program: Callable[..., Any], A: SparseSample, seeds: list[torch.Tensor]
) -> dict[str, Call]:
    """Returns the program with all passes, and without each pass."""
    variants, few = Variants(), seeds[:FEW]
    run = one_by_one(Compiled(program, backend=variants), A, few)

    def call(i: int, name: str) -> object:
        variants.chosen = name
        return run(i)

    call(0, 'all')
    out = {name: partial(call, name=name) for name in variants.functions}
    for function in out.values():  # the first calls choose layouts
        for i in range(WARM_UP // FEW):
            function(i)
    return out


def run(report: Report, name: str, args: argparse.Namespace) -> None:
    graph = load_graph(name)
    A = SparseSample.from_csc(
        graph.indptr, graph.indices, symmetric(graph), graph.num_rows
    )
    torch.set_num_threads(args.threads)
    seeds = seed_batches(graph.num_cols, args.batch_size, BATCHES)
    make = without_each if args.without else group_by_group
    for sampler, program in programs(A).items():
        if args.programs and sampler not in args.programs.split(','):
            continue
        torch._dynamo.reset()
        with torch.no_grad():
            times = compare(make(program, A, seeds), args.rounds)
        batches = FEW if args.without else BATCHES
        median = {k: t.median * 1e3 / batches for k, t in times.items()}
        if args.without:
            ratios = {
                k: f'{t / median["all"]:.2f}x' for k, t in median.items()
            }
            cells = [f'{median["all"]:.2f}']
            cells += [ratios.get(k, '-') for k in ALONE]
        else:
            columns = 'eager', *STEPS, 'super-batch'
            cells = [
                f'{median[k]:.2f}' if k in median else '-' for k in columns
            ]
        report.add(name, sampler, *cells)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument('--without', action='store_true', help='each alone')
    args = parser.parse_args()
    title = 'Each pass left out' if args.without else 'Passes, group by group'
    report = Report(
        f'{title}, {args.batch_size} seeds, {args.threads} threads: '
        f'{machine()}',
        ['graph', 'left out of', 'all ms', *ALONE]
        if args.without
        else ['graph', 'ablation of', 'eager', *STEPS, 'super-batch'],
    )
    for name in args.graphs.split(','):
        run(report, name, args)
    report.show()
    if args.markdown:
        args.markdown.write_text(report.markdown())


if __name__ == '__main__':
    main()
