"""Times of compiled samplers, compared with eager ones.

Columns add passes: ``plain`` runs the captured program in its canonical form,
``compiled`` runs all passes. GraphSAGE is also compared with the operator that
samples all hops at once, alone and with the gather of edge values, which the
program also returns (``by hand``). ``heterogeneous`` is two hops over a
dictionary of five relations, ``walk`` ten steps of a loop, compared with the
operator of independent walks. ``overhead`` is the time of a call of
:func:`torch_gsample.compile` before and after the backend's function, for four
seeds of a tiny graph with eight nodes per layer; the time of the first
compilation is Dynamo's, without the backend's.

A second table has two equivalent orders of one program: values (or weights) of
an extract and then a selection, or the cheap order, which a user would write
who knows the compiler.

    python benchmark/compile.py --graphs small
    python benchmark/compile.py --graphs large --markdown results.md
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from algorithms import symmetric
from harness import Report, compare, machine, seed_batches
from neighbor import load_graph

import torch_gsample as gsample
from torch_gsample import CSC, Graph, SparseSample, algorithms, ops
from torch_gsample.compiler import backend
from torch_gsample.rng import make_key, program_scope

Call = Callable[[int], object]
BY_HAND = ('operator', 'by hand')
#: Untimed first calls: five of them measure layouts.
WARM_UP = 7


class Backend:
    """The backend, and the seconds spent in it and in its function."""

    compiling = 0.0
    running = 0.0

    def __call__(self, gm: Any, inputs: Any, **_: Any) -> Callable[..., Any]:
        start = time.perf_counter()
        made = backend(gm, inputs)
        self.compiling += time.perf_counter() - start

        def call(*args: Any) -> Any:
            start = time.perf_counter()
            out = made(*args)
            self.running = time.perf_counter() - start
            return out

        return call


def typed_graph(A: SparseSample) -> dict[tuple[str, str, str], SparseSample]:
    """Relations of three types of nodes: blocks of a matrix."""
    n = A.num_cols
    ids = {
        'paper': torch.arange(n // 2),
        'author': torch.arange(n // 2, n - n // 4),
        'venue': torch.arange(n - n // 4, n),
    }
    pairs = ['paper paper', 'author paper', 'paper author']
    pairs += ['venue paper', 'paper venue']
    out = {}
    for pair in pairs:
        src, dst = pair.split()
        block = A[ids[src], ids[dst]]
        out[src, 'to', dst] = SparseSample.from_csc(
            block.csc.indptr, block.csc.indices, None, block.num_rows
        )
    return out


def typed_hops(
    A: dict[tuple[str, str, str], SparseSample],
    seeds: dict[str, torch.Tensor],
    fanouts: list[int],
) -> list[dict[tuple[str, str, str], SparseSample]]:
    """Hops of a heterogeneous graph, as a user writes them."""
    none = torch.empty(0, dtype=torch.int64)
    frontier = {t: seeds.get(t, none) for (t, _, _) in A}
    layers = []
    for k in fanouts:
        layers.append(
            {
                r: M[:, frontier[r[2]]].individual_sample(k)
                for r, M in A.items()
            }
        )
        parts = {t: [ids] for t, ids in frontier.items()}
        for (src, _, _), S in layers[-1].items():
            parts[src].append(S.row())
        frontier = {t: torch.cat(p).unique() for t, p in parts.items()}
    return layers


def walk(A: SparseSample, nodes: torch.Tensor, length: int) -> torch.Tensor:
    """Steps of a walk, as a user writes them: walkers stay at dead ends."""
    out = [nodes]
    for _ in range(length):
        row, column = A[:, nodes].individual_sample(1).coo()
        nodes = nodes.clone()
        nodes[column] = row
        out.append(nodes)
    return torch.stack(out)


def programs(
    A: SparseSample, few: int = 512, many: int = 4000
) -> dict[str, Callable[..., Any]]:
    """The samplers, as functions of the graph and of seeds."""
    x = torch.rand(A.num_cols, 32)
    typed = typed_graph(A)
    num_papers = typed['paper', 'to', 'paper'].num_cols
    as_gcn, learned = algorithms.AsGCN(32), algorithms.PassSampler(32, 16)
    return {
        'GraphSAGE': lambda A, s: algorithms.graphsage(A, s, [25, 10]),
        'LADIES 512': lambda A, s: algorithms.ladies(A, s, [few] * 3),
        'LADIES 4000': lambda A, s: algorithms.ladies(A, s, [many] * 3),
        'FastGCN': lambda A, s: algorithms.fastgcn(A, s, [many] * 3),
        'AS-GCN': lambda A, s: as_gcn(A, s, [few] * 3, x),
        'PASS': lambda A, s: learned(A, s, [10, 10], x),
        'ShaDow': lambda A, s: algorithms.shadow(A, s, [10, 5]),
        'GraphSAINT': lambda A, s: algorithms.saint_walk(A, s, 3),
        'heterogeneous': lambda A, s: typed_hops(
            typed, {'paper': s % num_papers}, [10, 5]
        ),
        'walk': lambda A, s: walk(A, s, 10),
    }


def calls(
    program: Callable[..., Any], A: SparseSample, seeds: list[torch.Tensor]
) -> tuple[dict[str, Call], float]:
    """Returns the candidates, and the seconds of the first compilation."""
    torch._dynamo.reset()
    candidates = {'eager': program}
    # Two compilations of one function would share its recompile limit.
    for name, options in (('plain', {'passes': []}), ('compiled', {})):
        candidates[name] = torch.compile(
            lambda A, s: program(A, s),
            backend=backend,
            fullgraph=True,
            options=options,
        )
    for batch in seeds:
        torch._dynamo.decorators.mark_unbacked(batch, 0)
    start = time.perf_counter()
    with torch.no_grad():
        candidates['compiled'](A, seeds[0])
    seconds = time.perf_counter() - start

    def keyed(function: Callable[..., Any]) -> Call:
        def run(i: int) -> object:
            with program_scope(make_key(0, 0, i)), torch.no_grad():
                return function(A, seeds[i % len(seeds)])

        return run

    return {name: keyed(call) for name, call in candidates.items()}, seconds


def by_hand(A: SparseSample, seeds: list[torch.Tensor]) -> dict[str, Call]:
    """GraphSAGE without a program: its operator, and the edges' values."""
    columns = CSC(A.csc.indptr, A.csc.indices, A.shape[0])
    graph = Graph.from_csc(columns)

    def operator(i: int) -> ops.Sample:
        batch = seeds[i % len(seeds)]
        return ops.sample_neighbors(graph, batch, [25, 10], make_key(0, 0, i))

    def with_values(i: int) -> torch.Tensor:
        return A.values()[operator(i).edge]

    return dict(zip(BY_HAND, (operator, with_values), strict=True))


