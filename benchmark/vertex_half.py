"""Times in half precision, compared with float32.

Sums and means of neighbours, forward and with their gradients, on a whole
graph whose features exceed the cache and on the blocks of a mini-batch; and
the step of a model under autocast, ours and PyG's. Rows are measured in turns,
with the least processor seconds, which other processes do not change.

    python benchmark/vertex_half.py --nodes 400000 --edges 6000000
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from harness import Report, compare, machine
from torch import Tensor
from torch_geometric import nn as pyg
from torch_geometric.data import Data
from vertex_memory import peak

from torch_gsample import ops
from torch_gsample.loader import NeighborLoader
from torch_gsample.vertex import mean, nn, vertex_program

DTYPES = torch.float32, torch.bfloat16, torch.float16
COLUMNS = 'float32 ms', 'bfloat16 ms', 'faster', 'float16 ms', 'faster'


@vertex_program
def total(v):  # type: ignore
    return sum(u.x for u in v.innbs)


@vertex_program
def average(v):  # type: ignore
    return mean(u.x for u in v.innbs)


PROGRAMS = {'sum': total, 'mean': average}


def graph_of(nodes: int, edges: int) -> Data:
    """Returns a skewed graph with vertices in no order."""
    bits = max(1, (nodes - 1).bit_length())
    row, col = ops.rmat_edges(bits, edges, [0.57, 0.19, 0.19, 0.05], 1)
    names = torch.randperm(nodes, generator=torch.Generator().manual_seed(1))
    edge_index = torch.stack([names[row % nodes], names[col % nodes]])
    return Data(edge_index=edge_index, num_nodes=nodes)


def step(call: Callable[[], Tensor], x: Tensor) -> Callable[[int], object]:
    """Returns a call with its gradients."""

    def run(_: int) -> None:
        x.grad = None
        out = call()
        out.backward(torch.ones_like(out))

    return run


def aggregations(
    graph: Any, sizes: tuple[int, int], channels: int, program: Any
) -> tuple[dict, dict]:
    """Returns calls by dtype: forward, and with gradients."""
    forward, both = {}, {}
    for dtype in DTYPES:
        x = torch.randn(sizes[0], channels).to(dtype).requires_grad_()

        def call(x: Tensor = x) -> Tensor:
            return program(graph, x=(x, None), size=sizes)

        def run(_: int, call: Any = call) -> object:
            with torch.no_grad():
                return call()

        forward[dtype], both[dtype] = run, step(call, x)
    return forward, both


def measured(calls: dict, args: argparse.Namespace) -> list[object]:
    """Returns the cells of a row: the least times, ratios, and peaks."""
    for call in calls.values():
        call(0)
    times = compare(
        {str(key): call for key, call in calls.items()},
        rounds=args.rounds,
        clock=time.process_time,
        max_seconds=args.seconds,
    )
    first, *rest = (times[str(key)].best for key in calls)
    cells: list[object] = [f'{1e3 * first:.2f}']
    for other in rest:
        cells += [f'{1e3 * other:.2f}', f'{first / other:.2f}x']
    peaks = [peak(call) for call in calls.values()]
    return [*cells, ' / '.join(f'{x:.0f}' for x in peaks)]


class Model(torch.nn.Module):
    """Two layers."""

    def __init__(self, kind: Any, channels: int):
        super().__init__()
        self.first = kind(channels, channels)
        self.second = kind(channels, channels)

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        return self.second(self.first(x, edge_index).relu(), edge_index)


def model_steps(data: Data, name: str, channels: int) -> dict:
    """Returns training steps: in float32 and under autocast, and PyG's."""
    x = torch.randn(data.num_nodes, channels, requires_grad=True)
    calls = {}
    for library in (nn, pyg):
        model = Model(getattr(library, name), channels)
        for enabled in (False, True):

            def call(model: Any = model, enabled: bool = enabled) -> Tensor:
                with torch.autocast('cpu', torch.bfloat16, enabled=enabled):
                    return model(x, data.edge_index)

            calls[library.__name__, enabled] = step(call, x)
    return calls


def add_models(report: Report, data: Data, name: str, args: Any) -> None:
    for channels in args.channels:
        calls = model_steps(data, name, channels)
        for call in calls.values():
            call(0)
        times = compare(
            {str(key): call for key, call in calls.items()},
            rounds=args.rounds,
            clock=time.process_time,
            max_seconds=args.seconds,
        )
        cells = [f'{1e3 * times[str(key)].best:.0f}' for key in calls]
        peaks = [f'{peak(call):.0f}' for call in calls.values()]
        report.add(name, channels, *cells, ' / '.join(peaks))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--nodes', type=int, default=400_000)
    parser.add_argument('--edges', type=int, default=6_000_000)
    parser.add_argument('--model-nodes', type=int, default=100_000)
    parser.add_argument('--model-edges', type=int, default=1_500_000)
    parser.add_argument('--channels', nargs='*', type=int, default=[64, 256])
    parser.add_argument('--seeds', type=int, default=1024)
    parser.add_argument('--rounds', type=int, default=7)
    parser.add_argument('--seconds', type=float, default=30.0)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--markdown', type=Path, help='write the tables there')
    args = parser.parse_args(arguments)
    torch.set_num_threads(args.threads)
    head = ['graph', 'aggregation', 'channels', 'pass', *COLUMNS, 'peak MB']
    report = Report(f'Half precision: {machine()}', head)
    data = graph_of(args.nodes, args.edges)
    loader = NeighborLoader(data, [15, 10, 5], batch_size=args.seeds, seed=1)
    batch = next(iter(loader))
    block = batch.blocks[0]
    graphs = {
        'whole': (data.edge_index, (args.nodes, args.nodes)),
        'block': (block, block.size),
    }
    for graph, (edges, sizes) in graphs.items():
        for name, program in PROGRAMS.items():
            for channels in args.channels:
                parts = aggregations(edges, sizes, channels, program)
                kinds = 'forward', 'both'
                for kind, calls in zip(kinds, parts, strict=True):
                    cells = measured(calls, args)
                    report.add(graph, name, channels, kind, *cells)
    head = ['layers', 'channels', 'float32 ms', 'autocast ms']
    head += ['PyG float32 ms', 'PyG autocast ms', 'peak MB']
    models = Report('Training step of two layers, bfloat16', head)
    data = graph_of(args.model_nodes, args.model_edges)
    for name in ('SAGEConv', 'GCNConv', 'GATConv'):
        add_models(models, data, name, args)
    for each in (report, models):
        each.show()
    if args.markdown:
        pages = report.markdown(), models.markdown()
        args.markdown.write_text('\n'.join(pages))


if __name__ == '__main__':
    main()
