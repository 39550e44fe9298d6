"""How fast are batches, features included, beside PyG's loader?

PyG's loader runs on pyg-lib or torch-sparse, whichever it finds.

    python benchmark/loader.py --graphs medium --workers 0,2
"""

import argparse
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import torch
from harness import Report, compare, machine
from neighbor import FANOUTS, GRAPHS
from torch_geometric import loader as pyg_loader
from torch_geometric.data import Data

from torch_gsample.datasets import power_law
from torch_gsample.loader import NeighborLoader


def make_data(name: str, num_features: int) -> Data:
    nodes, edges, max_degree, exponent = GRAPHS[name]
    graph = power_law(nodes, edges, max_degree, exponent=exponent)
    edge_index = torch.stack([graph.indices, graph.col()]).long()
    x = torch.rand(nodes, num_features)
    return Data(edge_index=edge_index, x=x)


def batches_of(loader: object, count: int) -> Callable[[int], object]:
    """Returns a function that takes the next batches, over passes."""
    passes: Iterator[object] = iter(loader)  # type: ignore[call-overload]

    def take(_: int) -> None:
        nonlocal passes
        for _batch in islice(passes, count):
            pass

    return take


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--graphs', default='medium,small')
    parser.add_argument('--features', type=int, default=100)
    parser.add_argument('--workers', default='0,2')
    parser.add_argument('--batch-size', type=int, default=1024)
    parser.add_argument('--batches', type=int, default=8)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--markdown', type=Path, help='write the table there')
    args = parser.parse_args()
    report = Report(
        f'Batches with {args.features} features a node, {args.batch_size} '
        f'seeds, fan-outs {FANOUTS}: {machine()}',
        ['graph', 'workers', 'ours ms', 'PyG ms', 'speed-up'],
    )
    for name in args.graphs.split(','):
        data = make_data(name, args.features)
        # Enough seeds that neither loader comes to the end of a pass.
        count = args.batches * (args.rounds + 4) * args.batch_size
        seeds = torch.randint(data.num_nodes, (count,))
        for workers in map(int, args.workers.split(',')):
            options = dict(
                input_nodes=seeds,
                batch_size=args.batch_size,
                num_workers=workers,
            )
            ours = NeighborLoader(data, FANOUTS, **options)
            theirs = pyg_loader.NeighborLoader(data, FANOUTS, **options)
            timings = compare(
                {
                    'ours': batches_of(ours, args.batches),
                    'PyG': batches_of(theirs, args.batches),
                },
                args.rounds,
            )
            mine = timings['ours'].median / args.batches
            pyg = timings['PyG'].median / args.batches
            report.add(
                name, workers, mine * 1e3, pyg * 1e3, f'{pyg / mine:.1f}x'
            )
    report.show()
    if args.markdown:
        args.markdown.write_text(report.markdown())


if __name__ == '__main__':
    main()
