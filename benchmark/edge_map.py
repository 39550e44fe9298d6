"""Time of generated edge kernels, compared with memory bandwidth.

Each case moves the minimum of bytes: values, indices and pointers are read
once, results written once. It is compared with the PyTorch operators that the
kernel replaces, and with a memory copy in the same run.

    python benchmark/edge_map.py
    python benchmark/edge_map.py --edges 1000000 --threads 1
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import torch
from harness import Report, compare, machine
from torch import Tensor

from torch_gsample.codegen import unit
from torch_gsample.codegen.edge_map import edge_map
from torch_gsample.codegen.expression import apply, operand
from torch_gsample.codegen.kernel import EdgeKernel
from torch_gsample.codegen.unit import Leaf

FLOAT, INT = torch.float32, torch.int32
EDGE, INDEX = Leaf('', unit.EDGE, FLOAT), Leaf('', unit.EDGE, INT)
POINTERS = Leaf('', unit.POINTERS, INT)
COLUMN = Leaf('', unit.DESTINATION, FLOAT)
X, Y = operand(0, FLOAT), operand(1, FLOAT)
SQUARE, SCALED = apply('mul', X, X), apply('mul', X, Y)

Case = tuple[EdgeKernel, list[Tensor], int, Callable[[], Tensor]]


def cases(edges: int, cols: int, rows: int) -> dict[str, Case]:
    """Returns kernels, their operands, and their PyTorch equivalents."""
    generator = torch.Generator().manual_seed(12)
    cut = torch.randint(edges, (cols - 1,), generator=generator).sort()[0]
    bounds = [torch.tensor([0]), cut, torch.tensor([edges])]
    indptr = torch.cat(bounds).int()
    index = torch.randint(rows, (edges,), generator=generator, dtype=INT)
    x, r, c = torch.rand(edges), torch.rand(rows), torch.rand(cols)
    column = torch.repeat_interleave(torch.arange(cols), indptr.diff())

    def total(size: int, place: Tensor, value: Tensor) -> Tensor:
        return value.new_zeros(size).index_add(0, place, value)

    gather = Leaf('', unit.EDGE, FLOAT, index=2)
    return {
        'sum(x * x) of columns': (
            EdgeKernel(edge_map(SQUARE, (EDGE, POINTERS), 'sum')),
            [x, indptr],
            0,
            lambda: total(cols, column, x * x),
        ),
        'sum(x * r[row]) of columns': (
            EdgeKernel(
                edge_map(SCALED, (EDGE, gather, INDEX, POINTERS), 'sum')
            ),
            [x, r, index, indptr],
            0,
            lambda: total(cols, column, x * r.index_select(0, index)),
        ),
        'sum(x * x) of rows': (
            EdgeKernel(edge_map(SQUARE, (EDGE, INDEX), 'sum', by=1)),
            [x, index],
            rows,
            lambda: total(rows, index, x * x),
        ),
        'x * c[column]': (
            EdgeKernel(edge_map(SCALED, (EDGE, COLUMN, POINTERS))),
            [x, c, indptr],
            0,
            lambda: x * c.index_select(0, column),
        ),
    }


def run(report: Report, args: argparse.Namespace, threads: int) -> None:
    torch.set_num_threads(threads)
    rows, cols = args.edges // 64, args.edges // args.degree
    source = torch.ones(args.edges)
    target = torch.empty_like(source)
    for name, case in cases(args.edges, cols, rows).items():
        kernel, operands, size, eager = case
        out = kernel(*operands, num_rows=size)
        assert torch.equal(out, eager())
        moved = sum(x.nbytes for x in [*operands, out])
        times = compare(
            {
                'kernel': lambda _, k=kernel, o=operands, s=size: k(
                    *o, num_rows=s
                ),
                'eager': lambda _, eager=eager: eager(),
                'copy': lambda _: target.copy_(source),
            },
            args.rounds,
        )
        copy = times['copy'].median / (2 * source.nbytes)
        seconds = times['kernel'].median
        report.add(
            name,
            threads,
            f'{seconds * 1e3:.1f}',
            f'{times["eager"].median * 1e3:.1f}',
            f'{moved / seconds / 1e9:.1f}',
            f'{1 / copy / 1e9:.1f}',
            f'{moved * copy / seconds:.0%}',
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--edges', type=int, default=1 << 24)
    parser.add_argument('--degree', type=int, default=16)
    parser.add_argument('--rounds', type=int, default=9)
    parser.add_argument('--threads', default='1,2')
    parser.add_argument('--markdown', type=Path, help='write the table there')
    args = parser.parse_args()
    report = Report(
        f'Generated kernels, {args.edges} edges, {args.degree} a column: '
        f'{machine()}',
        ['kernel', 'threads', 'ms', 'eager ms', 'GB/s', 'copy GB/s']
        + ['of the copy'],
    )
    for threads in args.threads.split(','):
        run(report, args, int(threads))
    report.show()
    if args.markdown:
        args.markdown.write_text(report.markdown())


if __name__ == '__main__':
    main()
