"""How fast are fused layers, beside PyG's own, eager and compiled?

The same layer with the same weights, forward and with its backward; the peak
of memory above what was there before; and a fused aggregation beside a copy of
memory. Each row is measured in one run, in turns.

    python benchmark/vertex.py --graphs packages --layers GAT --channels 64
    python benchmark/vertex.py --graphs graph.npz --no-compile
"""

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from harness import Report, compare, copier, machine
from torch import Tensor
from torch_geometric import nn as pyg
from torch_geometric.data import Data
from torch_geometric.utils import to_torch_csr_tensor

from torch_gsample import NeighborSampler, ops
from torch_gsample.datasets import DebianPackages
from torch_gsample.loader import NeighborLoader
from torch_gsample.vertex import nn, vertex_program

RELATIONS = 8  # of graphs without their own


def rmat() -> Data:
    """Returns 100,000 vertices and 2,500,000 edges."""
    nodes = 100_000
    row, col = ops.rmat_edges(17, 2_500_000, [0.57, 0.19, 0.19, 0.05], 1)
    edge_index = torch.stack([row % nodes, col % nodes]).long()
    return Data(edge_index=edge_index, num_nodes=nodes)


def block() -> Data:
    """Returns what is sampled in three hops around 1,024 vertices."""
    data = rmat()
    sampler = NeighborSampler(data, [15, 10, 5], seed=12)
    loader = NeighborLoader(
        data, sampler=sampler, batch_size=1024, input_nodes=None
    )
    return next(iter(loader))


def from_file(path: str) -> Data:
    """Returns the edges of all relations of an ``.npz`` file."""
    with np.load(path) as file:
        names = [key for key in file.files if key.startswith('edge/')]
        types = sorted(
            {
                t
                for n in names
                for t in n.removeprefix('edge/').split('__')[::2]
            }
        )
        sizes = dict.fromkeys(types, 0)
        parts = {}
        for name in names:
            source, _, target = name.removeprefix('edge/').split('__')
            edges = torch.from_numpy(file[name]).long()
            parts[source, name, target] = edges
            for end, kind in enumerate((source, target)):
                sizes[kind] = max(sizes[kind], int(edges[end].max()) + 1)
    start = dict(
        zip(types, np.cumsum([0, *sizes.values()]).tolist(), strict=False)
    )
    edge_index, edge_type = [], []
    for number, ((source, _, target), edges) in enumerate(parts.items()):
        offset = torch.tensor([[start[source]], [start[target]]])
        edge_index.append(edges + offset)
        edge_type.append(torch.full((edges.shape[1],), number))
    return Data(
        edge_index=torch.cat(edge_index, 1),
        edge_type=torch.cat(edge_type),
        num_nodes=sum(sizes.values()),
    )


GRAPHS: dict[str, Callable[[], Data]] = {
    'packages': lambda: DebianPackages(homogeneous=True)[0],
    'rmat': rmat,
    'block': block,
}


def layers(
    name: str, channels: int, heads: int, relations: int
) -> tuple[torch.nn.Module, torch.nn.Module]:
    """Returns a layer of ours and one of PyG's, with equal weights."""
    make: Callable[[Any], torch.nn.Module] = {
        'GCN': lambda m: m.GCNConv(channels, channels),
        'GAT': lambda m: m.GATConv(channels, channels // heads, heads),
        'APPNP': lambda m: m.APPNP(K=10, alpha=0.1),
        'RGCN': lambda m: m.RGCNConv(channels, channels, relations),
    }[name]
    theirs, ours = make(pyg), make(nn)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def transposed(data: Data) -> Tensor:
    """Returns the adjacency that PyG multiplies by."""
    size = (data.num_nodes, data.num_nodes)
    return to_torch_csr_tensor(data.edge_index.flip(0), size=size)


def both(layer: Any, x: Tensor, args: tuple) -> Callable[[int], object]:
    """Returns a call of a layer and of its backward."""
    leaves = [x]
    if isinstance(layer, torch.nn.Module):
        leaves += layer.parameters()

    def call(_: int) -> object:
        out = layer(x, *args)
        return torch.autograd.grad(out, leaves, torch.ones_like(out))

    return call


def peak(call: Callable[[int], object]) -> float:
    """Returns the most memory that a first call takes at once, in MB."""

    def read(name: str) -> float:
        for line in Path('/proc/self/status').read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) / 1e3
        raise RuntimeError(f'there is no {name}')

    Path('/proc/self/clear_refs').write_text('5')
    before = read('VmRSS')
    call(0)
    return read('VmHWM') - before


