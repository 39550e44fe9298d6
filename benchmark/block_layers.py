"""Time of a step of three fused layers, and of PyG's on the same blocks.

A batch of [15, 10, 5] around 1,024 packages with 100 features, forward and
backward: a model after `fuse` on exact blocks, PyG's layers called on these
blocks by hand, and the unchanged PyG model on all edges of the batch. They
take turns on one thread with the same weights; times are processor time.

    python benchmark/block_layers.py --markdown table.md

`products` is the fraction of the fused time in matrix products, `GFLOP` are
the operations of these products per step, fused and for PyG's layers on
blocks. A batch without blocks, or a model that computes whole batches, is an
error: the work would differ.
"""

import argparse
import copy
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from harness import Report, compare, machine
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode
from torch_geometric import nn as pyg

from torch_gsample import NeighborSampler, fuse
from torch_gsample.datasets import DebianPackages
from torch_gsample.fusion.forms import knows_blocks
from torch_gsample.loader import NeighborLoader

FEATURES, WIDTH, HEADS = 100, 128, 4
DEGREES = torch.tensor([0, 30_000, 20_000, 10_000, 5_000, 1_000])
_HEAD = WIDTH // HEADS
LAYERS: dict[str, Callable[[int], Any]] = {
    'GATConv': lambda c: pyg.GATConv(c, _HEAD, HEADS),
    'GATv2Conv': lambda c: pyg.GATv2Conv(c, _HEAD, HEADS),
    'TransformerConv': lambda c: pyg.TransformerConv(c, _HEAD, HEADS),
    'PNAConv': lambda c: pyg.PNAConv(
        *(c, WIDTH, ['mean', 'min', 'max', 'std']),
        *(['identity', 'amplification', 'attenuation'], DEGREES),
    ),
    'GCNConv': lambda c: pyg.GCNConv(c, WIDTH),
    'SAGEConv': lambda c: pyg.SAGEConv(c, WIDTH),
}
#: Layers with one feature tensor as input, of which they compute a part.
_SQUARE = pyg.GCNConv, pyg.PNAConv


class Model(nn.Module):
    """Three layers.

    Args:
        make (Callable): Makes a layer of some features.
    """

    def __init__(self, make: Callable[[int], Any]):
        super().__init__()
        widths = FEATURES, WIDTH, WIDTH
        self.layers = nn.ModuleList([make(width) for width in widths])

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        """Returns a row for each vertex."""
        for layer in self.layers:
            x = layer(x, edge_index).relu()
        return x

    def on_blocks(self, x: Tensor, blocks: Any) -> Tensor:
        """Returns a row for each seed."""
        for layer, (edges, rows) in zip(self.layers, blocks, strict=True):
            given = x if isinstance(layer, _SQUARE) else (x, x[:rows])
            x = layer(given, edges)[:rows].relu()
        return x


def batch_of(seeds: int) -> Any:
    """Returns a batch with features."""
    data = DebianPackages(homogeneous=True)[0]
    make = torch.Generator().manual_seed(12)
    data.x = torch.randn(data.num_nodes, FEATURES, generator=make)
    sampler = NeighborSampler(data, [15, 10, 5], seed=12)
    loader = NeighborLoader(
        data, sampler=sampler, batch_size=seeds, shuffle=True
    )
    marking = Model(LAYERS['SAGEConv'])
    fuse(marking, verbose=False)  # edges know blocks while such a model lives
    return next(iter(loader))


def steps_of(
    make: Callable[[int], Any], batch: Any, seeds: int
) -> dict[str, Callable[[int], object]]:
    """Returns the compared steps by name.

    Args:
        make (Callable): Makes a layer of some features.
        batch (Any): The batch.
        seeds (int): Its number of seeds.

    Raises:
        ValueError: If the fused model would compute more than blocks.
    """
    edges = batch.edge_index
    if not knows_blocks(edges):
        raise ValueError(
            f"block_layers: 'batch' must know its blocks, drawn while a fused "
            f'model is alive (got edges of type {type(edges).__name__})'
        )
    torch.manual_seed(12)
    theirs = Model(make)
    ours = copy.deepcopy(theirs)
    fusion = fuse(ours, min_nodes=0, verbose=False)
    ours(batch.x, edges)
    report = fusion.report()
    if report.count('exact block') < len(ours.layers):
        raise ValueError(
            f'block_layers: each layer must compute its block (got {report})'
        )
    plain = torch.Tensor(edges).as_subclass(torch.Tensor).clone()
    blocks = [
        (block.edge_index.contiguous(), block.num_dst)
        for block in batch.blocks
    ]

    def step_of(model: Model, call: Callable[[], Tensor]) -> Any:
        def step(_: int) -> object:
            loss = call()[:seeds].square().mean()
            return torch.autograd.grad(loss, list(model.parameters()))

        return step

    return {
        'fused': step_of(ours, lambda: ours(batch.x, edges)),
        'blocks': step_of(theirs, lambda: theirs.on_blocks(batch.x, blocks)),
        'PyG': step_of(theirs, lambda: theirs(batch.x, plain)),
    }


def products(step: Callable[[int], object]) -> float:
    """Returns the fraction of a step spent in matrix products."""
    with torch.profiler.profile() as profile:
        step(0)
    events = profile.key_averages()
    names = 'aten::mm', 'aten::addmm', 'aten::bmm'
    own = sum(e.self_cpu_time_total for e in events if e.key in names)
    return own / sum(e.self_cpu_time_total for e in events)


def operations(step: Callable[[int], object]) -> str:
    """Returns the operations of a step's products, in billions."""
    with FlopCounterMode(display=False) as counter:
        step(0)
    return f'{counter.get_total_flops() / 1e9:.3g}'


def main(arguments: list[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--layers', nargs='*', default=list(LAYERS))
    parser.add_argument('--seeds', type=int, default=1024)
    parser.add_argument('--rounds', type=int, default=9)
    parser.add_argument('--seconds', type=float, default=20.0)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--markdown', type=Path, help='write the table there')
    args = parser.parse_args(arguments)
    torch.set_num_threads(args.threads)
    batch = batch_of(args.seeds)
    columns = ['layer', 'fused ms', 'PyG on blocks ms', 'PyG ms', 'blocks']
    columns += ['PyG', 'products', 'GFLOP', 'load']
    report = Report(f'Steps on exact blocks: {machine()}', columns)
    for name in args.layers:
        steps = steps_of(LAYERS[name], batch, args.seeds)
        share = [products(steps['fused']) for _ in range(2)][1]
        work = [operations(steps[k]) for k in ('fused', 'blocks')]
        times = compare(
            steps,
            args.rounds,
            clock=time.process_time,
            max_seconds=args.seconds,
        )
        fused, blocks, whole = (1e3 * times[k].median for k in steps)
        report.add(
            *(name, f'{fused:.3g}', f'{blocks:.3g}', f'{whole:.3g}'),
            *(f'{blocks / fused:.2f}x', f'{whole / fused:.2f}x'),
            *(f'{share:.0%}', ' / '.join(work), round(os.getloadavg()[0], 1)),
        )
        report.show()
    if args.markdown:
        args.markdown.write_text(report.markdown())


if __name__ == '__main__':
    main()
