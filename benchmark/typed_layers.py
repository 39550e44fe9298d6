"""How fast is a step of typed layers on a graph with many relations?

Debian's packages with both directions of each relation, forward with backward:
a model that `fuse` has compute exact blocks, the same model as PyG runs it,
and with PyG's `trim_to_layer`. In turns, one thread, the same weights,
processor time. PyG uses pyg-lib's grouped products where it is installed.

`HeteroConv` has a `SAGEConv` for each relation. As in PyG's examples, the last
layer computes all node types, of which the loss reads the packages.

    python benchmark/typed_layers.py --markdown table.md
"""

import argparse
import copy
import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from harness import Report, compare, machine
from torch import Tensor, nn
from torch_geometric.nn import HeteroConv, HGTConv, SAGEConv
from torch_geometric.transforms import ToUndirected
from torch_geometric.typing import WITH_PYG_LIB
from torch_geometric.utils import trim_to_layer

from torch_gsample import fuse
from torch_gsample.datasets import DebianPackages
from torch_gsample.loader import NeighborLoader

WIDTH, HEADS, SEEDS = 64, 4, 'package'
FANOUTS = {2: [10, 10], 3: [10, 5, 5]}
KINDS: dict[str, Callable[[Any], Any]] = {
    'HGTConv': lambda metadata: HGTConv(WIDTH, WIDTH, metadata, HEADS),
    'HeteroConv': lambda metadata: HeteroConv(
        {key: SAGEConv(WIDTH, WIDTH) for key in metadata[1]}
    ),
}


class Model(nn.Module):
    """A stack of layers.

    Args:
        kind (str): Of :data:`KINDS`.
        metadata (Tuple): Of the graph.
        num_layers (int): Their number.
    """

    def __init__(self, kind: str, metadata: Any, num_layers: int):
        super().__init__()
        self.convs = nn.ModuleList(
            KINDS[kind](metadata) for _ in range(num_layers)
        )

    def forward(self, x: Any, edges: Any, counts: Any = None) -> Tensor:
        """Returns a row for each seed, or more.

        Args:
            x (Dict[str, torch.Tensor]): Features of each node type.
            edges (Dict[Tuple[str, str, str], torch.Tensor]): Of each relation.
            counts (Tuple, optional): Nodes and edges of each hop: trims.
        """
        for i, conv in enumerate(self.convs):
            if counts is not None:
                x, edges, _ = trim_to_layer(i, *counts, x, edges)
            x = {key: y.relu() for key, y in conv(x, edges).items()}
        return x[SEEDS]


def main(arguments: list[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--kinds', nargs='*', default=list(KINDS))
    parser.add_argument('--layers', nargs='*', type=int, default=[2, 3])
    parser.add_argument('--seeds', type=int, default=512)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=240.0)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--markdown', type=Path, help='write the table there')
    args = parser.parse_args(arguments)
    torch.set_num_threads(args.threads)
    data = ToUndirected()(DebianPackages()[0])
    make = torch.Generator().manual_seed(12)
    for name in data.node_types:
        rows = data[name].num_nodes
        data[name].x = torch.randn(rows, WIDTH, generator=make)
    peer = 'PyG with pyg-lib' if WITH_PYG_LIB else 'PyG without pyg-lib'
    report = Report(
        f'{len(data.edge_types)} relations: {machine()}',
        ['kind', 'layers', 'fused ms', f'{peer} ms', 'trimmed ms', 'PyG', 'trimmed']
        + ['load'],
    )
    for kind, num_layers in itertools.product(args.kinds, args.layers):
        torch.manual_seed(12)
        theirs = Model(kind, data.metadata(), num_layers)
        ours = copy.deepcopy(theirs)
        fusion = fuse(ours, min_nodes=0, verbose=False)
        loader = NeighborLoader(
            *(data, FANOUTS[num_layers]),
            **{'input_nodes': SEEDS, 'batch_size': args.seeds, 'seed': 12},
        )
        batch = next(iter(loader))
        times = compare(
            steps_of(theirs, ours, batch, args.seeds),
            args.rounds,
            clock=time.process_time,
            max_seconds=args.seconds,
        )
        if 'whole batch' in fusion.report():
            raise ValueError(
                f'typed_layers: each layer must compute its block (got '
                f'{fusion.report()})'
            )
        fused, whole, trimmed = (1e3 * t.median for t in times.values())
        report.add(
            *(kind, num_layers, f'{fused:.3g}', f'{whole:.3g}'),
            f'{trimmed:.3g}',
            *(f'{whole / fused:.3g}x', f'{trimmed / fused:.3g}x'),
            round(os.getloadavg()[0], 1),
        )
        report.show()
    if args.markdown:
        args.markdown.write_text(report.markdown())


def steps_of(theirs: Model, ours: Model, batch: Any, seeds: int) -> Any:
    """Returns the steps that are compared, by what they are."""
    counts = batch.num_sampled_nodes_dict, batch.num_sampled_edges_dict
    plain = {
        key: torch.Tensor(x).as_subclass(torch.Tensor).clone()
        for key, x in batch.edge_index_dict.items()
    }

    def step_of(model: Model, edges: Any, *more: Any) -> Any:
        def step(_: int) -> object:
            out = model(batch.x_dict, edges, *more)
            return out[:seeds].square().mean().backward()

        return step

    return {
        'fused': step_of(ours, batch.edge_index_dict),
        'PyG': step_of(theirs, plain),
        'trimmed': step_of(theirs, plain, counts),
    }


if __name__ == '__main__':
    main()