def peak_alone(kind: str, what: tuple, threads: int) -> float:
    """Measures in a process of its own: nothing is kept from earlier calls."""
    names = [kind, *map(str, what), str(threads)]
    command = [sys.executable, __file__, '--peak', *names]
    done = subprocess.run(command, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def show_peak(
    kind: str, graph: str, name: str, channels: str, heads: str, threads: str
) -> None:
    """Prints the peak of memory of a layer whose kernels are compiled."""
    torch.set_num_threads(int(threads))
    data = GRAPHS[graph]() if graph in GRAPHS else from_file(graph)
    given, relations = edges_of(name, data)
    ours, theirs = layers(name, int(channels), int(heads), relations)
    layer = torch.compile(theirs) if kind == 'compiled' else theirs
    if kind == 'SpMM':
        given = (transposed(data),)
    x = torch.randn(data.num_nodes, int(channels), requires_grad=True)
    if kind == 'fused':
        # Kernels are made once for each shape, layouts for each graph.
        layer = ours
        few = tuple(part[..., :1] for part in given)
        count = int(few[0].max()) + 1
        both(layer, x[:count].detach().requires_grad_(), few)(0)
        one = torch.zeros(data.num_nodes, 1, requires_grad=True)
        both(layers(name, 1, 1, relations)[0], one, given)(0)
    print(peak(both(layer, x, given)))


def edges_of(name: str, data: Data) -> tuple[tuple, int]:
    """Returns what a layer takes besides features; how many relations."""
    edge_type = data.get('edge_type')
    if edge_type is None:
        edge_type = torch.arange(data.num_edges) % RELATIONS
    given = (data.edge_index,)
    if name == 'RGCN':
        given = (data.edge_index, edge_type)
    return given, int(edge_type.max()) + 1


def compiled(layer: Any, x: Tensor, args: tuple) -> Any:
    """Returns a compiled layer, or nothing if it cannot be compiled."""
    try:
        layer = torch.compile(layer)
        both(layer, x, args)(0)
    except Exception as error:
        print(f'not compiled: {error!r:.100}')
        return None
    return layer


def measure(
    report: Report, graph: str, data: Data, name: str, args: Any
) -> None:
    heads = args.heads if name == 'GAT' else [1]
    for channels in args.channels:
        for count in heads:
            given, relations = edges_of(name, data)
            ours, theirs = layers(name, channels, count, relations)
            x = torch.randn(data.num_nodes, channels, requires_grad=True)
            candidates = {'fused': ours, 'PyG': theirs}
            if name in ('GCN', 'APPNP'):
                adjacency = transposed(data)
                candidates['SpMM'] = lambda x, _, a=adjacency, m=theirs: m(
                    x, a
                )
            if not args.no_compile:
                made = compiled(theirs, x, given)
                if made is not None:
                    candidates['compiled'] = made
            what = graph, name, channels, count
            row(report, what, candidates, x, given, args)


def row(
    report: Report,
    what: tuple,
    candidates: dict[str, Any],
    x: Tensor,
    given: tuple,
    args: Any,
) -> None:
    with torch.no_grad():
        forward = compare(
            {
                key: lambda _, layer=layer: layer(x, *given)
                for key, layer in candidates.items()
            },
            args.rounds,
        )
    total = compare(
        {key: both(layer, x, given) for key, layer in candidates.items()},
        args.rounds,
    )
    others = [key for key in candidates if key != 'fused']
    fastest = [
        min(times[key].median for key in others) / times['fused'].median
        for times in (forward, total)
    ]
    memory = {}
    if not args.no_memory:
        memory = {
            key: peak_alone(key, what, args.threads) for key in candidates
        }
    least = min((memory[key] for key in others if memory), default=0)

    def listed(times: dict) -> str:
        return ' / '.join(
            f'{times[key].median * 1e3:.0f}' for key in candidates
        )

    report.add(
        Path(what[0]).stem,
        *what[1:],
        listed(forward),
        f'{fastest[0]:.1f}x',
        listed(total),
        f'{fastest[1]:.1f}x',
        ' / '.join(f'{value:.0f}' for value in memory.values()) or '-',
        f'{least / max(memory["fused"], 1):.1f}x' if memory else '-',
    )


@vertex_program
def weighted(v):  # type: ignore
    return sum(e.w * e.src.h for e in v.inedges)


def bandwidth(data: Data, channels: int, rounds: int) -> str:
    """Compares an aggregation with a copy of as many bytes."""
    h = torch.randn(data.num_nodes, channels)
    w = torch.rand(data.num_edges)
    copy, size = copier()
    times = compare(
        {
            'fused': lambda _: weighted(data.edge_index, h=h, w=w),
            'copy': copy,
        },
        rounds,
    )
    # Rows of sources, weights, indices and ids of edges, rows of results.
    moved = data.num_edges * (4 * channels + 12) + h.nbytes
    rate = moved / times['fused'].median
    return (
        f'aggregation of {channels} features: {rate / 1e9:.1f} GB/s, '
        f'{rate * times["copy"].median / size:.0%} of a copy'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--graphs', nargs='*', default=list(GRAPHS))
    parser.add_argument(
        '--layers', nargs='*', default=['GCN', 'GAT', 'APPNP', 'RGCN']
    )
    parser.add_argument(
        '--channels', nargs='*', type=int, default=[16, 64, 256]
    )
    parser.add_argument('--heads', nargs='*', type=int, default=[1, 8])
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--no-compile', action='store_true')
    parser.add_argument('--no-memory', action='store_true')
    parser.add_argument('--no-bandwidth', action='store_true')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--peak', nargs=6, help=argparse.SUPPRESS)
    parser.add_argument('--markdown', type=Path, help='write the table there')
    args = parser.parse_args()
    if args.peak:
        return show_peak(*args.peak)
    torch.set_num_threads(args.threads)
    report = Report(
        f'Fused layers beside PyG, ms and MB (fused / PyG / SpMM / compiled): '
        f'{machine()}',
        ['graph', 'layer', 'channels', 'heads', 'forward', 'faster']
        + ['with backward', 'faster', 'peak MB', 'less'],
    )
    for graph in args.graphs:
        data = GRAPHS[graph]() if graph in GRAPHS else from_file(graph)
        for name in args.layers:
            measure(report, graph, data, name, args)
        if not args.no_bandwidth:
            print(bandwidth(data, 64, args.rounds))
    report.show()
    if args.markdown:
        args.markdown.write_text(report.markdown())


if __name__ == '__main__':
    main()
