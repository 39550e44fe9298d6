"""Time of a step of three fused layers, and of PyG's on the same blocks.

A batch of [15, 10, 5] around 1,024 packages with 100 features, forward and
backward: a model after `fuse` on exact blocks, PyG's layers called on these
blocks by hand, and the unchanged PyG model on all edges of the batch. They
take turns on one thread with the same weights; times are processor time.

    python benchmark/block_layers.py --markdown table.md

Layers of `NORMALISED` and `HOPS` need degrees or edges that PyG's layers do
not find in a block: the third column has the fused model on all edges instead.
Those of `HOPS` are a model of one layer, which reads three hops.

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
#: Layers that normalise by degrees.
NORMALISED: dict[str, Callable[[int], Any]] = {
    'LGConv': lambda c: Behind(c, pyg.LGConv()),
    'GCN2Conv': lambda c: Behind(c, pyg.GCN2Conv(WIDTH, 0.1), 2),
    'FAConv': lambda c: Behind(c, pyg.FAConv(WIDTH), 2),
    'ARMAConv': lambda c: pyg.ARMAConv(c, WIDTH),
    'EGConv': lambda c: pyg.EGConv(c, WIDTH, ['symnorm'], HEADS),
}
#: Layers of three hops.
HOPS: dict[str, Callable[[int], Any]] = {
    'SGConv': lambda c: Behind(c, pyg.SGConv(WIDTH, WIDTH, 3)),
    'SSGConv': lambda c: Behind(c, pyg.SSGConv(WIDTH, WIDTH, 0.1, 3)),
    'TAGConv': lambda c: Behind(c, pyg.TAGConv(WIDTH, WIDTH, 3)),
    'APPNP': lambda c: Behind(c, pyg.APPNP(3, 0.1)),
    'MixHopConv': lambda c: Behind(c, pyg.MixHopConv(WIDTH, 64, [0, 1, 2, 3])),
}
#: Layers with one feature tensor as input, of which they compute a part.
_SQUARE = pyg.GCNConv, pyg.PNAConv


class Behind(nn.Module):
    """A layer of some features after a linear one.

    Args:
        channels (int): The features.
        conv (MessagePassing): The layer.
        times (int): How often it takes them, with different meanings.
    """

    def __init__(self, channels: int, conv: Any, times: int = 1):
        super().__init__()
        self.lin, self.conv = nn.Linear(channels, WIDTH), conv
        self.times = times

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        """Returns a row for each vertex."""
        return self.conv(*[self.lin(x)] * self.times, edge_index)


class Model(nn.Module):
    """Layers.

    Args:
        make (Callable): Makes a layer of some features.
        count (int, optional): Number of layers.
    """

    def __init__(self, make: Callable[[int], Any], count: int = 3):
        super().__init__()
        widths = (FEATURES, WIDTH, WIDTH)[:count]
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
    make: Callable[[int], Any],
    batch: Any,
    seeds: int,
    count: int = 3,
    is_exact: bool = True,
) -> dict[str, Callable[[int], object]]:
    """Returns the compared steps by name.

    Args:
        make (Callable): Makes a layer of some features.
        batch (Any): The batch.
        seeds (int): Its number of seeds.
        count (int, optional): Number of layers.
        is_exact (bool, optional): Whether PyG's layers on blocks compute the
            same; otherwise, the fused model runs on all edges.

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
    theirs = Model(make, count)
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
            parameters = list(model.parameters())
            return torch.autograd.grad(loss, parameters, allow_unused=True)

        return step

    return {
        'fused': step_of(ours, lambda: ours(batch.x, edges)),
        'blocks': step_of(theirs, lambda: theirs.on_blocks(batch.x, blocks))
        if is_exact
        else step_of(ours, lambda: ours(batch.x, plain)),
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
    known = LAYERS | NORMALISED | HOPS
    parser.add_argument('--layers', nargs='*', default=list(known))
    parser.add_argument('--seeds', type=int, default=1024)
    parser.add_argument('--rounds', type=int, default=9)
    parser.add_argument('--seconds', type=float, default=20.0)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--markdown', type=Path, help='write the table there')
    args = parser.parse_args(arguments)
    torch.set_num_threads(args.threads)
    batch = batch_of(args.seeds)
    columns = ['layer', 'fused ms', 'on blocks or all', 'PyG ms', 'blocks']
    columns += ['PyG', 'products', 'GFLOP', 'load']
    report = Report(f'Steps on exact blocks: {machine()}', columns)
    for name in args.layers:
        count, is_exact = 1 if name in HOPS else 3, name in LAYERS
        steps = steps_of(known[name], batch, args.seeds, count, is_exact)
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
