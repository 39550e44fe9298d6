"""Times of batches of one seed and of 32.

PyG's loader runs on pyg-lib or torch-sparse; if neither is installed, it runs
on our sampler, and shows the cost of PyG's part of a batch. Both make batches
in the caller's thread: no workers, no prefetching.

    python benchmark/small_batches.py --graphs debian
"""

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from harness import Report, Timing, machine
from loader import make_data
from neighbor import GRAPHS
from torch import Tensor
from torch_geometric import loader as pyg_loader
from torch_geometric import transforms as T
from torch_geometric.data import Data, HeteroData
from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE

from torch_gsample import NeighborSampler
from torch_gsample.datasets import DebianPackages
from torch_gsample.loader import NeighborLoader

FANOUTS = [10, 5]
#: Number of hubs: nodes of the largest in-degrees, the seeds of two rows.
NUM_HUBS = 1000

Make = Callable[[], object]


def debian(num_features: int) -> Data:
    """Debian's packages, all relations and their reverses as one."""
    typed = T.ToUndirected()(DebianPackages()[0])
    known = typed.to_homogeneous(node_attrs=[], edge_attrs=[])
    x = torch.rand(known.num_nodes, num_features)
    return Data(edge_index=known.edge_index, x=x)


def debian_types(num_features: int) -> HeteroData:
    """The same with its types."""
    data = T.ToUndirected()(DebianPackages()[0])
    for store in data.node_stores:
        store.x = torch.rand(store.num_nodes, num_features)
    return data


def hubs(data: Data) -> Tensor:
    """Returns the nodes of the largest in-degrees."""
    assert data.edge_index is not None
    assert data.num_nodes is not None
    degree = torch.bincount(data.edge_index[1], minlength=data.num_nodes)
    return degree.topk(min(NUM_HUBS, data.num_nodes)).indices


def endless(make: Callable[[], Iterator[object]]) -> Make:
    """Returns a function that returns the next batch, across epochs."""
    batches = make()

    def following() -> object:
        nonlocal batches
        batch = next(batches, None)
        if batch is None:
            batches = make()
            batch = next(batches)
        return batch

    return following


def loaders(
    data: Data | HeteroData, seeds: object, batch_size: int
) -> dict[str, Make]:
    """Returns functions that make the batches of our and PyG's loader."""
    options = {
        'input_nodes': seeds,
        'batch_size': batch_size,
        'shuffle': True,
    }
    ours = NeighborLoader(data, FANOUTS, prefetch=0, seed=0, **options)
    if WITH_PYG_LIB or WITH_TORCH_SPARSE:
        pyg = pyg_loader.NeighborLoader(data, FANOUTS, **options)
    else:
        sampler = NeighborSampler(data, FANOUTS, seed=0)
        pyg = pyg_loader.NodeLoader(data, sampler, **options)
    return {
        'ours': endless(lambda: iter(ours)),
        'PyG': endless(lambda: iter(pyg)),
    }


def direct(data: Data, batch_size: int) -> dict[str, Make]:
    """Returns functions that sample without a loader."""
    sampler = NeighborSampler(data, FANOUTS, seed=0)
    generator = torch.Generator().manual_seed(0)
    size, count = (batch_size,), data.num_nodes
    assert count is not None

    def seeds() -> Tensor:
        return torch.randint(count, size, generator=generator)

    return {'ours': lambda: sampler.tensors(seeds())}


def timed(makers: dict[str, Make], rounds: int) -> dict[str, Timing]:
    """Times single batches, in turns."""
    timings = {name: Timing() for name in makers}
    for step in range(rounds + 10):
        for name, make in makers.items():
            start = time.perf_counter()
            batch = make()
            seconds = time.perf_counter() - start
            del batch  # its memory is used again
            if step >= 10:
                timings[name].seconds.append(seconds)
    return timings


def run(report: Report, name: str, args: argparse.Namespace) -> None:
    """Adds the rows of a graph."""
    if name == 'debian':
        data = debian(args.features)
    else:
        data = make_data(name, args.features)
    cases = {
        'one seed': (data, None, 1),
        '32 seeds': (data, None, 32),
        'one hub': (data, hubs(data), 1),
        '32 hubs': (data, hubs(data), 32),
    }
    if name == 'debian':
        typed = debian_types(args.features)
        cases |= {
            'one seed, 14 relations': (typed, 'package', 1),
            '32 seeds, 14 relations': (typed, 'package', 32),
        }
    makers = {kind: loaders(*case) for kind, case in cases.items()}
    makers['sampler.tensors, one seed'] = direct(data, 1)
    makers['sampler.tensors, 32 seeds'] = direct(data, 32)
    for threads in args.threads:
        torch.set_num_threads(threads)
        for kind, of_kind in makers.items():
            timings = timed(of_kind, args.rounds)
            mine = timings['ours'].median
            pyg = timings['PyG'].median if 'PyG' in timings else None
            report.add(
                name,
                kind,
                threads,
                f'{mine * 1e6:.0f}',
                '-' if pyg is None else f'{pyg * 1e6:.0f}',
                '-' if pyg is None else f'{pyg / mine:.1f}x',
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        '--graphs',
        default='debian,small',
        help=f"'debian', or of {', '.join(GRAPHS)}",
    )
    parser.add_argument('--features', type=int, default=100)
    parser.add_argument('--threads', default='1,2')
    parser.add_argument('--rounds', type=int, default=400)
    parser.add_argument('--markdown', type=Path, help='write the table there')
    args = parser.parse_args()
    args.threads = [int(t) for t in args.threads.split(',')]
    peer = 'on pyg-lib or torch-sparse'
    if not (WITH_PYG_LIB or WITH_TORCH_SPARSE):
        peer = 'on our sampler: neither pyg-lib nor torch-sparse is here'
    report = Report(
        f'Small batches, fan-outs {FANOUTS}, {args.features} features, medians'
        f' of {args.rounds}; PyG {peer}: {machine()}',
        ['graph', 'batch', 'threads', 'ours us', 'PyG us', 'speed-up'],
    )
    for name in args.graphs.split(','):
        run(report, name, args)
    report.show()
    if args.markdown:
        args.markdown.write_text(report.markdown())


if __name__ == '__main__':
    main()
