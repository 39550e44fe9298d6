"""What does a training step cost, and whose is the time?

A model of several layers over sampled batches, forward and backward, in turns:

- `PyG`: its layers over the whole batch, as everybody writes them;
- `PyG, trimmed`: with PyG's `trim_to_layer`, which is not exact for GCN;
- `PyG on blocks`: its layers on `batch.blocks` (GCN's take none);
- `fused`: `torch_gsample.vertex.nn` over the whole batch;
- `fused on blocks`: the same on `batch.blocks`;
- `fuse(model)`: PyG's model, as it was written, after `torch_gsample.fuse`;
- `products`: the matrix products of `fused on blocks` alone.

Batches are made before, so that all take the same, and their features are
gathered: a loader that prefetches hides that.

    python benchmark/epoch.py --graphs packages --models SAGE,GAT --threads 1,2
    python benchmark/epoch.py --graphs large --batches 2
"""

import argparse
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from harness import Report, compare, machine
from torch import Tensor
from torch_geometric import nn as pyg
from torch_geometric import transforms
from torch_geometric.data import Data
from torch_geometric.utils import trim_to_layer

import torch_gsample
from torch_gsample.datasets import DebianPackages, power_law
from torch_gsample.loader import NeighborLoader
from torch_gsample.loader.batch_edge_index import reading_marks
from torch_gsample.vertex import nn

Forward = Callable[[torch.nn.ModuleList, Any, list[Any]], Tensor]


def packages(num_features: int) -> Data:
    """Returns Debian's packages, both ways, with relations."""
    typed = transforms.ToUndirected()(DebianPackages()[0])
    data = typed.to_homogeneous(node_attrs=[], edge_attrs=[])
    data.x = torch.randn(data.num_nodes, num_features)
    return data


def large(num_features: int) -> Data:
    """Returns 1.5 M nodes and 30 M edges."""
    graph = power_law(1_500_000, 30_000_000, 20_000)
    edge_index = torch.stack([graph.indices, graph.col()]).long()
    edge_type = edge_index.sum(0) % 8
    x = torch.randn(1_500_000, num_features)
    return Data(x=x, edge_index=edge_index, edge_type=edge_type)


GRAPHS = {'packages': packages, 'large': large}


