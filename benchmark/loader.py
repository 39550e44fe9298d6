"""Times of batches with features, compared with PyG's loader.

PyG's loader runs on pyg-lib or torch-sparse, whichever is installed.

    python benchmark/loader.py --graphs medium --workers 0,2
"""

import argparse
import time
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import torch
from harness import Report, Timing, machine
from neighbor import FANOUTS, GRAPHS
from torch_geometric import loader as pyg_loader
from torch_geometric.data import Data

from torch_gsample.datasets import power_law
from torch_gsample.loader import NeighborLoader

#: More batches than workers prefetch: later ones show the steady rate.
WARM_BATCHES = 8


def make_data(name: str, num_features: int) -> Data:
    nodes, edges, max_degree, exponent = GRAPHS[name]
    graph = power_law(nodes, edges, max_degree, exponent=exponent)
    edge_index = torch.stack([graph.indices, graph.col()]).long()
    x = torch.rand(nodes, num_features)
    return Data(edge_index=edge_index, x=x)


def seconds_a_batch(loader: Iterable[object], warm: int, count: int) -> float:
    """Times the batches of an epoch in its steady state.

    An epoch has its own workers, which end with it: no prefetched batches of
    one loader disturb the other.
    """
    batches = iter(loader)
    for _ in islice(batches, warm):
        pass
    start = time.perf_counter()
    for _ in islice(batches, count):
        pass
    return (time.perf_counter() - start) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--graphs', default='medium,small')
    parser.add_argument('--features', type=int, default=100)
    parser.add_argument('--workers', default='0,2')
    parser.add_argument('--batch-size', type=int, default=1024)
    parser.add_argument('--batches', type=int, default=24)
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
        # Enough seeds that neither loader reaches the end of an epoch.
        count = (WARM_BATCHES + 2 * args.batches) * args.batch_size
        seeds = torch.randint(data.num_nodes, (count,))
        for workers in map(int, args.workers.split(',')):
            options = dict(
                input_nodes=seeds,
                batch_size=args.batch_size,
                num_workers=workers,
            )
            loaders = {
                'ours': NeighborLoader(data, FANOUTS, **options),
                'PyG': pyg_loader.NeighborLoader(data, FANOUTS, **options),
            }
            timings = {kind: Timing() for kind in loaders}
            for _ in range(args.rounds):
                for kind, loader in loaders.items():
                    timings[kind].seconds.append(
                        seconds_a_batch(loader, WARM_BATCHES, args.batches)
                    )
            mine, pyg = (timings[kind].median for kind in loaders)
            report.add(
                name, workers, mine * 1e3, pyg * 1e3, f'{pyg / mine:.1f}x'
            )
    report.show()
    if args.markdown:
        args.markdown.write_text(report.markdown())


if __name__ == '__main__':
    main()
