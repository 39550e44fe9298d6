"""Number of compilations of a model, and the time of its epochs.

GraphSAGE with ``trim_to_layer``, compiled by ``torch.compile``, on batches
with and without static shapes, compared with the eager model.

    python benchmark/static_shapes.py --backend inductor
"""

import argparse
import time
from itertools import islice, pairwise
from pathlib import Path

import torch
import torch.nn.functional as F
from harness import Report, compare, machine
from torch import nn
from torch._dynamo.utils import counters
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv
from torch_geometric.utils import trim_to_layer

from torch_gsample.datasets import power_law
from torch_gsample.loader import NeighborLoader

FANOUTS = [10, 5]
NUM_CLASSES = 32


class SAGE(nn.Module):
    """One layer per hop, each on the nodes that it needs."""

    def __init__(self, in_channels: int, hidden: int):
        super().__init__()
        sizes = [in_channels, *[hidden] * (len(FANOUTS) - 1), NUM_CLASSES]
        self.convs = nn.ModuleList(SAGEConv(*pair) for pair in pairwise(sizes))

    def forward(self, x, edge_index, nodes, edges):
        """Returns scores of all remaining nodes."""
        for i, conv in enumerate(self.convs):
            x, edge_index, _ = trim_to_layer(i, nodes, edges, x, edge_index)
            x = conv(x, edge_index).relu()
        return x


def make_data(num_nodes: int, num_edges: int, num_features: int) -> Data:
    graph = power_law(num_nodes, num_edges, num_nodes // 50)
    return Data(
        edge_index=torch.stack([graph.indices, graph.col()]).long(),
        x=torch.rand(num_nodes, num_features),
        y=torch.randint(NUM_CLASSES, (num_nodes,)),
    )


def train(model: nn.Module, batches: list[Data]) -> None:
    """Takes a step without an optimizer for each batch."""
    for batch in batches:
        model.zero_grad()
        out = model(
            batch.x,
            batch.edge_index,
            batch.num_sampled_nodes,
            batch.num_sampled_edges,
        )
        size = batch.batch_size
        F.cross_entropy(out[:size], batch.y[:size]).backward()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add('--backend', default='inductor')
    add('--nodes', type=int, default=169_000)
    add('--edges', type=int, default=1_200_000)
    add('--features', type=int, default=64)
    add('--hidden', type=int, default=64)
    add('--batch-size', type=int, default=512)
    add('--batches', type=int, default=8, help='of an epoch')
    add('--epochs', type=int, default=5, help='after the first')
    add('--markdown', type=Path, help='write the table there')
    args = parser.parse_args()
    data = make_data(args.nodes, args.edges, args.features)
    report = Report(
        f'GraphSAGE, {args.features} features, {args.batch_size} seeds, '
        f'fan-outs {FANOUTS}, {args.backend}: {machine()}',
        ['model', 'static shapes', 'compilations', 'first epoch s']
        + ['step ms', 'nodes added', 'edges added'],
    )
    # A limit on recompilation would leave the model eager in the end.
    torch._dynamo.config.recompile_limit = 10**6
    kinds = [
        ('eager', False),
        ('eager', 1),
        ('dynamic=None', False),
        ('dynamic=True', False),
        ('dynamic=False', 1),
        ('dynamic=False', 4),
    ]
    dynamic = {f'dynamic={d}': d for d in (None, True, False)}
    rows, steps = {}, {}
    for kind, shapes in kinds:
        counters.clear()
        torch.manual_seed(0)
        model = SAGE(args.features, args.hidden)
        if kind != 'eager':
            model = torch.compile(
                model, backend=args.backend, dynamic=dynamic[kind]
            )
        loader = NeighborLoader(
            data,
            FANOUTS,
            batch_size=args.batch_size,
            shuffle=True,
            seed=0,
            static_shapes=shapes,
        )
        batches = list(islice(loader, args.batches))
        start = time.perf_counter()
        train(model, batches)
        first = time.perf_counter() - start
        compiled = counters['stats'].get('unique_graphs', 0)
        padding = loader.stats().get('padding', {})
        parts = [f'{padding.get(k, 0):.1%}' for k in ('nodes', 'edges')]
        rows[kind, shapes] = compiled, first, parts
        steps[f'{kind} {shapes}'] = lambda _, m=model, b=batches: train(m, b)
        print(kind, shapes, rows[kind, shapes], flush=True)
    timings = compare(steps, args.epochs)
    for (kind, shapes), (compiled, first, parts) in rows.items():
        seconds = timings[f'{kind} {shapes}'].median / args.batches
        report.add(
            kind, shapes or 'no', compiled, first, seconds * 1e3, *parts
        )
    report.show()
    if args.markdown:
        args.markdown.write_text(report.markdown())


if __name__ == '__main__':
    main()