def layer(module: Any, name: str, sizes: tuple[int, int], types: int) -> Any:
    """Returns a layer of a model."""
    if name == 'GAT':
        return module.GATConv(sizes[0], sizes[1] // 4, heads=4)
    if name == 'RGCN':
        return module.RGCNConv(*sizes, types)
    return getattr(module, f'{name}Conv')(*sizes)


def whole(convs: torch.nn.ModuleList, batch: Any, more: list[Any]) -> Tensor:
    x = batch.x
    for conv in convs:
        x = conv(x, batch.edge_index, *more).relu()
    return x


def trimmed(convs: torch.nn.ModuleList, batch: Any, more: list[Any]) -> Tensor:
    x, edge_index, edge_attr = batch.x, batch.edge_index, (more or [None])[0]
    counts = batch.num_sampled_nodes, batch.num_sampled_edges
    for i, conv in enumerate(convs):
        x, edge_index, edge_attr = trim_to_layer(
            i, *counts, x, edge_index, edge_attr
        )
        x = conv(x, edge_index, *([edge_attr] if more else [])).relu()
    return x


def blocks(convs: torch.nn.ModuleList, batch: Any, more: list[Any]) -> Tensor:
    x = batch.x
    for conv, block in zip(convs, batch.blocks, strict=True):
        x = conv(x, block, *more).relu()
    return x


def pairs(convs: torch.nn.ModuleList, batch: Any, more: list[Any]) -> Tensor:
    x = batch.x
    for conv, block in zip(convs, batch.blocks, strict=True):
        edges = [value[: block.num_edges] for value in more]
        x = conv(block.pair(x), block.edge_index, *edges).relu()
    return x


class Model(torch.nn.Module):
    """PyG's layers, as everybody writes them."""

    def __init__(self, convs: torch.nn.ModuleList):
        super().__init__()
        self.convs = convs

    def forward(self, x: Tensor, edge_index: Tensor, *more: Tensor) -> Tensor:
        for conv in self.convs:
            x = conv(x, edge_index, *more).relu()
        return x


def fused_model(convs: torch.nn.ModuleList) -> Forward:
    """Returns the call of an unchanged model after `fuse`."""
    model = Model(convs)
    torch_gsample.fuse(model)

    def call(_: Any, batch: Any, more: list[Any]) -> Tensor:
        out: Tensor = model(batch.x, batch.edge_index, *more)
        return out

    return call


def products(
    batch: Any, sizes: list[tuple[int, int]], num: int
) -> Callable[[int], object]:
    """Returns the matrix products of a step on blocks."""
    rows = [(block.num_src, block.num_dst) for block in batch.blocks]
    parts = [
        (torch.randn(r[0] if num == 1 else r[1], n, requires_grad=i > 0), n, m)
        for i, (r, (n, m)) in enumerate(zip(rows, sizes, strict=True))
    ]
    weights = [
        [torch.randn(n, m, requires_grad=True) for _ in range(num)]
        for _, n, m in parts
    ]

    def call(_: int) -> object:
        for (x, _, _), several in zip(parts, weights, strict=True):
            for weight in several:
                (x @ weight).backward(torch.ones(x.shape[0], weight.shape[1]))
        return None

    return call


def candidates(
    name: str,
    batches: list[Any],
    marked: list[Any],
    sizes: list[tuple[int, int]],
    args: Any,
) -> dict[str, Callable[[int], object]]:
    """Returns the step of each candidate.

    Those of ``marked`` are the same batches, as fused models get them.
    """
    types = 1 + int(max(int(batch.edge_type.max()) for batch in batches))
    ways: dict[str, tuple[Any, Forward]] = {
        'PyG': (pyg, whole),
        'PyG, trimmed': (pyg, trimmed),
        'PyG on blocks': (pyg, pairs),
        'fused': (nn, whole),
        'fused on blocks': (nn, blocks),
        'fuse(model)': (pyg, whole),
    }
    if name == 'GCN':
        del ways['PyG on blocks']
    steps: dict[str, Callable[[int], object]] = {}
    for way, (module, forward) in ways.items():
        torch.manual_seed(0)
        convs = torch.nn.ModuleList(
            layer(module, name, size, types) for size in sizes
        )
        given = batches
        if way == 'fuse(model)':
            forward, given = fused_model(convs), marked

        def step(
            i: int, convs: Any = convs, call: Any = forward, given: Any = given
        ) -> None:
            batch = given[i % len(given)]
            more = [batch.edge_type] if name == 'RGCN' else []
            out = call(convs, batch, more)[: args.batch_size]
            convs.zero_grad()
            out.square().mean().backward()

        steps[way] = step
    steps['products'] = products(batches[0], sizes, 1 + (name == 'SAGE'))
    return steps


def measure(report: Report, graph: str, args: argparse.Namespace) -> None:
    """Adds the rows of a graph."""
    data = GRAPHS[graph](args.features)
    loader = NeighborLoader(
        data, args.fanouts, batch_size=args.batch_size, shuffle=True, seed=12
    )
    batches = list(islice(loader, args.batches))
    loader.set_epoch(0)
    with reading_marks():
        marked = list(islice(loader, args.batches))
    for name in args.models:
        for hidden in args.hidden:
            sizes = [(args.features, hidden)]
            sizes += [(hidden, hidden)] * (len(args.fanouts) - 1)
            for threads in args.threads:
                torch.set_num_threads(threads)
                times = compare(
                    candidates(name, batches, marked, sizes, args),
                    rounds=args.rounds,
                    max_seconds=args.seconds,
                )
                first = times['PyG'].median
                for way, time in times.items():
                    report.add(
                        *(graph, name, hidden, threads, way),
                        *(time.best * 1e3, time.median * 1e3),
                        first / time.median,
                    )


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)

    def several(kind: Any) -> Callable[[str], list[Any]]:
        return lambda text: [kind(part) for part in text.split(',')]

    parser.add_argument('--graphs', type=several(str), default=['packages'])
    parser.add_argument(
        '--models', type=several(str), default=['SAGE', 'GCN', 'GAT', 'RGCN']
    )
    parser.add_argument('--hidden', type=several(int), default=[128])
    parser.add_argument('--features', type=int, default=100)
    parser.add_argument('--fanouts', type=several(int), default=[15, 10, 5])
    parser.add_argument('--batch-size', type=int, default=1024)
    parser.add_argument('--batches', type=int, default=4)
    parser.add_argument('--threads', type=several(int), default=[1, 2])
    parser.add_argument('--rounds', type=int, default=9)
    parser.add_argument('--seconds', type=float, default=60)
    parser.add_argument('--markdown', type=Path, help='write the table there')
    args = parser.parse_args(argv)
    columns = 'graph model hidden threads way best_ms median_ms times_PyG'
    report = Report(f'Steps of training ({machine()})', columns.split())
    for graph in args.graphs:
        measure(report, graph, args)
        if args.markdown:
            args.markdown.write_text(report.markdown())
    report.show()


if __name__ == '__main__':
    main()
