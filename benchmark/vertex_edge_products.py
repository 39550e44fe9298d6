"""Times of fused layers that multiply edge values, compared with PyG's.

The same layer with the same weights, forward and backward, in turns, on a
random graph, or one with few targets. Peaks are the growth of a separate
process over three such calls.

    python benchmark/vertex_edge_products.py --layers EdgeConv --channels 64

Rows are in the file of `--markdown` as soon as they are done.
"""

import argparse
import copy
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from harness import Report, compare, machine
from torch_geometric import nn as pyg

from torch_gsample import fuse

KINDS = ('fused', 'PyG')


def mlp(*widths: int) -> Any:
    """Returns an MLP with ReLU between its layers."""
    return pyg.MLP(list(widths), norm=None)


#: For each layer: its constructor, and whether it takes positions.
LAYERS: dict[str, tuple[Callable[[int], Any], bool]] = {
    'EdgeConv': (lambda c: pyg.EdgeConv(mlp(2 * c, c, c)), False),
    'PointNetConv': (lambda c: pyg.PointNetConv(mlp(c + 3, c, c)), True),
    'PointTransformerConv': (
        lambda c: pyg.PointTransformerConv(c, c, attn_nn=mlp(c, c, c)),
        True,
    ),
    'PointGNNConv': (
        lambda c: pyg.PointGNNConv(
            mlp(c, c, 3), mlp(c + 3, c, c), mlp(c, c, c)
        ),
        True,
    ),
}


def step_of(
    kind: str, name: str, channels: int, size: tuple[int, int, int]
) -> Callable[[int], object]:
    """Returns a call of a layer and of its backward.

    Args:
        kind (str): One of :data:`KINDS`.
        name (str): The layer.
        channels (int): Features, in and out.
        size (Tuple[int, int, int]): Vertices, those with in-edges, and edges.
    """
    torch.manual_seed(12)
    nodes, targets, edges = size
    make, has_positions = LAYERS[name]
    layer = make(channels)
    if kind == 'fused':
        model = torch.nn.ModuleList([copy.deepcopy(layer)])
        fuse(model, min_nodes=0, verbose=False)
        layer = model[0]
    x = torch.randn(nodes, channels, requires_grad=True)
    ends = torch.randint(nodes, (edges,)), torch.randint(targets, (edges,))
    args = [x, torch.stack(ends)]
    if has_positions:
        args.insert(1, torch.randn(nodes, 3))
    leaves = [x, *layer.parameters()]

    def step(_: int) -> object:
        out = layer(*args)
        return torch.autograd.grad(out, leaves, torch.ones_like(out))

    return step


def _high_water() -> int:
    """Returns this process's peak kB; ``ru_maxrss`` has its parent's."""
    lines = Path('/proc/self/status').read_text().splitlines()
    return next(int(x.split()[1]) for x in lines if x.startswith('VmHWM'))


def _peak(threads: int, what: tuple, found: Any) -> None:
    torch.set_num_threads(threads)
    step = step_of(*what)
    before = _high_water()
    for i in range(3):
        step(i)
    after = _high_water()
    found.put((after - before) / 1024)


def peak(threads: int, *what: Any) -> float:
    """Returns the MB by which a separate process grows."""
    context = multiprocessing.get_context('spawn')
    found = context.Queue()
    process = context.Process(target=_peak, args=(threads, what, found))
    process.start()
    process.join()
    return found.get() if process.exitcode == 0 else float('nan')


def main(arguments: list[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--layers', nargs='*', default=list(LAYERS))
    parser.add_argument('--channels', nargs='*', type=int, default=[64, 256])
    parser.add_argument('--nodes', type=int, default=100_000)
    parser.add_argument(
        '--targets', type=int, help='vertices with in-edges: all if not given'
    )
    parser.add_argument('--edges', type=int, default=1_000_000)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=60.0)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--markdown', type=Path, help='write the table there')
    args = parser.parse_args(arguments)
    torch.set_num_threads(args.threads)
    columns = ['layer', 'channels', 'fused ms', 'PyG ms', 'faster']
    columns += ['fused MB', 'PyG MB', 'less']
    title = f'Products at edges, forward and backward: {machine()}'
    report = Report(title, columns)
    size = args.nodes, args.targets or args.nodes, args.edges
    for name in args.layers:
        for channels in args.channels:
            what = name, channels, size
            steps = {kind: step_of(kind, *what) for kind in KINDS}
            times = compare(steps, args.rounds, max_seconds=args.seconds)
            ours, theirs = (1e3 * times[kind].median for kind in KINDS)
            del steps
            mb, other = (peak(args.threads, kind, *what) for kind in KINDS)
            report.add(
                *(name, channels, f'{ours:.0f}', f'{theirs:.0f}'),
                *(f'{theirs / ours:.1f}x', f'{mb:.0f}', f'{other:.0f}'),
                f'{other / max(mb, 1):.1f}x',
            )
            if args.markdown:
                args.markdown.write_text(report.markdown())
    report.show()


if __name__ == '__main__':
    main()
