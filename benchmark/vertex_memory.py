"""Peak memory of a layer for `vertex.py`, and an estimate of it.

Each peak is measured in a separate process, as its memory (`VmHWM`), so that
everything counts: tensors, allocator caches, buffers of libraries. The process
reads the graph from a file: memory freed after generating a graph would be
reused, and hide a part of the peak.
"""

import argparse
import ctypes
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data
from vertex_layers import both, candidate, edges_of

#: Rows of features that a candidate holds at once, forward and backward: for
#: each edge, and for each vertex. Measured on the block and on R-MAT, rounded
#: up.
EDGE_ROWS = {
    'PyG': {'GAT': 5.5, 'GCN': 3, 'APPNP': 3, 'RGCN': 1.5},
    'compiled': {'GAT': 4, 'GCN': 2, 'APPNP': 3, 'RGCN': 1.5},
}
VERTEX_ROWS = {'GAT': 7, 'GCN': 6, 'APPNP': 14, 'RGCN': 8}
#: Bytes per edge besides features: indices, layouts, weights.
EDGE_BYTES = 64


def estimate(kind: str, data: Data, name: str, channels: int) -> float:
    """Returns the approximate bytes of a call, including the graph's."""
    edges, vertices = data.num_edges, data.num_nodes
    if name != 'RGCN':
        edges += vertices  # loops
    rows = EDGE_ROWS.get(kind, {}).get(name, 0) * edges
    rows += VERTEX_ROWS[name] * vertices
    if kind == 'fused' and name == 'RGCN':
        # Pairs of a vertex and a type: no more than edges.
        _, relations = edges_of(name, data)
        rows += 4 * min(edges, vertices * relations)
    return 4 * channels * rows + EDGE_BYTES * edges


def available() -> float:
    """Returns the bytes available to programs."""
    for line in Path('/proc/meminfo').read_text().splitlines():
        if line.startswith('MemAvailable'):
            return int(line.split()[1]) * 1024.0
    return float('inf')


def fits(kind: str, data: Data, name: str, channels: int) -> bool:
    """Whether a candidate can be tried without being killed."""
    return estimate(kind, data, name, channels) < 0.9 * available()


def read(name: str) -> float:
    """Returns a line of this process's status, in MB."""
    for line in Path('/proc/self/status').read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1e3
    raise RuntimeError(f'there is no {name}')


def peak(call: Callable[[int], object]) -> float:
    """Returns the peak memory of a call, in MB."""
    ctypes.CDLL(None).malloc_trim(0)
    Path('/proc/self/clear_refs').write_text('5')
    before = read('VmRSS')
    call(0)
    return read('VmHWM') - before


def peak_alone(
    kind: str, data: Data, what: tuple, threads: int, first: bool
) -> float | None:
    """Measures in a separate process; returns nothing if it fails.

    Args:
        kind (str): The candidate.
        data (Data): The graph.
        what (Tuple): Layer, channels and heads.
        threads (int): Threads of torch.
        first (bool): Whether it is the first call of the process.
    """
    parts = data.edge_index, data.get('edge_type'), data.num_nodes
    with tempfile.TemporaryDirectory() as folder:
        path = f'{folder}/graph.pt'
        torch.save(parts, path)
        names = [kind, path, *map(str, what), str(threads)]
        command = [sys.executable, __file__, *names, *['--first'] * first]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f'{kind}: no peak: {done.stderr[-300:]}', file=sys.stderr)
        return None
    return float(done.stdout.split()[-1])


def warm(
    kind: str,
    layer: Callable[..., Tensor],
    what: tuple[str, int, int],
    data: Data,
    given: tuple[Tensor, ...],
) -> None:
    """Calls a layer on other graphs, to load libraries.

    They have a thousand edges, and two sizes, so that compiled code works for
    all. Ours also creates the layouts of the graph, with a layer of one
    channel: they are created once per graph.
    """
    name, channels, _ = what
    for count in (1000, 1200):
        few = [part[..., :count] for part in given]
        few[0] = few[0] % count
        if kind == 'SpMM':
            other = Data(edge_index=few[0], num_nodes=count)
            layer = candidate(kind, other, *what)
        x = torch.randn(count, channels, requires_grad=True)
        both(layer, x, tuple(few))(0)
    if kind == 'fused':
        one = torch.zeros(data.num_nodes, 1, requires_grad=True)
        both(candidate(kind, data, name, 1, 1), one, given)(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for argument in ('kind', 'graph', 'layer'):
        parser.add_argument(argument)
    for argument in ('channels', 'heads', 'threads'):
        parser.add_argument(argument, type=int)
    parser.add_argument('--first', action='store_true')
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    edge_index, edge_type, count = torch.load(args.graph)
    data = Data(edge_index=edge_index, num_nodes=count)
    if edge_type is not None:
        data.edge_type = edge_type
    given, _ = edges_of(args.layer, data)
    what = args.layer, args.channels, args.heads
    layer = candidate(args.kind, data, *what)
    if not args.first:
        warm(args.kind, layer, what, data, given)
    x = torch.randn(data.num_nodes, args.channels, requires_grad=True)
    print(peak(both(layer, x, given)))


if __name__ == '__main__':
    main()
