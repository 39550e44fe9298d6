"""What does each operation cost in each layout, as in Table 5 of gSampler?

Milliseconds of an operation on a graph, or on what is extracted of it, that is
stored as compressed columns (CSC), compressed rows (CSR) or a list of edges in
no order (COO). What an operation first has to convert is part of its time.

- ``columns``, ``rows``: extract those of the seeds from the graph;
- ``sum of columns``, ``sum of rows``: of the extracted columns' values;
- ``neighbours``: draw ten edges of each extracted column;
- ``nodes``: draw 512 rows of those with an edge, and keep their edges.

    python benchmark/layouts.py --graphs small,packages
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from algorithms import symmetric
from compile import parser_of
from harness import Report, compare, machine, seed_batches
from neighbor import load_graph
from torch import Tensor

from torch_gsample import ops
from torch_gsample.rng import make_key

FANOUT, NODES = 10, 512
LAYOUTS = ('CSC', 'CSR', 'COO')

Call = Callable[[int], object]


@dataclass
class Edges:
    """A matrix in all three layouts; values are in the order of each."""

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
    """Sums of what was extracted."""

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
    """Draws of what was extracted."""
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
    groups = extracts(graph, seeds), computes(sub), selects(sub)
    for operation, calls in (item for g in groups for item in g.items()):
        times = compare(calls, rounds)
        median = [times[layout].median * 1e3 for layout in LAYOUTS]
        best = LAYOUTS[median.index(min(median))]
        report.add(name, operation, *(f'{ms:.3f}' for ms in median), best)


def main() -> None:
    args = parser_of(__doc__).parse_args()
    torch.set_num_threads(args.threads)
    report = Report(
        f'Operations by layout, {args.batch_size} seeds, {args.threads} '
        f'threads: {machine()}',
        ['graph', 'operation', *(f'{name} ms' for name in LAYOUTS), 'least'],
    )
    for name in args.graphs.split(','):
        run(report, name, args.batch_size, args.rounds)
    report.show()
    if args.markdown:
        args.markdown.write_text(report.markdown())


if __name__ == '__main__':
    main()
