"""Times of fused layers, compared with PyG's, eager and compiled.

The same layer with the same weights, forward, and forward with backward; the
peak of memory beyond the memory before; and a fused aggregation compared with
a memory copy. Each row is measured in one run, in turns.

    python benchmark/vertex.py --graphs packages --layers GAT --channels 64
    python benchmark/vertex.py --graphs graph.npz --no-compile

Candidates that do not fit in memory are skipped. Rows are in the file of
`--markdown` as soon as they are done.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from harness import Report, Timing, compare, copier, machine
from torch import Tensor
from torch_geometric.data import Data
from vertex_layers import (
    GRAPHS,
    KINDS,
    both,
    candidate,
    edges_of,
    graph_of,
    kinds_of,
)
from vertex_memory import fits, peak_alone

from torch_gsample.vertex import vertex_program

Table = dict[str, float | str]


def ready(
    kind: str, data: Data, what: tuple[str, int, int], x: Tensor, given: tuple
) -> Callable[..., Tensor] | str:
    """Returns a candidate that has run once, or why there is none."""
    if not fits(kind, data, what[0], what[1]):
        return 'too large'
    try:
        layer = candidate(kind, data, *what)
        both(layer, x, given)(0)
    except Exception as error:
        print(f'{kind}: {error!r:.200}')
        return 'failed'
    return layer


def times(
    layers: dict[str, Callable[..., Tensor]],
    x: Tensor,
    given: tuple,
    args: argparse.Namespace,
) -> tuple[dict[str, Timing], dict[str, Timing]]:
    """Measures forward, and forward with backward, in turns."""
    limits = {'rounds': args.rounds, 'max_seconds': args.seconds}
    with torch.no_grad():
        forward = compare(
            {
                kind: lambda _, layer=layer: layer(x, *given)
                for kind, layer in layers.items()
            },
            **limits,
        )
    calls = {kind: both(layer, x, given) for kind, layer in layers.items()}
    return forward, compare(calls, **limits)


def measure(
    report: Report, graph: str, data: Data, what: tuple, args: Any
) -> None:
    """Adds the row of a layer."""
    name, channels, heads = what
    given, _ = edges_of(name, data)
    x = torch.randn(data.num_nodes, channels, requires_grad=True)
    found = {
        kind: ready(kind, data, what, x, given)
        for kind in kinds_of(name, not args.no_compile)
    }
    reasons = {k: x for k, x in found.items() if isinstance(x, str)}
    layers = {k: x for k, x in found.items() if not isinstance(x, str)}
    cells = [Path(graph).stem, name, channels, heads]
    if 'fused' not in layers:
        report.add(*cells, *[listed(reasons)] * 2, '-', '-', '-', '-')
        return
    rows = []
    for timing in times(layers, x, given, args):
        row: Table = {k: 1e3 * t.median for k, t in timing.items()}
        rows.append(row)
        cells += [listed(row | reasons), ratio(row, KINDS)]
    del layers, found, x
    for first in args.memory:
        row = {}
        for kind in kinds_of(name, not args.no_compile):
            if kind not in reasons:
                is_first = first == 'first'
                mb = peak_alone(kind, data, what, args.threads, is_first)
                row[kind] = 'failed' if mb is None else mb
        less = ratio(row, ['PyG']), ratio(row, KINDS)
        cells += [listed(row | reasons), ' / '.join(less)]
    report.add(*cells)


def listed(row: Table) -> str:
    """Returns the values of all candidates."""
    cells = [row.get(kind, '-') for kind in KINDS]
    return ' / '.join(c if isinstance(c, str) else f'{c:.0f}' for c in cells)


def ratio(row: Table, others: Any) -> str:
    """Returns the ratio of the fastest other candidate to ours."""
    ours = row.get('fused')
    values = [row.get(kind) for kind in others if kind != 'fused']
    known = [value for value in values if isinstance(value, float)]
    if not isinstance(ours, float) or not known:
        return '-'
    return f'{min(known) / max(ours, 1e-3):.1f}x'


@vertex_program
def weighted(v):  # type: ignore
    return sum(e.w * e.src.h for e in v.inedges)


def bandwidth(data: Data, channels: int, rounds: int) -> str:
    """Compares an aggregation with a copy of the same number of bytes."""
    h = torch.randn(data.num_nodes, channels)
    w = torch.rand(data.num_edges)
    copy, size = copier()
    times = compare(
        {
            'fused': lambda _: weighted(data.edge_index, h=h, w=w),
            'copy': copy,
        },
        rounds,
    )
    # Rows of sources, weights, indices and ids of edges, rows of results.
    moved = data.num_edges * (4 * channels + 12) + h.nbytes
    rate = moved / times['fused'].median
    return (
        f'aggregation of {channels} features: {rate / 1e9:.1f} GB/s, '
        f'{rate * times["copy"].median / size:.0%} of a copy'
    )


def rows_of(args: argparse.Namespace) -> list[tuple[str, int, int]]:
    """Returns the requested layers, channels and heads."""
    return [
        (name, channels, heads)
        for name in args.layers
        for channels in args.channels
        for heads in (args.heads if name == 'GAT' else [1])
    ]


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--graphs', nargs='*', default=list(GRAPHS))
    parser.add_argument(
        '--layers', nargs='*', default=['GCN', 'GAT', 'APPNP', 'RGCN']
    )
    parser.add_argument(
        '--channels', nargs='*', type=int, default=[16, 64, 256]
    )
    parser.add_argument('--heads', nargs='*', type=int, default=[1, 8])
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument(
        '--seconds',
        type=float,
        default=60.0,
        help='no round begins after that long, but for the first three',
    )
    parser.add_argument('--no-compile', action='store_true')
    parser.add_argument(
        '--memory',
        nargs='*',
        choices=['warm', 'first'],
        default=['warm'],
        help='peaks of a call after one on a small graph, or of the first',
    )
    parser.add_argument('--no-bandwidth', action='store_true')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--markdown', type=Path, help='write the table there')
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    args = parsed(arguments)
    torch.set_num_threads(args.threads)
    columns = ['graph', 'layer', 'channels', 'heads', 'forward', 'faster']
    columns += ['with backward', 'faster']
    for first in args.memory:
        columns += [f'{first} peak MB', 'less than eager / any']
    report = Report(
        f'Fused layers and PyG, ms and MB ({" / ".join(KINDS)}): {machine()}',
        columns,
    )

    def save(*lines: str) -> None:
        if args.markdown:
            text = '\n'.join([report.markdown(), *lines])
            args.markdown.write_text(text)

    found: list[str] = []
    for graph in args.graphs:
        data = graph_of(graph)
        for what in rows_of(args):
            measure(report, graph, data, what, args)
            save(*found)
        if not args.no_bandwidth:
            rate = bandwidth(data, 64, args.rounds)
            found.append(f'{Path(graph).stem}: {rate}\n')
            print(found[-1])
            save(*found)
    report.show()


if __name__ == '__main__':
    main()
