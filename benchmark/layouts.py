"""Cost of each operation in each layout, as in Table 5 of gSampler.

Milliseconds of an operation on a graph, or on an extract of it, stored as
compressed columns (CSC), compressed rows (CSR) or an unordered list of edges
(COO). Conversions that an operation needs first are part of its time.

- ``columns``, ``rows``: extract those of the seeds from the graph;
- ``sum of columns``, ``sum of rows``: of the extracted columns' values;
- ``neighbours``: draw ten edges of each extracted column;
- ``nodes``: draw 512 rows of those with an edge, and keep their edges.

``chosen`` lists the layouts that ``select_layout`` selects in a program of
that operation alone. A second table has programs whose layouts are selected
together: as written (by column), with the pass, and the selected layouts.

    python benchmark/layouts.py --graphs small,packages
    python benchmark/layouts.py --programs together
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from algorithms import symmetric
from compile import WARM_UP, parser_of
from harness import Report, compare, machine, seed_batches
from neighbor import load_graph
from shelf import keyed
from torch import Tensor

import torch_gsample as gsample
from torch_gsample import SparseSample, ops
from torch_gsample.rng import make_key

FANOUT, NODES = 10, 512
LAYOUTS = ('CSC', 'CSR', 'COO')

Call = Callable[[int], object]


@dataclass
class Edges:
    """A matrix in all three layouts; values have the order of each."""

    num_rows: int
    num_cols: int
    csc: tuple[Tensor, Tensor, Tensor]
    csr: tuple[Tensor, Tensor, Tensor]
    coo: tuple[Tensor, Tensor, Tensor]

    @classmethod
    def of(
        cls,
        row: Tensor,
        col: Tensor,
        value: Tensor,
        num_rows: int,
        num_cols: int,
    ) -> 'Edges':
        order = torch.randperm(row.numel())
        row, col, value = row[order], col[order], value[order]
        indptr, indices, edge = ops.coo_to_csc(row, col, num_rows, num_cols)
        csc = indptr, indices, value[edge]
        indptr, indices, edge = ops.coo_to_csc(col, row, num_cols, num_rows)
        csr = indptr, indices, value[edge]
        return cls(num_rows, num_cols, csc, csr, (row, col, value))


def expand(indptr: Tensor) -> Tensor:
    """The column of each edge in compressed columns (or row, in rows)."""
    return torch.repeat_interleave(indptr.diff())


def summed(place: Tensor, value: Tensor, size: int) -> Tensor:
    return value.new_zeros(size).index_add_(0, place, value)


def extracts(graph: Edges, seeds: list[Tensor]) -> dict[str, dict[str, Call]]:
    """Columns and rows of the graph."""

    def pick(i: int) -> Tensor:
        return seeds[i % len(seeds)]

    def near(compressed: tuple[Tensor, ...]) -> Call:
        return lambda i: ops.slice_cols(*compressed[:2], pick(i))

    def search(compressed: tuple[Tensor, ...], size: int) -> Call:
        return lambda i: ops.slice_rows(*compressed[:2], size, pick(i))

    def mask(ids: Tensor, other: Tensor, size: int) -> Call:
        def call(i: int) -> object:
            held = torch.zeros(size, dtype=torch.bool)
            held[pick(i)] = True
            edge = held[ids].nonzero().flatten()
            return ids[edge], other[edge], edge

        return call

    row, col, _ = graph.coo
    return {
        'columns': {
            'CSC': near(graph.csc),
            'CSR': search(graph.csr, graph.num_cols),
            'COO': mask(col, row, graph.num_cols),
        },
        'rows': {
            'CSC': search(graph.csc, graph.num_rows),
            'CSR': near(graph.csr),
            'COO': mask(row, col, graph.num_rows),
        },
    }


def computes(sub: Edges) -> dict[str, dict[str, Call]]:
    """Sums of an extract."""

    def along(compressed: tuple[Tensor, ...]) -> Call:
        indptr, _, value = compressed
        return lambda _: ops.sum_columns(indptr, value)

    def across(place: Tensor, value: Tensor, size: int) -> Call:
        return lambda _: summed(place, value, size)

    row, col, value = sub.coo
    return {
        'sum of columns': {
            'CSC': along(sub.csc),
            'CSR': across(*sub.csr[1:], sub.num_cols),
            'COO': across(col, value, sub.num_cols),
        },
        'sum of rows': {
            'CSC': across(*sub.csc[1:], sub.num_rows),
            'CSR': along(sub.csr),
            'COO': across(row, value, sub.num_rows),
        },
    }


def selects(sub: Edges) -> dict[str, dict[str, Call]]:
    """Draws from an extract."""
    sizes = sub.num_rows, sub.num_cols

    def edges_of(layout: str) -> tuple[Tensor, Tensor]:
        if layout == 'COO':
            return sub.coo[:2]
        indptr, indices, _ = sub.csc if layout == 'CSC' else sub.csr
        ends = indices, expand(indptr)
        return ends if layout == 'CSC' else ends[::-1]

    def neighbours(layout: str) -> Call:
        def call(i: int) -> object:
            indptr = sub.csc[0]
            if layout != 'CSC':
                indptr, _, _ = ops.coo_to_csc(*edges_of(layout), *sizes)
            return ops.sample_columns(indptr, FANOUT, key=make_key(0, 0, i))

        return call

    def nodes(layout: str) -> Call:
        def call(i: int) -> object:
            if layout == 'CSR':
                held = sub.csr[0].diff() > 0
            else:
                held = torch.zeros(sub.num_rows, dtype=torch.bool)
                held[sub.csc[1] if layout == 'CSC' else sub.coo[0]] = True
            drawn = held.float().multinomial(NODES, replacement=True).unique()
            if layout == 'CSR':
                return ops.slice_cols(*sub.csr[:2], drawn)
            if layout == 'CSC':
                return ops.slice_rows(*sub.csc[:2], sub.num_rows, drawn)
            held = torch.zeros(sub.num_rows, dtype=torch.bool)
            held[drawn] = True
            return held[sub.coo[0]].nonzero()

        return call

    return {
        name: {layout: make(layout) for layout in LAYOUTS}
        for name, make in (('neighbours', neighbours), ('nodes', nodes))
    }


#: Programs of one operation each.
OPERATIONS = {
    'columns': lambda A, s: A[:, s].to_edge_index(),
    'rows': lambda A, s: A[s, :].to_edge_index(),
    'sum of columns': lambda A, s: A[:, s].sum(0),
    'sum of rows': lambda A, s: A[:, s].sum(1),
    'neighbours': lambda A, s: A[:, s].individual_sample(FANOUT),
    'nodes': lambda A, s: A[:, s].collective_sample(NODES),
}
#: Programs that slice a slice, or rows.
PROGRAMS = {
    'A[s, :]': lambda A, s: A[s, :],
    'edges of A[s, :]': lambda A, s: A[s, :].to_edge_index(),
    'mean of A[s, :]': lambda A, s: A[s, :].mean(1),
    'A[s, :][:, s]': lambda A, s: A[s, :][:, s].to_edge_index(),
    'rows of A[s, :], by weight': lambda A, s: A[s, :].collective_sample(
        NODES // 2, A[s, :].sum(1)
    ),
    '16 times rows of A[:, s]': lambda A, s: [
        A[:, s][some, :].sum(1) for some in s.view(16, -1)
    ],
    '16 times rows of a sample': lambda A, s: [
        A[:, s].individual_sample(FANOUT)[some, :].sum(1)
        for some in s.view(16, -1)
    ],
}


def chosen(program: Callable[..., object], A: SparseSample, s: Tensor) -> str:
    """The layouts of the matrices of a program, in order."""
    shown = gsample.explain(program, A, s)
    steps = [x for x in shown.trace.steps if x.name == 'select_layout']
    lines = [line for step in steps for line in step.notes]
    if 'layouts[0]: csc' in shown.choices:
        return 'CSC (measured)'
    found = [
        line.split(': ')[1].partition(',')[0].upper()
        + ('>CSC' if 'converted to csc' in line else '')
        for line in lines
        if 'together' in line or 'draws' in line
    ]
    return '/'.join(dict.fromkeys(found)) or 'CSC'


def run_programs(
    report: Report, name: str, batch_size: int, rounds: int
) -> None:
    """Measures programs as written and as chosen, in turns."""
    loaded = load_graph(name)
    value = symmetric(loaded)
    A = SparseSample.from_csc(
        loaded.indptr, loaded.indices, value, loaded.num_rows
    )
    seeds = seed_batches(loaded.num_cols, batch_size - batch_size % 16, rounds)
    for program, function in PROGRAMS.items():
        torch._dynamo.reset()
        calls = {
            layout: keyed(
                gsample.compile(
                    lambda A, s, function=function: function(A, s),
                    layout=layout,
                ),
                A,
                seeds,
            )
            for layout in ('csc', 'auto')
        }
        calls['eager'] = keyed(function, A, seeds)
        with torch.no_grad():
            for call in calls.values():
                for i in range(WARM_UP):
                    call(i)
            times = compare(calls, rounds)
            labels = chosen(function, A, seeds[0])
        eager, csc, auto = (
            times[key].median * 1e3 for key in ('eager', 'csc', 'auto')
        )
        least = times['csc'].best / times['auto'].best
        report.add(
            name,
            program,
            *(f'{ms:.2f}' for ms in (eager, csc, auto)),
            f'{csc / auto:.2f}x',
            f'{least:.2f}x',
            labels,
        )


def run(report: Report, name: str, batch_size: int, rounds: int) -> None:
    loaded = load_graph(name)
    sizes = loaded.num_rows, loaded.num_cols
    col, value = expand(loaded.indptr), symmetric(loaded)
    graph = Edges.of(loaded.indices.long(), col, value, *sizes)
    seeds = seed_batches(loaded.num_cols, batch_size, rounds)
    indptr, indices, edge = ops.slice_cols(*graph.csc[:2], seeds[0])
    sub = Edges.of(
        indices.long(),
        expand(indptr),
        graph.csc[2][edge],
        graph.num_rows,
        batch_size,
    )
    A = SparseSample.from_csc(
        loaded.indptr, loaded.indices, value, loaded.num_rows
    )
    groups = extracts(graph, seeds), computes(sub), selects(sub)
    for operation, calls in (item for g in groups for item in g.items()):
        times = compare(calls, rounds)
        median = [times[layout].median * 1e3 for layout in LAYOUTS]
        best = LAYOUTS[median.index(min(median))]
        with torch.no_grad():
            layout = chosen(OPERATIONS[operation], A, seeds[0])
        cells = *(f'{ms:.3f}' for ms in median), best, layout
        report.add(name, operation, *cells)


def main() -> None:
    args = parser_of(__doc__).parse_args()
    torch.set_num_threads(args.threads)
    report = Report(
        f'Operations by layout, {args.batch_size} seeds, {args.threads} '
        f'threads: {machine()}',
        ['graph', 'operation', *(f'{name} ms' for name in LAYOUTS), 'least']
        + ['chosen'],
    )
    pairs = Report(
        f'Layouts chosen together, {args.batch_size} seeds: {machine()}',
        ['graph', 'program', 'eager ms', 'by column ms', 'chosen ms']
        + ['median', 'least', 'layouts'],
    )
    for name in args.graphs.split(','):
        if args.programs != 'together':
            run(report, name, args.batch_size, args.rounds)
        run_programs(pairs, name, args.batch_size, args.rounds)
    reports = [pairs] if args.programs == 'together' else [report, pairs]
    for item in reports:
        item.show()
    if args.markdown:
        texts = [item.markdown() for item in reports]
        args.markdown.write_text('\n'.join(texts))


if __name__ == '__main__':
    main()
