"""Times of neighbour sampling, compared with other installed samplers.

Peers are measured if they are installed: pyg-lib, DGL and torch-sparse.

    python benchmark/neighbor.py --graphs small --modes uniform,weighted
    python benchmark/neighbor.py --graphs rmat,hub --fanouts 25,10
    python benchmark/neighbor.py --batch-size 1 --index-dtype int64
    python benchmark/neighbor.py --markdown results.md
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from harness import (
    Report,
    compare,
    dgl_module,
    machine,
    pyg_lib_operators,
    random_read_seconds,
    seed_batches,
)
from torch import Tensor

from torch_gsample import CSC, Graph, ops
from torch_gsample.datasets import DebianPackages, power_law, rmat
from torch_gsample.rng import make_key

#: (nodes, edges, largest degree, exponent): after ogbn-products, LiveJournal
#: and ogbn-arxiv; in 'hub' one node has a tenth of all edges.
GRAPHS = {
    'large': (2_449_029, 124_000_000, 17_500, 1.5),
    'medium': (4_850_000, 69_000_000, 14_000, 1.3),
    'small': (169_000, 1_200_000, 13_000, 1.2),
    'hub': (2_449_029, 20_000_000, 2_000_000, 1.5),
    'tiny': (2_000, 20_000, 300, 1.5),
}
#: (scale, edges) of R-MAT graphs: of 16.8 M nodes 5.9 M have neighbours.
RMAT = {'rmat': (24, 128_000_000)}
DTYPES = {'int32': torch.int32, 'int64': torch.int64}
FANOUTS = [15, 10, 5]
MODES = ('uniform', 'weighted', 'disjoint', 'hetero')

Sampler = Callable[[int], object]


def load_graph(name: str, index_dtype: torch.dtype | None = None) -> CSC:
    if name in RMAT:
        return rmat(*RMAT[name], index_dtype=index_dtype)
    if name in GRAPHS:
        nodes, edges, max_degree, exponent = GRAPHS[name]
        graph = power_law(nodes, edges, max_degree, exponent=exponent)
    else:
        graph = load_npz(name)
    if index_dtype in (None, graph.indices.dtype):
        return graph
    return replace(
        graph,
        indptr=graph.indptr.to(index_dtype),
        indices=graph.indices.to(index_dtype),
    )


def load_npz(path: str) -> CSC:
    """Reads all relations of an ``edge/<src>__<rel>__<dst>`` file as one."""
    import numpy as np

    data = np.load(path)
    types = bytes(data['node_types']).decode().split('\n')
    sizes = data['num_nodes'].tolist()
    num_nodes = sum(sizes)
    offset = dict(zip(types, accumulate(sizes, initial=0), strict=False))
    edges = []
    for key in data.files:
        if key.startswith('edge/'):
            src, _, dst = key[5:].split('__')
            shift = [[offset[src]], [offset[dst]]]
            edge = torch.from_numpy(data[key].astype(np.int64))
            edge = edge + torch.tensor(shift)
            edges += [edge, edge.flip(0)]
    row, col = torch.cat(edges, 1)
    return CSC.from_coo(row, col, num_nodes, num_nodes)


def our_sampler(
    graph: CSC,
    batches: list[Tensor],
    fanouts: list[int],
    mode: str,
    weight: Tensor | None,
) -> Sampler:
    known = Graph.from_csc(graph)
    if weight is not None:
        known = known.with_weights({None: weight})
    sampling = ops.Sampling(disjoint=mode == 'disjoint')

    def sample(i: int) -> ops.Sample:
        return ops.sample_neighbors(
            known,
            batches[i % len(batches)],
            fanouts,
            make_key(0, 0, i),
            sampling=sampling,
        )

    return sample


def peer_samplers(
    graph: CSC,
    batches: list[Tensor],
    fanouts: list[int],
    mode: str,
    weight: Tensor | None,
) -> dict[str, Sampler]:
    """Returns the peers that support the mode, with ids of both dtypes."""
    peers: dict[str, Sampler] = {}
    for name, dtype in DTYPES.items():
        if pyg_lib_operators() is not None:
            peers[f'pyg-lib {name}'] = pyg_sampler(
                graph.indptr.to(dtype),
                graph.indices.to(dtype),
                [batch.to(dtype) for batch in batches],
                fanouts,
                edge_weight=weight,
                disjoint=mode == 'disjoint',
            )
        if dgl_module() is not None and mode != 'disjoint':
            peers[f'DGL {name}'] = dgl_sampler(
                graph.indptr.to(dtype),
                graph.indices.to(dtype),
                [batch.to(dtype) for batch in batches],
                fanouts,
                weight,
            )
    return peers


def pyg_sampler(
    indptr: Tensor,
    indices: Tensor,
    batches: list[Tensor],
    fanouts: list[int],
    **options: Any,
) -> Sampler:
    sample = pyg_lib_operators().neighbor_sample

    def call(i: int) -> object:
        seeds = batches[i % len(batches)]
        return sample(indptr, indices, seeds, fanouts, csc=True, **options)

    return call


def dgl_sampler(
    indptr: Tensor,
    indices: Tensor,
    batches: list[Tensor],
    fanouts: list[int],
    weight: Tensor | None,
) -> Sampler:
    dgl = dgl_module()
    none = torch.empty(0, dtype=indices.dtype)
    g = dgl.graph(
        ('csc', (indptr, indices, none)), idtype=indices.dtype
    ).formats('csc')
    if weight is not None:
        g.edata['w'] = weight
    sampler = dgl.dataloading.NeighborSampler(
        fanouts[::-1], prob=None if weight is None else 'w'
    )
    return lambda i: sampler.sample_blocks(g, batches[i % len(batches)])


def read_bound(graph: CSC, sample: ops.Sample) -> tuple[float, float]:
    """Returns lower bounds of the seconds of a sample's random reads.

    One read for the offset of each column, one for each edge, one for each
    de-duplication. The first bound assumes that each costs as much as a read
    of the neighbour array; for the second, offsets and table entries are read
    from arrays of their own size.
    """
    columns = int(sample.num_nodes[0, :-1].sum())
    edges = int(sample.num_edges.sum())
    edge_read = random_read_seconds(graph.num_edges, graph.indices.dtype)
    offset_read = random_read_seconds(graph.num_cols, graph.indptr.dtype)
    table_read = random_read_seconds(graph.num_cols, torch.int32)
    return (
        (columns + 2 * edges) * edge_read,
        columns * offset_read + edges * (edge_read + table_read),
    )


def run_homogeneous(
    report: Report, name: str, modes: list[str], args: argparse.Namespace
) -> None:
    graph = load_graph(name, DTYPES[args.index_dtype])
    if name not in (*GRAPHS, *RMAT):
        name = Path(name).resolve().parent.name
    # Seeds have neighbours: in an R-MAT graph most nodes have none.
    nodes = graph.degree().nonzero().view(-1)
    batches = [
        nodes[batch]
        for batch in seed_batches(len(nodes), args.batch_size, args.rounds)
    ]
    bounds = None
    for mode in modes:
        weight = None
        if mode == 'weighted':
            generator = torch.Generator().manual_seed(1)
            weight = torch.rand(graph.num_edges, generator=generator)
        task = graph, batches, args.fanouts, mode, weight
        ours = our_sampler(*task)
        candidates = {'ours': ours, **peer_samplers(*task)}
        for threads in args.threads:
            torch.set_num_threads(threads)
            sample = ours(0)
            if bounds is None:
                bounds = read_bound(graph, sample)
            timings = compare(candidates, args.rounds, args.min_seconds)
            edges = int(sample.num_edges.sum())
            share = ''
            if mode == 'uniform' and threads == 1:
                share = ' / '.join(
                    f'{100 * bound / timings["ours"].median:.0f} %'
                    for bound in bounds
                )
            add_row(report, name, mode, threads, timings, edges, share)


def run_hetero(report: Report, args: argparse.Namespace) -> None:
    """Debian packages, with the reverse of every relation."""
    import torch_geometric.transforms as T

    from torch_gsample import NeighborSampler

    data = T.ToUndirected()(DebianPackages()[0])
    fanouts = args.fanouts
    sampler = NeighborSampler(data, fanouts, seed=0)
    num_nodes = data['package'].num_nodes
    batches = seed_batches(num_nodes, args.batch_size, args.rounds)

    def ours(i: int) -> object:
        seeds = {'package': batches[i % len(batches)]}
        return sampler._draw(seeds, {}, make_key(0, 0, i))

    candidates: dict[str, Sampler] = {'ours': ours}
    pyg = pyg_lib_operators()
    if pyg is not None:
        names = {t: '__'.join(t) for t in data.edge_types}
        indptr = {n: sampler.graph[t].indptr.long() for t, n in names.items()}
        indices = {
            n: sampler.graph[t].indices.long() for t, n in names.items()
        }
        counts = dict.fromkeys(names.values(), fanouts)
        candidates['pyg-lib'] = lambda i: pyg.hetero_neighbor_sample(
            data.node_types,
            data.edge_types,
            indptr,
            indices,
            {'package': batches[i % len(batches)]},
            counts,
            csc=True,
        )
    for threads in args.threads:
        torch.set_num_threads(threads)
        out = ours(0)
        edges = sum(map(sum, out.num_sampled_edges.values()))
        timings = compare(candidates, args.rounds, args.min_seconds)
        add_row(report, 'debian', 'hetero', threads, timings, edges, '')


def add_row(
    report: Report,
    graph: str,
    mode: str,
    threads: int,
    timings: dict,
    edges: int,
    share: str,
) -> None:
    ours = timings['ours'].median
    peers = {n: t.median for n, t in timings.items() if n != 'ours'}
    report.add(
        graph,
        mode,
        threads,
        f'{ours * 1e3:.2f}',
        f'{edges / ours / 1e6:.1f}',
        share,
        ', '.join(f'{n} {t * 1e3:.1f}' for n, t in peers.items()) or '-',
        ', '.join(f'{n} {t / ours:.1f}x' for n, t in peers.items()) or '-',
    )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        '--graphs',
        default='large,medium,small',
        help=f'of {", ".join((*GRAPHS, *RMAT))}, or the path of an npz file',
    )
    parser.add_argument('--fanouts', default=','.join(map(str, FANOUTS)))
    parser.add_argument(
        '--index-dtype',
        default='int32',
        choices=DTYPES,
        help='of our graph; peers are measured with both',
    )
    parser.add_argument('--modes', default=','.join(MODES))
    parser.add_argument('--threads', default='1,2')
    parser.add_argument('--batch-size', type=int, default=1024)
    parser.add_argument('--rounds', type=int, default=15)
    parser.add_argument('--min-seconds', type=float, default=0.0)
    parser.add_argument('--markdown', type=Path, help='write the table there')
    args = parser.parse_args()
    args.threads = [int(t) for t in args.threads.split(',')]
    args.fanouts = [int(k) for k in args.fanouts.split(',')]
    return args


def main() -> None:
    args = parse_arguments()
    report = Report(
        f'Neighbour sampling, {args.batch_size} seeds, fan-outs '
        f'{args.fanouts}, ours with {args.index_dtype}: {machine()}',
        ['graph', 'mode', 'threads', 'ours ms', 'M edges/s']
        + ['share of read bound', 'peers ms', 'speed-up'],
    )
    modes = args.modes.split(',')
    homogeneous = [mode for mode in modes if mode != 'hetero']
    for name in args.graphs.split(',') if homogeneous else []:
        run_homogeneous(report, name, homogeneous, args)
    if 'hetero' in modes:
        run_hetero(report, args)
    report.show()
    if args.markdown:
        args.markdown.write_text(report.markdown())


if __name__ == '__main__':
    main()
