"""Times of random walks, compared with other installed walkers.

Peers are measured if they are installed: pyg-lib, torch-cluster and DGL. The
columns of the graphs are sorted, for all candidates; with ``--unsorted`` ours
runs on unsorted columns, without and with a sorted copy.

    python benchmark/walks.py --graphs small --modes uniform
    python benchmark/walks.py --markdown results.md
"""

import argparse
from collections.abc import Callable
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
)
from neighbor import GRAPHS, RMAT
from torch import Tensor

from torch_gsample import CSC, ops
from torch_gsample.datasets import power_law, rmat
from torch_gsample.rng import make_key

MODES = ('uniform', 'node2vec')
P, Q = 2.0, 0.5

Walk = Callable[[int], object]


def load_graph(name: str, unsorted: bool) -> CSC:
    """A graph whose columns ascend, unless they stay unsorted."""
    if name in RMAT:
        graph = rmat(*RMAT[name])
    else:
        nodes, edges, max_degree, exponent = GRAPHS[name]
        graph = power_law(nodes, edges, max_degree, exponent=exponent)
    indices = graph.indices if unsorted else ascending(graph)
    for tensor in (graph.indptr, indices):
        torch.ops.gsample.advise_huge_pages(tensor)
    return CSC(graph.indptr, indices, graph.num_rows)


def ascending(graph: CSC) -> Tensor:
    """The entries of each column in ascending order: two transpositions."""
    return graph.transpose().transpose().indices


def our_walks(
    graph: CSC, seeds: Tensor, length: int, mode: str, unsorted: bool
) -> dict[str, Walk]:
    """Returns our walk, on unsorted columns also with a sorted copy."""
    args = (graph.indptr, graph.indices, seeds, length)
    if mode == 'uniform':
        return {
            'ours': lambda i: ops.random_walk(*args, key=make_key(0, 0, i))
        }

    def walk(**options: Any) -> Walk:
        return lambda i: ops.node2vec_walk(
            *args, P, Q, key=make_key(0, 0, i), **options
        )

    if not unsorted:
        return {'ours': walk(is_sorted=True)}
    return {
        'ours': walk(ascending=ascending(graph)),
        'ours without a copy': walk(),
    }


def peer_walks(
    graph: CSC, seeds: Tensor, length: int, mode: str
) -> dict[str, Walk]:
    """Returns the peers that support the mode, on int64 graphs."""
    indptr, indices = graph.indptr.long(), graph.indices.long()
    p, q = (1.0, 1.0) if mode == 'uniform' else (P, Q)
    peers: dict[str, Walk] = {}
    pyg = pyg_lib_operators()
    if pyg is not None and mode == 'uniform':
        peers['pyg-lib'] = lambda _: pyg.random_walk(
            indptr, indices, seeds, length, p, q
        )
    try:
        import torch_cluster  # noqa: F401

        peers['torch-cluster'] = lambda _: torch.ops.torch_cluster.random_walk(
            indptr, indices, seeds, length, p, q
        )
    except ImportError:
        pass
    dgl = dgl_module()
    if dgl is not None:
        none = torch.empty(0, dtype=torch.int64)
        g = dgl.graph(('csr', (indptr, indices, none))).formats('csr')
        if mode == 'uniform':
            peers['DGL'] = lambda _: dgl.sampling.random_walk(
                g, seeds, length=length
            )
        else:
            peers['DGL'] = lambda _: dgl.sampling.node2vec_random_walk(
                g, seeds, p, q, length
            )
    return peers


def run(report: Report, name: str, args: argparse.Namespace) -> None:
    graph = load_graph(name, args.unsorted)
    generator = torch.Generator().manual_seed(12)
    seeds = torch.randint(
        graph.num_cols, (args.num_walks,), generator=generator
    )
    # Each step reads one offset and one neighbour.
    bound = random_read_seconds(
        graph.num_cols, graph.indptr.dtype
    ) + random_read_seconds(graph.num_edges, graph.indices.dtype)
    for mode in args.modes.split(','):
        task = graph, seeds, args.length, mode
        candidates = {
            **our_walks(*task, args.unsorted),
            **peer_walks(*task),
        }
        for threads in args.threads:
            torch.set_num_threads(threads)
            timings = compare(candidates, args.rounds)
            ours = timings['ours'].median
            steps = args.num_walks * args.length
            peers = {n: t.median for n, t in timings.items() if n != 'ours'}
            report.add(
                name,
                mode,
                threads,
                f'{ours * 1e3:.1f}',
                f'{steps / ours / 1e6:.1f}',
                f'{100 * bound * steps / ours:.0f} %' if threads == 1 else '',
                ', '.join(f'{n} {t * 1e3:.0f}' for n, t in peers.items())
                or '-',
                ', '.join(f'{n} {t / ours:.1f}x' for n, t in peers.items())
                or '-',
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--graphs', default='large,medium,small')
    parser.add_argument('--modes', default=','.join(MODES))
    parser.add_argument('--unsorted', action='store_true')
    parser.add_argument('--threads', default='1,2')
    parser.add_argument('--num-walks', type=int, default=10_000)
    parser.add_argument('--length', type=int, default=80)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--markdown', type=Path, help='write the table there')
    args = parser.parse_args()
    args.threads = [int(t) for t in args.threads.split(',')]
    report = Report(
        f'{args.num_walks} walks of length {args.length}, node2vec with '
        f'p={P}, q={Q}: {machine()}',
        ['graph', 'mode', 'threads', 'ours ms', 'M steps/s']
        + ['share of read bound', 'peers ms', 'speed-up'],
    )
    for name in args.graphs.split(','):
        run(report, name, args)
    report.show()
    if args.markdown:
        args.markdown.write_text(report.markdown())


if __name__ == '__main__':
    main()