def walk_by_hand(
    A: SparseSample, seeds: list[torch.Tensor]
) -> dict[str, Call]:
    """The operator of walks, which are independent of each other."""

    def operator(i: int) -> torch.Tensor:
        with program_scope(make_key(0, 0, i)):
            return A.T.random_walk(seeds[i % len(seeds)], 10).nodes

    return {BY_HAND[0]: operator}


def overhead(name: str) -> tuple[float, float]:
    """Returns seconds of a call outside its operators, and of the backend."""
    row, col = torch.arange(64).repeat(4), torch.randint(64, (256,))
    A = SparseSample.from_coo(row, col, torch.rand(256), (64, 64))
    compiled, made = gsample.compile(programs(A, 8, 8)[name]), Backend()
    seeds, beside = torch.arange(4), []
    with (
        mock.patch('torch_gsample.compiler.compiled.backend', made),
        program_scope(make_key(0)),
        torch.no_grad(),
    ):
        for _ in range(401):
            start = time.perf_counter()
            kept = compiled(A, seeds)
            seconds = time.perf_counter() - start
            beside.append(seconds - made.running)
            del kept  # not within the time
    return statistics.median(beside[len(beside) // 2 :]), made.compiling


def run(report: Report, name: str, args: argparse.Namespace) -> None:
    graph = load_graph(name)
    value = symmetric(graph)
    A = SparseSample.from_csc(
        graph.indptr, graph.indices, value, graph.num_rows
    )
    A.to_csr()  # eager programs keep this layout: neither side pays for it
    torch.set_num_threads(args.threads)
    for sampler, program in programs(A).items():
        if args.programs and sampler not in args.programs.split(','):
            continue
        seeds = seed_batches(graph.num_cols, args.batch_size, args.rounds)
        candidates, seconds = calls(program, A, seeds)
        if sampler == 'GraphSAGE':
            candidates |= by_hand(A, seeds)
        if sampler == 'walk':
            candidates |= walk_by_hand(A, seeds)
        for i in range(WARM_UP):
            candidates['compiled'](i)
        times = compare(candidates, args.rounds)
        beside, backend_seconds = overhead(sampler)
        median = {key: t.median * 1e3 for key, t in times.items()}
        report.add(
            Path(name).resolve().parent.name if '/' in name else name,
            sampler,
            f'{median["eager"]:.1f}',
            f'{median["plain"]:.1f}',
            f'{median["compiled"]:.1f}',
            f'{median["eager"] / median["compiled"]:.2f}x',
            *(f'{median[k]:.1f}' if k in median else '-' for k in BY_HAND),
            f'{seconds:.1f}',
            f'{backend_seconds:.2f}',
            f'{beside * 1e6:.0f}',
        )


def orders(A: SparseSample) -> dict[str, tuple[Callable[..., Any], ...]]:
    """Programs that compute first, and programs that select first."""
    x = torch.rand(A.num_cols)
    degree = A.degree(1).to(torch.float32).clamp(min=1)
    W = A.div(degree, dim=1)

    def biased(A: SparseSample, s: torch.Tensor) -> SparseSample:
        return A[:, s].individual_sample(
            10, A[:, s].div(degree, dim=1).values()
        )

    return {
        'exp(A x)': (
            lambda A, s: torch.exp(A[:, s].mul(x, dim=1)).individual_sample(
                10
            ),
            lambda A, s: torch.exp(
                A[:, s].individual_sample(10).mul(x, dim=1)
            ),
        ),
        'A / degree as bias': (
            biased,
            lambda A, s: A[:, s].individual_sample(10, W[:, s].values()),
        ),
    }


def run_orders(report: Report, name: str, args: argparse.Namespace) -> None:
    """Measures both orders in turns."""
    graph = load_graph(name)
    value = symmetric(graph)
    A = SparseSample.from_csc(
        graph.indptr, graph.indices, value, graph.num_rows
    )
    torch.set_num_threads(args.threads)
    seeds = seed_batches(graph.num_cols, args.batch_size, args.rounds)
    for program, both in orders(A).items():
        candidates: dict[str, Call] = {}
        for order, function in zip(('first', 'last'), both, strict=True):
            made, _ = calls(function, A, seeds)
            candidates[f'eager {order}'] = made['eager']
            candidates[order] = made['compiled']
        for call in candidates.values():
            for i in range(WARM_UP):
                call(i)
        times = compare(candidates, args.rounds)
        least = {key: t.best * 1e3 for key, t in times.items()}
        report.add(
            name,
            program,
            *(f'{least[key]:.2f}' for key in candidates),
            f'{least["first"] / least["last"]:.2f}x',
        )


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """Returns the parser of the graphs, programs and options to measure."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument('--graphs', default='small')
    parser.add_argument(
        '--programs',
        help="names, with commas between; 'orders': the second table",
    )
    parser.add_argument('--batch-size', type=int, default=1024)
    parser.add_argument('--rounds', type=int, default=9)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--markdown', type=Path, help='write the table there')
    return parser


def main() -> None:
    args = parser_of(__doc__).parse_args()
    report = Report(
        f'Compiled samplers, {args.batch_size} seeds, {args.threads} '
        f'threads: {machine()}',
        ['graph', 'sampler', 'eager ms', 'plain ms', 'compiled ms']
        + ['speed-up', *(f'{name} ms' for name in BY_HAND)]
        + ['first compilation s', 'of it the backend s', 'overhead us'],
    )
    pairs = Report(
        f'Values first or selection first, {args.batch_size} seeds, least of '
        f'{args.rounds}, ms: {machine()}',
        ['graph', 'program', 'eager, values first', 'compiled']
        + ['eager, selection first', 'compiled', 'values / selection first'],
    )
    for name in args.graphs.split(','):
        if args.programs != 'orders':
            run(report, name, args)
        run_orders(pairs, name, args)
    reports = [pairs] if args.programs == 'orders' else [report, pairs]
    for item in reports:
        item.show()
    if args.markdown:
        texts = [item.markdown() for item in reports]
        args.markdown.write_text('\n'.join(texts))


if __name__ == '__main__':
    main()
